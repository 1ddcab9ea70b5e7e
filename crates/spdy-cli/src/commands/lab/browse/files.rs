//! The files that `spdy lab browse` writes of loads.

use std::fs;
use std::path::Path;

use anyhow::Context;
use spdy_lab::live::run_files::{CAPTURE_BYTES, RunFiles};
use spdy_page::archive;
use spdy_page::har_export;
use spdy_page::replica::Replica;

use crate::output::{AtomicFile, Printer, WARN};

/// Writes a recording as a replica.
pub(super) fn keep(recording: &Replica, path: &Path) -> anyhow::Result<()> {
    let gzip = path.extension().is_some_and(|extension| extension == "gz");
    let bytes = archive::encode(recording, gzip);
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the files of one load, one at a time, so that memory holds only one of them.
pub(super) fn write(
    run_files: &RunFiles,
    recording: Option<&Replica>,
    folder: &Path,
    name: &str,
    printer: &Printer,
) -> anyhow::Result<()> {
    // Not with_extension: a network may have a dot in its name.
    let path = |ending: &str| folder.join(format!("{name}.{ending}"));
    if let Some(recording) = recording {
        AtomicFile::create(&path("har"))?.write(&har_export::export(recording))?;
        AtomicFile::create(&path("replica.gz"))?.write(&archive::encode(recording, true))?;
    }
    AtomicFile::create(&path("pcapng"))?.write_by(|file| run_files.write_pcapng(file))?;
    match &run_files.png {
        Some(png) => AtomicFile::create(&path("png"))?.write(png)?,
        None => printer.note(format_args!(
            "{WARN}no {}{WARN:#}: the browser rendered nothing",
            path("png").display()
        )),
    }
    if !run_files.filmstrip.screenshots.is_empty() {
        let svg = run_files.filmstrip.svg();
        AtomicFile::create(&path("filmstrip.svg"))?.write(svg.as_bytes())?;
    }
    if run_files.left_out() > 0 {
        let (omitted, most) = (run_files.left_out(), CAPTURE_BYTES >> 20);
        printer.note(format_args!(
            "{WARN}{name}.pcapng ends after {most} MiB{WARN:#}: {omitted} later packets are missing"
        ));
    }
    Ok(())
}
