//! What runs before any script of a page whose clocks and chance are pinned.

/// The script. It asks for nothing, and leaves no name behind.
pub(crate) const SCRIPT: &str = include_str!("pin.js");
