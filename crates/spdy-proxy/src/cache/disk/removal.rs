//! Removes files durably. After a power failure, an unlinked file may be back until its folder has been synced. So a purge is reported as
//! done only after the sync.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;

use crate::cache::disk::folder::DiskFolder;

/// Removals that are not durable yet.
#[derive(Debug, Default)]
pub(crate) struct PendingRemovals {
    /// Names of folders with files that were unlinked after the last sync.
    unsynced: BTreeSet<String>,
    /// Files that could not be unlinked. Their number is limited by the number of files.
    failed: BTreeSet<String>,
}

impl DiskFolder {
    /// Removes the file of this name. If that fails, [`settle`](Self::settle) tries again.
    pub(crate) fn unlink(&self, name: &str) {
        let removed = fs::remove_file(self.file(name));
        let mut removals = self.removals.lock();
        match removed {
            Ok(()) => _ = removals.unsynced.insert(name[..2].to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(name, %error, "cannot remove a file of the cache");
                removals.failed.insert(name.to_owned());
            }
        }
    }

    /// A new file of this name was written, so the name is no longer removed.
    pub(crate) fn cancel_removal(&self, name: &str) {
        self.removals.lock().failed.remove(name);
    }

    /// Makes all removals durable, so that no crash brings a file back. Gives `false` if one of them failed.
    pub(crate) fn sync_removals(&self) -> bool {
        let failed = std::mem::take(&mut self.removals.lock().failed);
        failed.iter().for_each(|name| self.unlink(name));
        let unsynced = std::mem::take(&mut self.removals.lock().unsynced);
        for folder in unsynced {
            match sync(&self.path.join(&folder)) {
                // If the folder is gone, so are its files.
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(folder, %error, "cannot sync a folder of the cache");
                    self.removals.lock().unsynced.insert(folder);
                }
                _ => {}
            }
        }
        let removals = self.removals.lock();
        removals.failed.is_empty() && removals.unsynced.is_empty()
    }
}

/// Makes the names in the folder at `path` durable. A folder can be synced on Unix only; other systems handle this themselves.
fn sync(path: &std::path::Path) -> io::Result<()> {
    match cfg!(unix) {
        true => File::open(path)?.sync_all(),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "ab12";

    /// A folder with one file.
    fn folder() -> (tempfile::TempDir, DiskFolder) {
        let at = tempfile::tempdir().expect("a folder can be made");
        let folder = DiskFolder::new(at.path(), 1 << 20);
        fs::create_dir(at.path().join("ab")).expect("the folder can be created");
        fs::write(folder.file(NAME), "kept").expect("the folder can be written to");
        (at, folder)
    }

    #[test]
    fn unlinked_file_is_durable_after_folder_sync() {
        let (_at, folder) = folder();
        folder.unlink(NAME);
        assert_eq!(folder.removals.lock().unsynced.len(), 1);
        assert!(folder.sync_removals());
        assert!(folder.removals.lock().unsynced.is_empty());
        folder.unlink(NAME);
        assert!(folder.sync_removals(), "it was already removed");
    }

    #[test]
    fn failed_removal_is_logged_and_retried() {
        let (_at, folder) = folder();
        let path = folder.file(NAME);
        fs::remove_file(&path).expect("the file exists");
        fs::create_dir(&path).expect("a folder in its place, which unlink cannot remove");
        folder.unlink(NAME);
        assert!(!folder.sync_removals());
        fs::remove_dir(&path).expect("the folder is empty");
        assert!(folder.sync_removals());
    }

    #[test]
    fn rewritten_file_is_not_removed() {
        let (_at, folder) = folder();
        let path = folder.file(NAME);
        fs::remove_file(&path).expect("the file exists");
        fs::create_dir(&path).expect("the folder can be created");
        folder.unlink(NAME);
        fs::remove_dir(&path).expect("the folder is empty");
        fs::write(&path, "new").expect("the folder can be written to");
        folder.cancel_removal(NAME);
        assert!(folder.sync_removals() && path.exists());
    }
}
