//! Notices: what a running service reports to its operator, such as a failed reload or a new certificate.
//!
//! The service has the texts and the levels. The program decides where they go and how they look.

use std::fmt::{self, Display};
use std::sync::Arc;

/// How important a [`Notice`] is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Level {
    /// Something expected happened.
    Info,
    /// Something happened that operators look for.
    Highlight,
    /// Something may need attention.
    Warning,
    /// Something failed, or will fail.
    Error,
}

/// One notice.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Notice {
    /// Its importance.
    pub level: Level,
    /// The first part of the text: the subject.
    pub subject: String,
    /// The rest of the text, which follows the subject without a space between them. May be empty.
    pub detail: String,
}

/// Receives the notices of a service. Clones share the receiver. The default one ignores them.
#[derive(Clone)]
pub struct Notices(Arc<dyn Fn(&Notice) + Send + Sync>);

impl Notices {
    /// Calls `receive` with each notice. It must not block for long: a task of the service runs it.
    pub fn new(receive: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    /// Reports that something expected happened.
    pub fn info(&self, text: impl Display) {
        self.report(Level::Info, text, "");
    }

    /// Reports something that operators look for.
    pub fn highlight(&self, subject: impl Display, detail: impl Display) {
        self.report(Level::Highlight, subject, detail);
    }

    /// Reports something that may need attention.
    pub fn warning(&self, subject: impl Display, detail: impl Display) {
        self.report(Level::Warning, subject, detail);
    }

    /// Reports something that failed, or will fail.
    pub fn error(&self, subject: impl Display, detail: impl Display) {
        self.report(Level::Error, subject, detail);
    }

    fn report(&self, level: Level, subject: impl Display, detail: impl Display) {
        (self.0)(&Notice {
            level,
            subject: subject.to_string(),
            detail: detail.to_string(),
        });
    }
}

impl Default for Notices {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}
