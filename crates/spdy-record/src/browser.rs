//! One browser for one recording: it starts with a fresh profile, which is removed afterwards in every case.
//!
//! The DevTools protocol uses pipes, not a port: no other process can connect to the browser. When this process ends in any way, the
//! pipes close and the browser exits by itself.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, Uid};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::devtools_pipe::Pipe;
use crate::error::RecordError;
use crate::options::RecordOptions;

/// Names of installed browsers.
const NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];

/// Timeout for a browser to write its log after `Browser.close`.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Interval of checks of the log's length.
const LOG_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Pauses after failed attempts to remove a profile: a process may still write to it.
const REMOVALS: [Duration; 5] = [
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// Headless, without background traffic, and with a complete NetLog.
const ARGUMENTS: [&str; 18] = [
    "--headless",
    "--remote-debugging-pipe",
    "--net-log-capture-mode=Everything",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-sync",
    "--disable-features=Translate,OptimizationHints,MediaRouter,AutofillServerCommunication",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
    "--no-startup-window",
    "--window-size=1366,768",
];

/// The shell moves our pipes to the descriptors 3 and 4, which the browser uses, and becomes the browser.
const SHELL: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null"#;

/// A running browser.
#[derive(Debug)]
pub(crate) struct Browser {
    child: Child,
    /// Its process group: the browser has many processes.
    group: Option<Pid>,
    profile: Option<TempDir>,
}

impl Browser {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// [`RecordError::NoBrowser`] and [`RecordError::Start`].
    pub(crate) fn start(options: &RecordOptions) -> Result<(Self, Pipe), RecordError> {
        let program = match &options.browser {
            Some(program) => program.clone(),
            None => find()?,
        };
        let fault = |cause| RecordError::Start {
            program: program.display().to_string(),
            cause,
        };
        if program.components().count() > 1 && !program.is_file() {
            return Err(fault(std::io::ErrorKind::NotFound.into()));
        }
        let profile = tempfile::Builder::new()
            .prefix("spdy-record-")
            .tempdir()
            .map_err(fault)?;
        let stderr = File::create(stderr_of(profile.path())).map_err(fault)?;
        let [scratch, home] = ["t", "home"].map(|name| profile.path().join(name));
        for folder in [&scratch, &home] {
            std::fs::create_dir(folder).map_err(fault)?;
        }
        let mut command = Command::new("sh");
        command
            .args(["-c", SHELL, "sh"])
            .arg(&program)
            .args(ARGUMENTS)
            .arg(format!(
                "--user-data-dir={}",
                profile.path().join("profile").display()
            ))
            .arg(format!(
                "--log-net-log={}",
                log_of(profile.path()).display()
            ));
        if Uid::effective().is_root() {
            // Chromium does not start as root with its sandbox.
            command.arg("--no-sandbox");
        }
        command.arg(match &options.force_quic[..] {
            [] => "--disable-quic".to_owned(),
            origins => format!("--origin-to-force-quic-on={}", origins.join(",")),
        });
        if options.key_log {
            let file = key_log_of(profile.path());
            command.arg(format!("--ssl-key-log-file={}", file.display()));
        }
        if options.insecure {
            command.arg("--ignore-certificate-errors");
        }
        if !options.resolve.is_empty() {
            let rules: Vec<String> = options.resolve.iter().map(ToString::to_string).collect();
            command.arg(format!("--host-resolver-rules={}", rules.join(", ")));
        }
        command.args(&options.browser_arguments);
        let mut child = command
            // Files that it leaves when it is killed are removed with its profile.
            .env("TMPDIR", scratch)
            // Even with a profile, the browser and its libraries write to the user's home: crash reports, caches.
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("XDG_DATA_HOME", home.join("data"))
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            // Not affected by Ctrl-C: this program decides when it ends.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(fault)?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("stdin and stdout are configured as pipes")
        };
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        let browser = Self {
            child,
            group: group.map(Pid::from_raw),
            profile: Some(profile),
        };
        Ok((browser, Pipe::new(to, from, options.message_bytes)))
    }

    /// The last line of its stderr.
    pub(crate) fn last_stderr_line(&self) -> String {
        let path = self
            .profile
            .as_ref()
            .map(|profile| stderr_of(profile.path()));
        let stderr = path
            .and_then(|path| std::fs::read(path).ok())
            .unwrap_or_default();
        let stderr = String::from_utf8_lossy(&stderr);
        let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
        last.unwrap_or("no output on stderr").to_owned()
    }

    /// Closes the browser, and waits for its exit: it writes the end of its log only then.
    pub(crate) async fn finish(&mut self, pipe: &mut Pipe) {
        pipe.send(None, "Browser.close", &serde_json::json!({}))
            .await;
        let exit = async {
            // It may not exit before its output is read.
            while let Ok(Some(_)) = pipe.next().await {}
            self.child.wait().await
        };
        if timeout(EXIT_TIMEOUT, exit).await.is_err() {
            tracing::warn!("the browser did not exit in time and is killed: its log is incomplete");
        }
    }

    /// Completes soon after its log exceeds `limit` bytes: the length is polled.
    pub(crate) fn log_exceeds(&self, limit: usize) -> impl Future<Output = ()> + use<> {
        let log = log_of(self.folder());
        async move {
            let length = || std::fs::metadata(&log).map_or(0, |about| about.len());
            while length() <= limit as u64 {
                sleep(LOG_POLL_INTERVAL).await;
            }
        }
    }

    /// Its log so far, up to `limit` bytes, and whether there is more.
    ///
    /// # Errors
    ///
    /// [`RecordError::Log`] if there is no log.
    pub(crate) fn log(&self, limit: usize) -> Result<(Vec<u8>, bool), RecordError> {
        read(&log_of(self.folder()), limit).map_err(RecordError::Log)
    }

    /// The secrets that it logged, up to `limit` bytes; without secrets there is no file.
    pub(crate) fn key_log(&self, limit: usize) -> Vec<u8> {
        let read = read(&key_log_of(self.folder()), limit);
        let (secrets, is_longer) = read.unwrap_or_default();
        if is_longer {
            tracing::warn!(
                limit,
                "the browser's key log exceeds the limit; the rest is dropped"
            );
        }
        secrets
    }

    fn folder(&self) -> &Path {
        match &self.profile {
            Some(profile) => profile.path(),
            None => unreachable!("the profile exists until the browser ends"),
        }
    }

    /// Kills it and removes its profile.
    pub(crate) async fn end(&mut self) {
        self.kill();
        // A killed process ends soon.
        let _ = timeout(EXIT_TIMEOUT, self.child.wait()).await;
        let Some(profile) = self.profile.take() else {
            return;
        };
        let path = profile.keep();
        // Helper processes that exit later may still write.
        for pause in REMOVALS {
            match std::fs::remove_dir_all(&path) {
                Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => {
                    tracing::debug!(%fault, "cannot remove the browser's profile yet");
                    sleep(pause).await;
                }
                _ => return,
            }
        }
        tracing::warn!(path = %path.display(), "cannot remove the browser's profile");
    }

    /// Kills all its processes; [`Browser::end`] removes its files.
    pub(crate) fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // The first process of the group may have exited while its helpers have not.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.kill();
    }
}

fn log_of(folder: &Path) -> PathBuf {
    folder.join("netlog.json")
}

fn stderr_of(folder: &Path) -> PathBuf {
    folder.join("stderr.txt")
}

fn key_log_of(folder: &Path) -> PathBuf {
    folder.join("keys.txt")
}

/// The first `limit` bytes of a file, and whether there are more.
fn read(path: &Path, limit: usize) -> std::io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let mut file = File::open(path)?.take(limit as u64 + 1);
    file.read_to_end(&mut bytes)?;
    let is_longer = bytes.len() > limit;
    bytes.truncate(limit);
    Ok((bytes, is_longer))
}

/// The first browser in PATH.
fn find() -> Result<PathBuf, RecordError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut candidates = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let tried = NAMES.to_vec();
    candidates
        .find(|candidate| candidate.is_file())
        .ok_or(RecordError::NoBrowser { tried })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_up_to_its_limit_and_a_missing_one_is_an_error() {
        let folder = tempfile::tempdir().expect("a temporary folder can be created");
        let log = log_of(folder.path());
        let missing = read(&log, 5).map_err(|fault| fault.kind());
        assert_eq!(missing, Err(std::io::ErrorKind::NotFound));
        std::fs::write(&log, "12345").expect("the folder is writable");
        assert_eq!(read(&log, 5).unwrap(), (b"12345".to_vec(), false));
        assert_eq!(read(&log, 4).unwrap(), (b"1234".to_vec(), true));
    }
}
