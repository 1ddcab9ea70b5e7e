//! A file of users and hashes of their passwords, and the passwords that were verified since it was read.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::passwords::basic_credentials::BasicCredentials;
use crate::passwords::password_hash::PasswordHash;
use crate::token::constant_time_eq;

/// The largest file, bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The digest of a password that was verified for its user.
type VerifiedDigest = [u8; 32];

/// The users of one file.
pub(crate) struct PasswordFile {
    hashes: BTreeMap<String, PasswordHash>,
    /// Verified passwords by user: at most one for each user of the file. A hash takes too long to be computed for each request.
    verified: Mutex<BTreeMap<String, VerifiedDigest>>,
}

/// Why a file of passwords cannot be used. Hashes and passwords are never in it.
#[derive(Debug, thiserror::Error)]
#[error("{path}{line}: {reason}", path = path.display())]
pub struct PasswordFileError {
    path: PathBuf,
    /// `:` and the number of the line; empty if it is about the whole file.
    line: String,
    reason: String,
}

impl fmt::Debug for PasswordFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordFile")
            .field("users", &self.hashes.len())
            .finish_non_exhaustive()
    }
}

impl PasswordFile {
    /// Reads the file at `path`: lines of a user, `:` and a hash; empty ones and comments (`#`) are skipped.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the first line that is wrong.
    pub(crate) fn read(path: &Path) -> Result<Self, PasswordFileError> {
        let fault = |line: Option<usize>, reason: String| PasswordFileError {
            path: path.to_owned(),
            line: line.map_or_else(String::new, |index| format!(":{}", index + 1)),
            reason,
        };
        let metadata = std::fs::metadata(path).map_err(|error| fault(None, error.to_string()))?;
        if metadata.len() > MAX_FILE_BYTES {
            let found = metadata.len();
            let reason = format!("it has {found} bytes, expected at most {MAX_FILE_BYTES}");
            return Err(fault(None, reason));
        }
        let text = std::fs::read_to_string(path).map_err(|error| fault(None, error.to_string()))?;
        let mut hashes = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fault = |reason: String| fault(Some(index), reason);
            let Some((user, rest)) = line.split_once(':') else {
                return Err(fault("expected a user, `:` and a hash".to_owned()));
            };
            let text = rest.split(':').next().unwrap_or_default();
            let hash = PasswordHash::parse(text).map_err(|error| {
                fault(format!(
                    "user {user:?}: {error}: expected bcrypt, such as `htpasswd -B` writes"
                ))
            })?;
            if hashes.insert(user.to_owned(), hash).is_some() {
                return Err(fault(format!(
                    "expected each user once, found {user:?} again"
                )));
            }
        }
        Ok(Self {
            hashes,
            verified: Mutex::default(),
        })
    }

    /// Whether `credentials` were verified before. `false` says nothing about them.
    pub(crate) fn knows(&self, credentials: &BasicCredentials) -> bool {
        let Some(hash) = self.hashes.get(&credentials.user) else {
            return false;
        };
        let verified = self.verified.lock().get(&credentials.user).copied();
        verified.is_some_and(|verified| constant_time_eq(&verified, &digest(hash, credentials)))
    }

    /// Whether [`verify`](Self::verify) takes no time for `user`.
    pub(crate) fn is_cheap(&self, user: &str) -> bool {
        let hash = self.hash_for(user);
        hash.is_none_or(PasswordHash::is_cheap)
    }

    /// The hash that is computed for `user`: an unknown one takes as long as a known one.
    fn hash_for(&self, user: &str) -> Option<&PasswordHash> {
        let known = self.hashes.get(user);
        known.or_else(|| self.hashes.values().next())
    }

    /// Verifies `credentials`, which may take a second of a CPU. An unknown user takes as long as a known one.
    pub(crate) fn verify(&self, credentials: &BasicCredentials) -> bool {
        let Some(hash) = self.hash_for(&credentials.user) else {
            return false;
        };
        let is_known = self.hashes.contains_key(&credentials.user);
        let is_right = hash.verify(&credentials.password) && is_known;
        if is_right {
            let digest = digest(hash, credentials);
            let user = credentials.user.clone();
            self.verified.lock().insert(user, digest);
        }
        is_right
    }
}

/// The digest by which verified credentials are recognized: it has the salt of `hash`.
fn digest(hash: &PasswordHash, credentials: &BasicCredentials) -> VerifiedDigest {
    let mut digest = Sha256::new();
    for part in [hash.as_bytes(), &credentials.password] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: &str = "alice:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=";

    fn read(text: &str) -> Result<PasswordFile, String> {
        let folder = tempfile::tempdir().expect("create a folder");
        let path = folder.path().join("users");
        std::fs::write(&path, text).expect("write the file");
        PasswordFile::read(&path).map_err(|error| {
            let error = error.to_string();
            let start = folder.path().display().to_string();
            error.trim_start_matches(&start).to_owned()
        })
    }

    fn credentials(user: &str, password: &str) -> BasicCredentials {
        BasicCredentials {
            user: user.to_owned(),
            password: password.into(),
        }
    }

    #[test]
    fn only_verified_credentials_are_known() {
        let file = read(&format!("# users\n\n{ALICE}:a comment\n")).expect("a valid file");
        let alice = credentials("alice", "secret");
        assert!(!file.knows(&alice));
        for wrong in [credentials("alice", "secre"), credentials("bob", "secret")] {
            assert!(!file.verify(&wrong) && !file.knows(&wrong));
        }
        assert!(file.verify(&alice) && file.knows(&alice));
        assert!(!file.knows(&credentials("alice", "secre")));
        assert!(file.knows(&alice));
    }

    #[test]
    fn a_wrong_line_is_named_without_its_hash() {
        for (text, expected) in [
            ("alice", "/users:1: expected a user, `:` and a hash"),
            (
                "\nalice:$apr1$abc$def",
                "/users:2: user \"alice\": its hash is MD5, which is too fast to protect a password: \
                 expected bcrypt, such as `htpasswd -B` writes",
            ),
            (
                "alice:plain",
                "/users:1: user \"alice\": its password is not hashed, or by an unknown function: \
                 expected bcrypt, such as `htpasswd -B` writes",
            ),
            (
                &format!("{ALICE}\n{ALICE}"),
                "/users:2: expected each user once, found \"alice\" again",
            ),
        ] {
            assert_eq!(read(text).expect_err("an error"), expected);
        }
    }
}
