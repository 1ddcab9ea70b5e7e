//! Locks the cache folder: only one process reads and writes it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// The lock of a folder. If the folder is emptied, the file `lock` is deleted too, and another process could lock a new file of that name.
/// So the folder itself is also locked, if the system can lock folders. Some network file systems cannot.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: File,
    folder: Option<File>,
}

impl FolderLock {
    /// Locks the folder at `path`.
    ///
    /// # Errors
    ///
    /// Another process has the lock, or the file cannot be created.
    pub(crate) fn take(path: &Path) -> io::Result<Self> {
        let file = File::create(path.join("lock"))?;
        take(&file)?;
        let mut lock = Self { file, folder: None };
        if let Ok(folder) = File::open(path) {
            match folder.try_lock() {
                Ok(()) => lock.folder = Some(folder),
                Err(TryLockError::WouldBlock) => return Err(locked_by_other_process()),
                Err(TryLockError::Error(_)) => {}
            }
        }
        Ok(lock)
    }

    /// Releases the folder for another process.
    pub(crate) fn lend(&self) -> io::Result<()> {
        if let Some(folder) = &self.folder {
            folder.unlock()?;
        }
        self.file.unlock()
    }

    /// Locks the folder again.
    pub(crate) fn take_back(&self) -> io::Result<()> {
        take(&self.file)?;
        self.folder.as_ref().map_or(Ok(()), take)
    }
}

/// Unlocks instead of only closing the files. A lock of `flock(2)` lasts until the last copy of its file descriptor is closed, and a child
/// process that was forked and has not yet called `exec` has copies.
impl Drop for FolderLock {
    fn drop(&mut self) {
        let folder = self.folder.as_ref().map_or(Ok(()), File::unlock);
        if let Err(error) = self.file.unlock().and(folder) {
            tracing::warn!(%error, "cannot unlock the cache folder: it stays locked until its files are closed");
        }
    }
}

fn take(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => locked_by_other_process(),
        TryLockError::Error(error) => error,
    })
}

fn locked_by_other_process() -> io::Error {
    io::Error::other("another process has it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_lock_is_released_despite_forked_child() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let lock = FolderLock::take(folder.path()).expect("the folder is free");
        // Copies of the descriptors, as a child process has them between fork and exec.
        let copies = (
            lock.file.try_clone().expect("a copy"),
            lock.folder.as_ref().map(File::try_clone),
        );
        drop(lock);
        FolderLock::take(folder.path()).expect("the lock was released");
        drop(copies);
    }

    #[test]
    fn folder_lock_survives_deleted_file_and_can_be_lent() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let lock = FolderLock::take(folder.path()).expect("the folder is not locked");
        let reason = FolderLock::take(folder.path()).expect_err("the lock is held");
        assert_eq!(reason.to_string(), "another process has it");
        std::fs::remove_file(folder.path().join("lock")).expect("the file exists");
        FolderLock::take(folder.path()).expect_err("the lock is still held");
        lock.lend().expect("the key matches");
        let other = FolderLock::take(folder.path()).expect("the permit is granted");
        drop(other);
        lock.take_back().expect("the folder is not locked");
    }
}
