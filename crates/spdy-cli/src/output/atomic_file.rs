//! A file that appears only when it is complete. It is reserved before the work that fills it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

/// A file that is complete as soon as it is visible. Until [`AtomicFile::write`], the path has no file, or still has
/// the previous one.
pub(crate) struct AtomicFile {
    path: PathBuf,
    place: Target,
}

enum Target {
    /// A file under a temporary name in the target's folder.
    Temporary(NamedTempFile),
    /// An existing file, which keeps its permissions and links, or a device.
    Existing(File),
}

impl AtomicFile {
    /// Reserves `path`, so that a path that is not writable fails now and not after the work.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let place = if path.exists() {
            OpenOptions::new()
                .write(true)
                .open(path)
                .map(Target::Existing)
        } else {
            let folder = path.parent().filter(|folder| *folder != Path::new(""));
            let mut builder = tempfile::Builder::new();
            builder.prefix(".spdy-");
            // As of any new file: the process's mask takes from them.
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
            builder
                .tempfile_in(folder.unwrap_or(Path::new(".")))
                .map(Target::Temporary)
        };
        let path = path.to_owned();
        let place = place.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path, place })
    }

    /// Writes `bytes` and makes the file visible.
    pub(crate) fn write(self, bytes: &[u8]) -> anyhow::Result<()> {
        self.write_by(|file| file.write_all(bytes))
    }

    /// Lets `fill` write the file piece by piece, and makes it visible.
    pub(crate) fn write_by(
        self,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let Self { path, place } = self;
        let written = match place {
            Target::Temporary(mut file) => fill_file(file.as_file_mut(), fill)
                .and_then(|()| Ok(file.persist(&path).map(drop)?)),
            Target::Existing(file) => overwrite(file, fill),
        };
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

fn overwrite(
    mut file: File,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // A device or a pipe has no length to cut.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    fill_file(&mut file, fill)
}

fn fill_file(
    file: &mut File,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    fill(&mut file)?;
    file.flush()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_unwritten_file_leaves_the_target_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let [new, old] = ["new", "old"].map(|name| folder.path().join(name));
        fs::write(&old, "as it was, and longer").unwrap();
        let names = || {
            let entries = fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        for path in [&new, &old] {
            drop(AtomicFile::create(path).unwrap());
        }
        assert_eq!(names(), ["old"]);
        assert_eq!(fs::read(&old).unwrap(), b"as it was, and longer");

        for path in [&new, &old] {
            AtomicFile::create(path).unwrap().write(b"whole").unwrap();
            assert_eq!(fs::read(path).unwrap(), b"whole");
        }
        assert_eq!(names(), ["new", "old"]);
        let plain = folder.path().join("plain");
        fs::write(&plain, "").unwrap();
        let rights = |path: &Path| fs::metadata(path).unwrap().permissions();
        assert_eq!(rights(&new), rights(&plain));
        AtomicFile::create(Path::new("/dev/null"))
            .unwrap()
            .write(b"gone")
            .unwrap();
    }

    #[test]
    fn a_file_written_in_pieces_appears_atomically() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let broken = AtomicFile::create(&path).unwrap().write_by(|file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        let message = broken.err().unwrap().to_string();
        assert_eq!(message, format!("cannot write {}", path.display()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

        let file = AtomicFile::create(&path).unwrap();
        let pieces = |file: &mut dyn Write| {
            (0..10_000).try_for_each(|number: u32| file.write_all(&number.to_be_bytes()))
        };
        file.write_by(pieces).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 40_000);
    }

    #[test]
    fn an_unwritable_target_fails_immediately() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none/file");
        for path in [&missing, folder.path()] {
            let message = AtomicFile::create(path).err().unwrap().to_string();
            assert_eq!(message, format!("cannot write {}", path.display()));
        }
    }
}
