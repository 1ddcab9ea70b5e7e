//! The wall time at which virtual time begins.

use std::time::Duration;

/// 1 January 2030, since 1970: within the life of the certificates in `data/tls`.
pub(crate) const WALL_EPOCH: Duration = Duration::from_secs(1_893_456_000);
