//! What a race or an experiment came to, as a page to look at: one HTML file that needs no network and no script.
//!
//! ```text
//! Vec<Load> -> race_results.rs -> page.rs ─┬─ tables.rs     ratios, packets, header bytes
//!                                          ├─ times.rs      load times, SVG
//!                                          └─ waterfall.rs  when what travelled                 ─┐
//! Vec<Replica> -> recordings.rs ─────────►  the same of what a browser loaded                   ─┤
//! rows of a store ────────► experiment/     everything else that is drawn                       ─┴► drawing/ ─► page, SVG file, PNG
//! ```
//!
//! [`render`] and its like are pure functions: the same loads give the same bytes. Names and URLs come from recorded
//! pages and are hostile; every text goes through `text::Text`. Colours are CSS variables with a light and
//! a dark value, and every picture has a title and a description, or a table, of the same numbers.

mod drawing;
pub mod experiment;
mod page;
mod race_results;
mod recordings;
mod tables;
mod text;
mod times;
mod waterfall;

pub use drawing::pixels::png;
pub use page::render;
pub use race_results::{NetworkRace, PageRace, ProtocolLoads, RaceResults};
pub use recordings::recordings;
