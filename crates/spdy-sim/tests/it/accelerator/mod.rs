//! The accelerator as a node in virtual time.

mod guarded_names;
mod loads;
mod spans;
