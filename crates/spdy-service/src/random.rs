//! Random bytes of the system, for secrets and seeds.

/// `N` random bytes.
///
/// # Errors
///
/// The system has no random numbers.
pub fn bytes<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow::anyhow!("cannot get random numbers: {error}"))?;
    Ok(bytes)
}
