//! The part of the configuration for the access log in a file.

use std::path::PathBuf;

use serde::Deserialize;

use crate::config::error::InvalidValue;

/// A file with one line for each response. Optional: without this table, there is no such file.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessLogConfig {
    /// The file. It is created if it does not exist, for its owner and group only (0640). SIGUSR1 and a reload open it again.
    pub file: PathBuf,
    /// The format of a line: `combined` (of Apache and nginx) or `json`. Default `combined`.
    #[serde(default)]
    pub format: AccessLogFormat,
}

/// The format of a line.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AccessLogFormat {
    /// The combined log format of Apache and nginx.
    #[default]
    Combined,
    /// The JSON object of `spdy accelerate --verbose --json`.
    Json,
}

impl AccessLogConfig {
    /// A fault in it: the key, what is valid, and the value.
    pub(crate) fn fault(&self) -> Option<InvalidValue> {
        let is_file = self.file.file_name().is_some();
        (!is_file).then(|| {
            let expected = "the path of a file";
            ("access_log.file", expected, format!("{:?}", self.file))
        })
    }
}
