//! Where the configuration of `spdy accelerate` comes from: a file, with keys from the environment.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use spdy_proxy::config::Config;
use spdy_proxy::config::env;
use spdy_service::error::Usage;

/// The configuration at `path`, with the keys of the environment.
///
/// # Errors
///
/// The file cannot be read, or its configuration is wrong.
pub fn read_config(path: &Path) -> anyhow::Result<Config> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let config = Config::parse_with_env(&text, &environment());
    Ok(config.map_err(|error| Usage(format!("{}: {error}", path.display())))?)
}

/// Keys of the configuration out of the environment.
#[must_use]
pub fn environment() -> BTreeMap<String, String> {
    let variables = std::env::vars_os();
    env::from_variables(
        variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }),
    )
}
