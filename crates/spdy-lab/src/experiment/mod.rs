//! Experiments: factors and their levels, and the resulting cells.
//!
//! ```text
//! EXPERIMENT.toml ─ parse.rs ─► Plan ─ cell.rs ─► Cell 1, 2, .. ─ conditions.rs ─► network, options
//!                                │                    │                                  │
//!                             its hash         its key, its seeds                        ▼
//!                                                                     runner.rs: the loads of a cell
//! ```
//!
//! `ineffective_factors.rs` finds factors without an effect for a protocol, and cells that repeat others.
//!
//! Pure: texts in, loads out; no file and no clock. [`store`](crate::store) stores the loads, and `docs/reference/experiment-file.md`
//! describes the file, its factors and cells.

pub mod builtin_experiments;
pub mod cell;
pub mod clock;
pub mod conditions;
pub mod error;
pub mod factor;
pub mod factor_level;
pub mod ineffective_factors;
pub mod plan;
pub mod runner;
pub mod server_program;

mod parse;
