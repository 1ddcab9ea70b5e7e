//! A network by name or by its settings: the path, and the TCP of both its ends.

use super::value::Era;
use crate::path::PathConfig;
use crate::tcp::TcpConfig;

/// A network: the path, and the TCP of both its ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name, if no setting changed it.
    pub name: Option<String>,
    /// The source of its numbers.
    pub source: &'static str,
    /// The path.
    pub path: PathConfig,
    /// The era of both ends.
    pub era: Era,
    /// Initial window in segments, if not the era's.
    pub initial_window: Option<u32>,
}

impl Profile {
    /// The TCP of both ends.
    #[must_use]
    pub const fn tcp(&self) -> TcpConfig {
        let mut config = self.era.config();
        if let Some(segments) = self.initial_window {
            config.initial_window_segments = segments;
        }
        config
    }
}
