//! Which model a load is of: its figures are those of one.
//!
//! A plan, its pages and a seed say what is loaded. What it takes, to the nanosecond, hangs on links and TCP, on the machine of
//! a page, and on the client and the server that ship: on what is here called the model. [`MODEL_VERSION`] counts its versions, the
//! program's own being too coarse, and a store tells of each load which it was: so nobody takes loads of two for one experiment.

/// The version of the model. Whoever changes what moves a figure of any load counts it on; `tests/model.rs` tells when.
pub const MODEL_VERSION: u64 = 6;

/// What stores from before there was a count are read as having.
pub const UNVERSIONED: u64 = 0;

/// `model` as people read it.
#[must_use]
pub fn told(model: u64) -> String {
    match model {
        UNVERSIONED => format!("{UNVERSIONED} (any from before they were counted)"),
        counted => counted.to_string(),
    }
}
