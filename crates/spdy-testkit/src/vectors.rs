//! Where the vectors are, and how a file of them is read.

use std::path::PathBuf;

use serde::de::DeserializeOwned;

/// The directory `vectors/` at the root of the repository.
#[must_use]
pub fn directory() -> PathBuf {
    let mut path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    path.extend(["..", "..", "vectors"]);
    path
}

/// The bytes of a file below [`directory`].
///
/// # Panics
///
/// If it cannot be read.
#[must_use]
pub fn bytes(name: &str) -> Vec<u8> {
    let path = directory().join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The meaning of a JSON file below [`directory`].
///
/// # Panics
///
/// If it cannot be read, or means something else.
#[must_use]
pub fn json<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_slice(&bytes(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}
