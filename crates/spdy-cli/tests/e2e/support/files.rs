//! The files that tests transfer: from 0 B to 20 MB, with incompressible bytes.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// One file of the folder that every test server serves.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Its name, which is its size.
    pub(crate) name: &'static str,
    /// Its size in bytes.
    pub(crate) len: usize,
    /// SHA-256 in hexadecimal.
    pub(crate) sha256: String,
}

/// The folder and its files.
pub(crate) struct Files {
    /// The path of the folder.
    pub(crate) folder: PathBuf,
    /// Sorted by size.
    pub(crate) files: Vec<File>,
}

/// Created once per test process.
pub(crate) static FILES: LazyLock<Files> = LazyLock::new(|| {
    let sizes = [
        ("0", 0),
        ("128", 128),
        ("10k", 10 << 10),
        ("1m", 1 << 20),
        ("20m", 20 << 20),
    ];
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("files");
    fs::create_dir_all(&folder).expect("create the test's folder");
    let files = sizes.into_iter().map(|(name, len)| {
        let bytes = noise(len);
        let path = folder.join(name);
        // Another test process may be serving the same bytes: keep existing files.
        if fs::metadata(&path).map_or(true, |metadata| metadata.len() != len as u64) {
            let fresh = folder.join(format!("{name}.{}", std::process::id()));
            fs::write(&fresh, &bytes).expect("write the test's file");
            fs::rename(&fresh, &path).expect("rename the file");
        }
        File {
            name,
            len,
            sha256: sha256(&bytes),
        }
    });
    let files = files.collect();
    let fresh = folder.join(format!("page.{}", std::process::id()));
    fs::write(&fresh, PAGE).expect("write the test's file");
    fs::rename(&fresh, folder.join(PAGE_NAME)).expect("rename the file");
    Files { folder, files }
});

/// A page in the same folder; not one of `files`.
pub(crate) const PAGE_NAME: &str = "page.html";

/// It references an empty file and one of 10 KB, which `--push graph` pushes with it.
pub(crate) const PAGE: &str = "<!doctype html><img src=/0><img src=10k>";

/// SHA-256 of `bytes` in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// `len` pseudo-random bytes, always the same (xorshift64).
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x5fd7_0313_2012_0001_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
