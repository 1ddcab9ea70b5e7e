//! The version of the model that produced a load.
//!
//! Pages, options and a seed define a load. Its duration, to the nanosecond, depends on links and TCP, on the state machine of a page
//! load, and on the released client and server: together, the model. [`MODEL_VERSION`] counts its versions, because the program's own
//! version is too coarse. A store records it with each load, so that one experiment has no loads of two models.

/// The version of the model. Increment it with every change that changes a result of any load; `tests/it/model.rs` detects such
/// changes.
pub const MODEL_VERSION: u64 = 26;

/// The version of loads from stores that have no model version.
pub const UNVERSIONED: u64 = 0;

/// `model` for display.
#[must_use]
pub fn format(model: u64) -> String {
    match model {
        UNVERSIONED => format!("{UNVERSIONED} (any unnumbered earlier model)"),
        counted => counted.to_string(),
    }
}
