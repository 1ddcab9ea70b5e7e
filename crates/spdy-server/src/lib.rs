//! A site in memory and its answers, over whatever connection they are asked.
//!
//! ```text
//! connection --spdy-net--> Request --respond.rs--> Site::find (site.rs) --> Answer (answer.rs) --> Response
//!                                      |                  ^
//!                      HEAD, conditions (conditions.rs),  `-- a replica, or a folder (directory.rs)
//!                      ranges (ranges.rs), 4xx
//! ```

pub mod answer;
mod conditions;
pub mod directory;
mod media_types;
mod ranges;
pub mod respond;
pub mod serve;
pub mod site;
