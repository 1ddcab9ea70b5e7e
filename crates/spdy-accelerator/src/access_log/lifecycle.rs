//! Starts the access log with the program, applies reloads and SIGUSR1 to it, and ends it.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use spdy_proxy::config::access_log::{AccessLogConfig, AccessLogFormat};
use spdy_proxy::telemetry::access_log::{AccessLog as Receiver, AccessLogEntry};
use spdy_proxy::telemetry::shared_access_log::SharedAccessLog;
use spdy_service::notice::Notices;

use super::lines::Lines;
use super::writer::Writer;
use super::{combined, json};

/// How long the program waits at its end for lines that are not written yet.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The access log: the file, and the lines that the program prints.
pub(crate) struct AccessLog {
    /// The handle by which requests report their responses.
    pub(crate) shared: SharedAccessLog,
    pub(crate) lines: Arc<Lines>,
    /// Prints each response, with `--verbose`.
    printed: Option<Receiver>,
    /// The thread that writes the file, from the first file on.
    writer: Mutex<Option<JoinHandle<()>>>,
    notices: Notices,
}

impl AccessLog {
    /// Writes to the file of `config`, and reports each response to `printed`.
    pub(crate) fn start(
        config: Option<&AccessLogConfig>,
        printed: Option<Receiver>,
        notices: &Notices,
    ) -> Self {
        let log = Self {
            shared: SharedAccessLog::default(),
            lines: Arc::default(),
            printed,
            writer: Mutex::default(),
            notices: notices.clone(),
        };
        log.reload(config);
        log
    }

    /// Writes to the file of `config` from now on, opened again if it is the same.
    pub(crate) fn reload(&self, config: Option<&AccessLogConfig>) {
        let has_file = config.is_some() && self.start_writer();
        let config = config.filter(|_| has_file);
        self.lines.open(config.map(|config| config.file.clone()));
        let written = config.map(|config| self.file_receiver(config.format));
        let receiver = match (self.printed.clone(), written) {
            (Some(printed), Some(written)) => Some(both(printed, written)),
            (printed, written) => printed.or(written),
        };
        self.shared.replace(receiver);
    }

    /// Opens the file again, after logrotate has renamed it.
    pub(crate) fn reopen(&self) {
        if self.lines.reopen() {
            self.notices.info("opening the access log again");
        }
    }

    /// Writes the waiting lines, up to a timeout.
    pub(crate) async fn end(self) {
        self.lines.stop();
        let Some(writer) = self.writer.into_inner() else {
            return;
        };
        let ended = tokio::task::spawn_blocking(|| writer.join());
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, ended).await.is_err() {
            self.notices.warning(
                "some lines of the access log were not written",
                ": the disk is too slow",
            );
        }
    }

    /// The receiver of responses that adds a line of `format` to the queue.
    fn file_receiver(&self, format: AccessLogFormat) -> Receiver {
        let lines = self.lines.clone();
        match format {
            AccessLogFormat::Combined => {
                Arc::new(move |entry: &AccessLogEntry| lines.add(&combined::line(entry)))
            }
            AccessLogFormat::Json => {
                Arc::new(move |entry: &AccessLogEntry| lines.add(&json::line(entry)))
            }
        }
    }

    /// Starts the thread if there is none. False if the system has none.
    fn start_writer(&self) -> bool {
        let mut writer = self.writer.lock();
        if writer.is_some() {
            return true;
        }
        let task = Writer::new(self.lines.clone(), self.notices.clone());
        let started = thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(|| task.run());
        match started {
            Ok(started) => *writer = Some(started),
            Err(error) => self.notices.error(
                "there is no access log",
                format_args!(": cannot start its thread: {error}"),
            ),
        }
        writer.is_some()
    }
}

fn both(first: Receiver, second: Receiver) -> Receiver {
    Arc::new(move |entry: &AccessLogEntry| {
        first(entry);
        second(entry);
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::Ordering;

    use spdy_testkit::wait::until;

    use super::*;
    use crate::access_log::json::tests::entry;
    use crate::access_log::lines::QUEUE_BYTES;

    type Reported = Arc<Mutex<Vec<String>>>;

    fn notices() -> (Notices, Reported) {
        let reported = Reported::default();
        let sink = reported.clone();
        let receive = move |notice: &spdy_service::notice::Notice| {
            let text = format!("{}{}", notice.subject, notice.detail);
            sink.lock().push(text);
        };
        (Notices::new(receive), reported)
    }

    fn config(file: &Path) -> AccessLogConfig {
        let text = format!(
            "[access_log]\nfile = {:?}\n[[site]]\nnames = ['a.test']\norigin = 'https://b.test'\n",
            file.display().to_string()
        );
        let config = spdy_proxy::config::Config::parse(&text).expect("a valid configuration");
        config.access_log.expect("the table is there")
    }

    fn log(lines: &AccessLog, count: usize) {
        let receiver = lines.file_receiver(AccessLogFormat::Combined);
        for _ in 0..count {
            receiver(&entry());
        }
    }

    fn line_count(path: &Path) -> usize {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
        text.lines().count()
    }

    fn end(log: AccessLog) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("create a runtime");
        runtime.block_on(log.end());
    }

    struct Files {
        _folder: tempfile::TempDir,
        first: PathBuf,
        second: PathBuf,
    }

    fn files() -> Files {
        let folder = tempfile::tempdir().expect("create a folder");
        Files {
            first: folder.path().join("access.log"),
            second: folder.path().join("access.log.1"),
            _folder: folder,
        }
    }

    #[test]
    fn a_renamed_file_is_opened_again_and_loses_no_line() {
        let (notices, _) = notices();
        let files = files();
        let lines = AccessLog::start(Some(&config(&files.first)), None, &notices);
        log(&lines, 3);
        until("the lines are written", || line_count(&files.first) == 3);
        let mode = std::fs::metadata(&files.first).expect("the file exists");
        assert_eq!(mode.permissions().mode() & 0o137, 0);
        std::fs::rename(&files.first, &files.second).expect("rename the file");
        log(&lines, 2);
        lines.reopen();
        until("the file is created again", || files.first.exists());
        assert_eq!(line_count(&files.second), 5, "lines of the time before");
        log(&lines, 4);
        let counts = lines.lines.clone();
        end(lines);
        assert_eq!(line_count(&files.first), 4, "written at the end");
        assert_eq!(counts.counts.written.load(Ordering::Relaxed), 9);
    }

    #[test]
    fn a_full_disk_is_reported_once_and_lines_wait_for_another_file() {
        let (notices, reported) = notices();
        let files = files();
        let full = Path::new("/dev/full");
        let lines = AccessLog::start(Some(&config(full)), None, &notices);
        log(&lines, 3);
        let errors = || lines.lines.counts.errors.load(Ordering::Relaxed);
        until("writing was tried again", || errors() >= 2);
        log(&lines, 1);
        assert_eq!(reported.lock().len(), 1, "{:?}", reported.lock());
        assert!(reported.lock()[0].starts_with("cannot write the access log /dev/full: "));
        lines.reload(Some(&config(&files.first)));
        until("all lines are written", || line_count(&files.first) == 4);
        assert_eq!(lines.lines.counts.dropped.load(Ordering::Relaxed), 0);
        end(lines);
    }

    #[test]
    fn a_file_that_cannot_be_created_is_tried_again() {
        let (notices, reported) = notices();
        let files = files();
        let folder = files.second.join("log");
        let path = folder.join("access.log");
        let lines = AccessLog::start(Some(&config(&path)), None, &notices);
        log(&lines, 1);
        until("the error is reported", || !reported.lock().is_empty());
        std::fs::create_dir_all(&folder).expect("create a folder");
        until("the line is written", || line_count(&path) == 1);
        until("the end of the error is reported", || {
            reported.lock().len() == 2
        });
        assert!(reported.lock()[1].ends_with("is written again"));
        end(lines);
    }

    #[test]
    fn lines_above_the_bound_are_dropped_and_reported_once() {
        let (notices, reported) = notices();
        let lines = AccessLog::start(Some(&config(Path::new("/dev/full"))), None, &notices);
        let line_len = combined::line(&entry()).len();
        let fitting = QUEUE_BYTES / line_len;
        log(&lines, fitting + 10);
        assert_eq!(lines.lines.counts.dropped.load(Ordering::Relaxed), 10);
        until("both problems are reported", || reported.lock().len() == 2);
        log(&lines, 10);
        let files = files();
        let counts = lines.lines.clone();
        lines.reload(Some(&config(&files.first)));
        until("the others are written", || {
            counts.counts.written.load(Ordering::Relaxed) == fitting as u64
        });
        end(lines);
        assert_eq!(line_count(&files.first), fitting);
        assert_eq!(counts.counts.dropped.load(Ordering::Relaxed), 20);
    }

    #[test]
    fn a_reload_without_a_file_ends_the_log() {
        let (notices, _) = notices();
        let files = files();
        let lines = AccessLog::start(Some(&config(&files.first)), None, &notices);
        until("the file is created", || files.first.exists());
        log(&lines, 1);
        lines.reload(None);
        until("the line is written", || line_count(&files.first) == 1);
        // A response that was in progress.
        log(&lines, 1);
        let counts = lines.lines.clone();
        end(lines);
        assert_eq!(line_count(&files.first), 1);
        assert_eq!(counts.counts.dropped.load(Ordering::Relaxed), 1);
    }
}
