//! The accelerator as a node in virtual time.

mod audit;
mod guarded_names;
mod loads;
mod spans;
