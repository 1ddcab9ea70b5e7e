//! The random key of the digests by which sessions remember pushed URLs.

use spdy_server::session_history::DigestKey;

/// A random key, for as long as the program runs.
pub(crate) fn digest_key() -> anyhow::Result<DigestKey> {
    let mut key = DigestKey::default();
    getrandom::fill(&mut key.0)
        .map_err(|error| anyhow::anyhow!("cannot get random numbers: {error}"))?;
    Ok(key)
}
