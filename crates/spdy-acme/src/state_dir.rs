//! The state directory: the account, and each certificate with its key.
//!
//! ```text
//!  FOLDER                                   readable by the owner only (0700), like all files in it (0600)
//!    acme-v02.api.letsencrypt.org-4a1b…     a folder for each directory: trying another authority does not touch the first
//!      account.json                         the account's key, and its URL at the authority
//!      www.site.test.pem                    a certificate's key, and its chain, by the first of its names
//! ```
//!
//! Key and chain are in one file, which is replaced atomically, so that they match each other even after a kill.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use spdy_net::tls::certificates::Identity;
use url::Url;

use crate::error::AcmeError;

/// The folder of one authority.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StateDir(PathBuf);

const ACCOUNT: &str = "account.json";

impl StateDir {
    /// The subfolder of `folder` for `directory`; created if it does not exist.
    ///
    /// # Errors
    ///
    /// It cannot be created or opened.
    pub fn open(folder: &Path, directory: &Url) -> Result<Self, AcmeError> {
        let digest = Sha256::digest(directory.as_str());
        let digest: String = digest.iter().take(4).map(|b| format!("{b:02x}")).collect();
        let host = directory.host_str().unwrap_or_default();
        let host = host.trim_matches(['[', ']']).replace(':', "_");
        let path = folder.join(format!("{host}-{digest}"));
        for folder in [folder, &path] {
            make(folder).map_err(|source| at(folder, source))?;
        }
        Ok(Self(path))
    }

    /// The account, if there is one.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn load_account(&self) -> Result<Option<Vec<u8>>, AcmeError> {
        self.read(ACCOUNT)
    }

    /// Stores the account.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save_account(&self, account: &[u8]) -> Result<(), AcmeError> {
        self.write(ACCOUNT, account)
    }

    /// Path of the account file.
    #[must_use]
    pub fn account_path(&self) -> PathBuf {
        self.0.join(ACCOUNT)
    }

    /// Renames the account file to `.json.old`, so that the next start creates an account.
    ///
    /// # Errors
    ///
    /// The file cannot be renamed.
    pub fn archive_account(&self) -> Result<(), AcmeError> {
        let path = self.account_path();
        fs::rename(&path, path.with_extension("json.old")).map_err(|source| at(&path, source))
    }

    /// The certificate whose first name is `name`, if there is one.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is damaged.
    pub fn load_certificate(&self, name: &str) -> Result<Option<Identity>, AcmeError> {
        let file = file(name);
        let Some(text) = self.read(&file)? else {
            return Ok(None);
        };
        let what = self.0.join(file).display().to_string();
        Ok(Some(Identity::from_pem(&text, &text, &what)?))
    }

    /// Stores a certificate.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save_certificate(&self, name: &str, identity: &Identity) -> Result<(), AcmeError> {
        let text = format!("{}{}", identity.key_pem(), identity.chain_pem());
        self.write(&file(name), text.as_bytes())
    }

    fn read(&self, file: &str) -> Result<Option<Vec<u8>>, AcmeError> {
        let path = self.0.join(file);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(at(&path, source)),
        }
    }

    fn write(&self, file: &str, bytes: &[u8]) -> Result<(), AcmeError> {
        let path = self.0.join(file);
        let new = self.0.join(format!(".{file}.{}", std::process::id()));
        let written = (|| {
            // A file left by a killed program may be readable by others, or incomplete.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut written = options.open(&new)?;
            written.write_all(bytes)?;
            written.sync_all()?;
            fs::rename(&new, &path)
        })();
        written.map_err(|source| {
            let _ = fs::remove_file(&new);
            at(&path, source)
        })
    }
}

/// A wildcard's `*` is not used in file names.
fn file(name: &str) -> String {
    format!("{}.pem", name.replace('*', "_"))
}

fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn at(path: &Path, source: io::Error) -> AcmeError {
    AcmeError::Folder {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use spdy_net::tls::certificates::{KeyKind, LocalCa};

    use super::*;

    fn directory(url: &str) -> Url {
        Url::parse(url).unwrap()
    }

    #[test]
    fn saved_state_is_loaded_only_for_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/acme");
        let live = directory("https://acme.test/directory");
        let folder = StateDir::open(&path, &live).unwrap();
        assert!(folder.load_account().unwrap().is_none());
        assert!(folder.load_certificate("*.a.test").unwrap().is_none());
        let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
        let [first, second] = [(); 2].map(|()| ca.issue(&["*.a.test".to_owned()], &[]).unwrap());
        folder.save_account(b"{}").unwrap();
        for identity in [&first, &second] {
            folder.save_certificate("*.a.test", identity).unwrap();
            let reopened = StateDir::open(&path, &live).unwrap();
            let saved = reopened.load_certificate("*.a.test").unwrap().unwrap();
            assert_eq!(saved.chain, identity.chain);
            assert_eq!(saved.key, identity.key);
        }
        assert_eq!(folder.load_account().unwrap().as_deref(), Some(&b"{}"[..]));
        for other in ["https://acme.test/staging", "https://[::1]:14000/dir"] {
            let other = StateDir::open(&path, &directory(other)).unwrap();
            assert!(other.load_account().unwrap().is_none());
            assert!(other.load_certificate("*.a.test").unwrap().is_none());
        }
        folder.archive_account().unwrap();
        assert!(folder.load_account().unwrap().is_none());
    }

    #[cfg(unix)]
    #[test]
    fn state_files_are_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("acme");
        let folder = StateDir::open(&path, &directory("https://acme.test/")).unwrap();
        folder.save_account(b"{}").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&folder.0), 0o700);
        assert_eq!(mode(&folder.account_path()), 0o600);
    }

    #[test]
    fn invalid_certificate_file_error_has_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let folder = StateDir::open(dir.path(), &directory("https://acme.test/")).unwrap();
        folder.write("a.test.pem", b"what?").unwrap();
        let error = folder.load_certificate("a.test").unwrap_err().to_string();
        assert!(error.contains("a.test.pem"), "{error}");
    }
}
