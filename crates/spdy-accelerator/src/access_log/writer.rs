//! The thread that writes the access log. A file that cannot be opened or written is tried again; meanwhile lines wait in the queue.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use spdy_service::notice::Notices;

use super::lines::{Counts, Lines, QUEUE_BYTES, Work};

/// Time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Only the owner and the group may read the file: it has addresses of clients, and URLs.
#[cfg(unix)]
const MODE: u32 = 0o640;

/// The state of the thread.
pub(super) struct Writer {
    lines: Arc<Lines>,
    notices: Notices,
    path: Option<PathBuf>,
    /// `None` until it is opened, and after an error.
    file: Option<File>,
    /// Lines that are being written, from `at` on.
    taken: Vec<u8>,
    at: usize,
    /// The last attempt failed.
    is_failing: bool,
    /// Lines that were dropped before the file was opened.
    dropped_before: u64,
    /// Dropped lines were reported since then.
    has_reported_drops: bool,
}

impl Writer {
    pub(super) fn new(lines: Arc<Lines>, notices: Notices) -> Self {
        Self {
            lines,
            notices,
            path: None,
            file: None,
            taken: Vec::new(),
            at: 0,
            is_failing: false,
            dropped_before: 0,
            has_reported_drops: false,
        }
    }

    /// Writes lines until the stop.
    pub(super) fn run(mut self) {
        loop {
            let work = match self.taken.is_empty() && !self.is_failing {
                true => self.lines.wait_for_work(),
                false => self.lines.wait_for_retry(RETRY_INTERVAL),
            };
            let is_last = work.is_last;
            self.handle(work);
            self.report_drops();
            if is_last {
                return self.end();
            }
        }
    }

    fn handle(&mut self, work: Work) {
        if !work.lines.is_empty() {
            (self.taken, self.at) = (work.lines, 0);
        }
        // The waiting lines belong to the previous file.
        self.attempt();
        if let Some(path) = work.path {
            self.skip_partial_line();
            (self.path, self.file) = (path, None);
            (self.is_failing, self.has_reported_drops) = (false, false);
            self.dropped_before = self.dropped();
            self.attempt();
        }
        if self.path.is_none() {
            self.drop_taken();
        }
    }

    /// Writes what was added while the last attempt failed. It is dropped if the file still cannot be written.
    fn end(mut self) {
        if self.taken.is_empty() {
            self.taken = self.lines.take();
            self.attempt();
        }
        self.drop_taken();
        self.taken = self.lines.take();
        self.drop_taken();
    }

    /// Writes the taken lines, and reports the first error and the end of errors.
    fn attempt(&mut self) {
        let Some(path) = self.path.clone() else {
            return;
        };
        match self.try_write(&path) {
            Ok(()) => {
                if self.is_failing {
                    let path = path.display();
                    let text = format_args!("the access log {path} is written again");
                    self.notices.info(text);
                }
                self.is_failing = false;
            }
            Err(error) => {
                Counts::add(&self.lines.counts.errors, 1);
                self.file = None;
                if !self.is_failing {
                    self.notices.error(
                        format_args!("cannot write the access log {}", path.display()),
                        format_args!(
                            ": {error}; {} MiB of lines wait for it, further ones are dropped",
                            QUEUE_BYTES >> 20
                        ),
                    );
                }
                self.is_failing = true;
            }
        }
    }

    fn try_write(&mut self, path: &Path) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open(path)?),
        };
        while self.at < self.taken.len() {
            match file.write(&self.taken[self.at..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => self.at += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let written = count_lines(&self.taken);
        Counts::add(&self.lines.counts.written, written);
        self.clear_taken();
        Ok(())
    }

    /// Drops the rest of a line whose start is in the previous file, and removes the written lines from the buffer.
    fn skip_partial_line(&mut self) {
        let written = &self.taken[..self.at];
        Counts::add(&self.lines.counts.written, count_lines(written));
        let is_within_line = written.last().is_some_and(|byte| *byte != b'\n');
        let rest = &self.taken[self.at..];
        let start = match rest.iter().position(|byte| *byte == b'\n') {
            Some(end) if is_within_line => {
                Counts::add(&self.lines.counts.dropped, 1);
                self.at + end + 1
            }
            _ => self.at,
        };
        self.taken.drain(..start);
        self.at = 0;
    }

    fn drop_taken(&mut self) {
        self.skip_partial_line();
        Counts::add(&self.lines.counts.dropped, count_lines(&self.taken));
        self.clear_taken();
    }

    fn clear_taken(&mut self) {
        (self.taken, self.at) = (Vec::new(), 0);
        self.lines.set_taken_written();
    }

    fn dropped(&self) -> u64 {
        self.lines.counts.dropped.load(Ordering::Relaxed)
    }

    fn report_drops(&mut self) {
        let dropped = self.dropped() - self.dropped_before;
        if dropped > 0 && !self.has_reported_drops && self.path.is_some() {
            self.has_reported_drops = true;
            self.notices.warning(
                "lines of the access log were dropped",
                format_args!(
                    ": {dropped} so far, because the file was not written fast enough; \
                     spdy_access_log_lines_total counts them"
                ),
            );
        }
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, MODE);
    options.open(path)
}
