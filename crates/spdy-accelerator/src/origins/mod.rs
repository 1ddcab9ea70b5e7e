//! The origins of the accelerator: how they are connected to, and which addresses they may have.

pub mod address_rules;
pub(crate) mod upstream;
pub mod upstream_needs;
