//! Compares virtual time with real time: the same downloads and page loads through the model and through the kernel's TCP.
//!
//! ```text
//!   download_cell.rs ── download.rs ─┬─ virtual_time.rs        spdy-sim, spdy-netem's Tcp and Path  ─┐
//!                                    └─ real_time.rs           spdy-tun, Linux's TCP, the same Path ─┼─ compare.rs
//!   page_cell.rs ────────────────────┬─ spdy_sim::load::load   the same two, under a page load      ─┤
//!                                    └─ live/load.rs                                                ─┘
//! ```
//!
//! [`download_cell`] and [`page_cell`] are the cells. [`runner`] runs them on several links at a time, and repeats invalid runs.
//! Random losses in both clocks use the same seed: the third packet from the server is lost in both or in none, as long as both send
//! the same packets.

pub mod compare;
mod download;
pub mod download_cell;
pub mod error;
pub mod link_probe;
pub mod page_cell;
mod real_time;
pub mod run_link;
pub mod runner;
pub mod virtual_time;
pub mod workload;
