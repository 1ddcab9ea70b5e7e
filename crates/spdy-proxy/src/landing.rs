//! What the leader of a flight shares with those who wait for it.

use std::sync::Arc;

use spdy_cache::key::Key;
use spdy_cache::store::Object;
use spdy_cache::stored::Stored;

use crate::flight::Leader;
use crate::recording::Recording;

/// An answer that everyone may have.
#[derive(Debug)]
pub(crate) struct Landing {
    pub(crate) stored: Arc<Stored>,
    pub(crate) source: Source,
}

/// Where the body of what is shared is.
#[derive(Debug)]
pub(crate) enum Source {
    Coming(Recording),
    Kept(Object),
}

/// Who leads the fetch of a key.
pub(crate) type Lead = Leader<Key, Landing>;
