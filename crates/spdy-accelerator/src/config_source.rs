//! Where the configuration of `spdy accelerate` comes from: a file, with the files of its `include`, and keys from the
//! environment.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use spdy_proxy::config::env;
use spdy_proxy::config::{Config, ConfigError};
use spdy_service::error::Usage;

use crate::site_files;

/// The configuration at `path`, with the sites of the files that it includes, and with the keys of the environment.
///
/// # Errors
///
/// A file cannot be read, or the configuration is wrong.
pub fn read_config(path: &Path) -> anyhow::Result<Config> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let read = |patterns: &[String]| site_files::read(folder, patterns);
    let config: anyhow::Result<Config> = Config::parse_with_includes(&text, &environment(), read);
    config.map_err(|error| match error.downcast::<ConfigError>() {
        Ok(error @ ConfigError::SiteFile { .. }) => Usage(error.to_string()).into(),
        Ok(error) => Usage(format!("{}: {error}", path.display())).into(),
        Err(error) => error.context(format!("{}", path.display())),
    })
}

/// Keys of the configuration from the environment.
#[must_use]
pub fn environment() -> BTreeMap<String, String> {
    let variables = std::env::vars_os();
    env::from_variables(
        variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }),
    )
}
