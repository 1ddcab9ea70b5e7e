//! The schedulers of a browser, which delay requests, and its connections.
//!
//! A browser that has never visited a host does not know its protocol. So with a browser's scheduler, each request to such a host
//! opens a connection, and the navigation opens [two](CONNECTIONS_OF_NAVIGATION).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Connections that a navigation opens to the document's host, as captures of Chromium show.
pub(crate) const CONNECTIONS_OF_NAVIGATION: usize = 2;

/// How long a request waits for the first connection to a host before another one is opened (`kMaxConnectRetryIntervalMs` in Chromium).
pub(crate) const BACKUP_AFTER: Duration = Duration::from_millis(250);

/// The scheduler that delays requests before they are passed to a connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Scheduler {
    /// None: each resource is requested as soon as the page needs it.
    #[default]
    None,
    /// The two schedulers of Chromium 156.
    Chromium,
    /// The scheduler of Chromium 49.
    Chromium49,
}

impl Scheduler {
    /// All values.
    pub const ALL: [Self; 3] = [Self::None, Self::Chromium, Self::Chromium49];

    /// The name on the command line and in experiments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Chromium => "chromium",
            Self::Chromium49 => "chromium-49",
        }
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no [`Scheduler`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown scheduler {0:?}: expected none, chromium or chromium-49")]
pub struct UnknownScheduler(pub String);

impl FromStr for Scheduler {
    type Err = UnknownScheduler;

    fn from_str(name: &str) -> Result<Self, UnknownScheduler> {
        let found = Self::ALL.into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| UnknownScheduler(name.to_owned()))
    }
}
