//! The names that this server answers DNS queries for. No origin may have one of them, or a request would return to us.

use std::fmt;
use std::sync::Arc;

use hickory_proto::rr::Name;

/// A predicate over names: whether a name is one of ours at this moment. The default has no names.
///
/// It takes a [`Name`], not a text: an alias from the network may have any bytes in its labels, and not every such name can be
/// parsed from a text.
#[derive(Clone)]
pub struct OwnNames(Arc<dyn Fn(&Name) -> bool + Send + Sync>);

impl OwnNames {
    /// The names, each complete with its final dot, for which `is_own` is true. It is called in each lookup, for the host and
    /// for each alias, so it may read zones that change.
    #[must_use]
    pub fn new(is_own: impl Fn(&Name) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_own))
    }

    /// Whether `name` is one of ours.
    #[must_use]
    pub fn contains(&self, name: &Name) -> bool {
        (self.0)(name)
    }
}

impl Default for OwnNames {
    fn default() -> Self {
        Self::new(|_| false)
    }
}

impl fmt::Debug for OwnNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnNames")
    }
}
