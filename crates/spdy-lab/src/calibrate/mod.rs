//! How near virtual time is to real time: the same downloads and page loads through the model and through the kernel's TCP.
//!
//! ```text
//!   cell.rs ── download.rs ─┬─ virtual_time.rs   sim, spdy-netem's Tcp and Path      ─┐
//!                           └─ real_time.rs      spdy-tun, Linux's TCP, the same Path ┼─ compare.rs
//!   page.rs ── load/        ┬─ load/virtual_time.rs   the same two, under a whole page load  │
//!                           └─ live/load.rs                                             ─┘
//! ```
//!
//! [`cell`] and [`page`] name what is compared, [`runner`] does it on several links at a time, and repeats runs that do not
//! count. Where chance takes packets, both clocks draw it from the same seed: the third packet from the server is lost in
//! both or in none, as long as both send the same packets.

pub mod cell;
pub mod compare;
mod download;
pub mod error;
pub mod link;
pub mod page;
mod real_time;
pub mod run_link;
pub mod runner;
pub mod virtual_time;
pub mod workload;
