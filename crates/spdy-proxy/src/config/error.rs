//! What is wrong with a configuration.

use std::path::{Path, PathBuf};

use crate::config::shared_cache;

/// A key with an invalid value: the key, what is valid, and the value.
pub(crate) type InvalidValue = (&'static str, &'static str, String);

/// Why a configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is not TOML, or has an unknown key or a wrong type.
    #[error("invalid configuration: {0}")]
    Syntax(String),
    /// An environment variable that sets no key.
    #[error("{name} in the environment: {reason}")]
    Environment {
        /// The variable.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A value is invalid.
    #[error("{key}: expected {expected}, found {found}")]
    InvalidValue {
        /// The key.
        key: String,
        /// What is valid.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// The error is in a file that `include` names.
    #[error("{}: {error}", path.display())]
    SiteFile {
        /// The file.
        path: PathBuf,
        /// The error.
        error: Box<Self>,
    },
}

impl ConfigError {
    /// The same error in the file at `path`.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self::SiteFile {
            path: path.to_owned(),
            error: Box::new(self),
        }
    }
}

impl From<toml::de::Error> for ConfigError {
    fn from(error: toml::de::Error) -> Self {
        let error = shared_cache::redact_error(&error.to_string());
        Self::Syntax(describe_error(&error))
    }
}

/// `error`, with the expected value added if it is missing.
pub(crate) fn describe_error(error: &str) -> String {
    let expectations = [
        (
            "invalid socket address syntax",
            "an IP address and a port, such as 127.0.0.1:8443 or [::]:443",
        ),
        (
            "relative URL without a base",
            "http:// or https:// in front",
        ),
        (
            "expected `site`",
            "only [[site]] tables in a file of `include`",
        ),
        ("expected usize", "a whole number from 0"),
        ("expected u64", "a whole number from 0"),
        ("expected u32", "a whole number from 0"),
    ];
    let expectation = expectations
        .iter()
        .find(|(fragment, _)| error.contains(fragment));
    match expectation {
        Some((_, expectation)) => format!("{}; expected {expectation}", error.trim_end()),
        None => error.to_owned(),
    }
}
