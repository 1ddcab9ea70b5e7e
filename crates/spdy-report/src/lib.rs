//! Draws the results of a race, of an experiment or of papers' claims: one HTML file that needs no network and no script, and figures
//! as files.
//!
//! ```text
//! Vec<Load> -> RaceResults -> page.rs ─┬─ tables.rs     ratios, packets, header bytes
//!                                      ├─ times.rs      load times, SVG
//!                                      └─ waterfall.rs  request and response of each resource     ─┐
//! Vec<Replica> -> recordings.rs ─────►  waterfalls of a browser's loads                             ─┤
//! Vec<ClaimResult> -> claims.rs ────►   published and measured results, with their verdicts          │
//! rows of a store ────► experiment/     every figure of an experiment                              ─┴► drawing/ ─► page, SVG file, PNG
//! ```
//!
//! [`render`] and the other functions are pure: the same loads give the same bytes. Names and URLs come from recorded pages and may
//! be hostile, so every text goes through `text::Text`. Colours are CSS variables with a light and a dark value. Every picture has a
//! title and a description, or a table, with the same numbers.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

#[cfg(feature = "full")]
mod claims;
#[cfg_attr(not(feature = "full"), allow(dead_code))] // experiments draw more than a race
mod drawing;
#[cfg(feature = "full")]
pub mod experiment;
#[cfg(feature = "full")]
mod filter_form;
mod page;
mod recordings;
mod tables;
mod text;
mod times;
mod waterfall;

#[cfg(feature = "full")]
pub use claims::claims;
#[cfg(feature = "full")]
pub use drawing::pixels::png;
pub use page::render;
pub use recordings::{named_loads, recordings};
