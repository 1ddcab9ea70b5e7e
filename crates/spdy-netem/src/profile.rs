//! Networks by name.

/// A network.
#[derive(Clone, Debug)]
pub struct Profile {}
