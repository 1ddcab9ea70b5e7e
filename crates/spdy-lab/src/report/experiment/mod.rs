//! What an experiment came to, as a page to look at: one HTML file that needs no network and no script.
//!
//! ```text
//! rows of a store ──► data.rs ──► page.rs ─┬─ tables.rs        ratios, wire, headers, validity
//!                     cells,               ├─ lines.rs         load time over a factor, SVG
//!                     factors,             ├─ heat.rs          ratios over two factors, SVG
//!                     trials               ├─ scatter.rs       a protocol against the first, with the midline, SVG
//!                                          └─ distribution.rs  how many cells are done by when, SVG
//! ```
//!
//! A *trial* is a cell without its protocol: what is compared meets in it. A factor is drawn along an axis if all its levels
//! are numbers with a unit.

mod data;
mod distribution;
mod heat;
mod lines;
mod page;
mod scatter;
mod tables;

pub use page::render;
