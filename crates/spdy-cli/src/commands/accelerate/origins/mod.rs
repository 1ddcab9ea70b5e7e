//! The origins of the accelerator: how they are connected to, and which addresses they may have.

pub(crate) mod address_rules;
pub(crate) mod upstream;
pub(crate) mod upstream_needs;
