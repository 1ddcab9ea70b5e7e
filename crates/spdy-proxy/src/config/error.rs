//! What is wrong with a configuration.

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
    #[error("{name} in the environment: {why}")]
    Environment {
        /// The variable.
        name: String,
        /// The reason.
        why: String,
    },
    /// A value is invalid.
    #[error("{what}: expected {want}, found {got}")]
    InvalidValue {
        /// The key.
        what: String,
        /// What is valid.
        want: &'static str,
        /// What is there.
        got: String,
    },
}

impl From<toml::de::Error> for ConfigError {
    fn from(error: toml::de::Error) -> Self {
        let error = shared_cache::redact_error(&error.to_string());
        Self::Syntax(describe_error(&error))
    }
}

/// `error`, with the expected value added if it is missing.
pub(crate) fn describe_error(error: &str) -> String {
    let wants = [
        (
            "invalid socket address syntax",
            "an IP address and a port, such as 127.0.0.1:8443 or [::]:443",
        ),
        (
            "relative URL without a base",
            "http:// or https:// in front",
        ),
        ("expected usize", "a whole number from 0"),
        ("expected u64", "a whole number from 0"),
        ("expected u32", "a whole number from 0"),
    ];
    let want = wants.iter().find(|(what, _)| error.contains(what));
    match want {
        Some((_, want)) => format!("{}; expected {want}", error.trim_end()),
        None => error.to_owned(),
    }
}
