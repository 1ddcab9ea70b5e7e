//! The secrets that sign the capabilities of `spdy accelerate`: the operator's current and former one, or a random one.

use std::path::Path;

use anyhow::Context;
use spdy_proxy::config::Config;
use spdy_rewrite::rules::capability::{Key, Keys};
use spdy_service::error::Usage;
use spdy_service::random;

/// Minimum length of a secret, bytes.
const SECRET_BYTES: usize = Key::MIN_SECRET_BYTES;

/// The secret if the operator has none. It is valid until the program ends.
pub(crate) struct RandomSecret([u8; SECRET_BYTES]);

impl RandomSecret {
    /// Generates a secret from the system's random numbers.
    pub(crate) fn generate() -> anyhow::Result<Self> {
        Ok(Self(random::bytes()?))
    }
}

/// The keys of capabilities, from the current files of `config`.
pub(crate) fn keys(config: &Config, random_secret: &RandomSecret) -> anyhow::Result<Keys> {
    let Some(path) = &config.secret_file else {
        return Ok(Keys::from_secrets(&random_secret.0, None)?);
    };
    let current = read(path)?;
    let former = config.former_secret_file.as_deref();
    let former = former.map(read).transpose()?;
    if former.as_ref() == Some(&current) {
        let reason = "former_secret_file: expected another secret than in secret_file";
        return Err(Usage(reason.to_owned()).into());
    }
    Ok(Keys::from_secrets(&current, former.as_deref())?)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let secret = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let len = secret.trim_ascii().len();
    if len < SECRET_BYTES {
        let what = path.display();
        let reason = format!("{what}: secret has {len} bytes, expected at least {SECRET_BYTES}");
        return Err(Usage(reason).into());
    }
    Ok(secret.trim_ascii().to_vec())
}
