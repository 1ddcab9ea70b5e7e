//! The built program, run until it exits or as a server during a test.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use spdy_testkit::wait;

use crate::support::json_output::{check_json_lines, check_json_output};

/// How long a program may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Timeout of a program; far more than any needs.
const MAX_RUN_TIME: Duration = Duration::from_secs(300);

/// Maximum number of stored output lines of a running program.
const MAX_LINES: usize = 10_000;

/// The program with `arguments`.
pub(crate) fn spdy(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spdy"));
    command
        .args(arguments)
        .env_remove("SPDY_LOG")
        .env_remove("SSLKEYLOGFILE")
        // The local authority's files.
        .env("XDG_DATA_HOME", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null());
    command
}

/// The output of `command`, which must exit with `code`.
pub(crate) fn run_expecting(code: i32, command: &mut Command) -> Output {
    let output = output(command);
    let text =
        |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(4_000)]).into_owned();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{command:?}\nstdout: {}\nstderr: {}",
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

/// The stdout of the program with `arguments`, which must exit with `code`.
pub(crate) fn stdout_of(code: i32, arguments: &[&str]) -> String {
    String::from_utf8(run_expecting(code, &mut spdy(arguments)).stdout).expect("text is UTF-8")
}

/// The stderr of the program with `arguments`, which must exit with `code`.
pub(crate) fn stderr_of(code: i32, arguments: &[&str]) -> String {
    String::from_utf8(run_expecting(code, &mut spdy(arguments)).stderr).expect("text is UTF-8")
}

/// The output of `command`, which is killed if it does not exit in time.
pub(crate) fn output(command: &mut Command) -> Output {
    output_within(MAX_RUN_TIME, command)
}

/// The output of `command`, which is killed after `longest`. JSON is validated by the schema of the command.
pub(crate) fn output_within(longest: Duration, command: &mut Command) -> Output {
    let spawned = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = spawned.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let output = wait::output_within(longest, child);
    check_json_output(command, &output);
    output
}

/// The output of `child`, which is killed if it does not exit in time.
pub(crate) fn output_of(child: Child) -> Output {
    wait::output_within(MAX_RUN_TIME, child)
}

/// A program that runs until it is dropped. JSON that it has printed is validated then.
pub(crate) struct RunningProgram {
    child: Child,
    command: Command,
    from: ReadyOn,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // All lines are complete before the program is killed.
        if let ReadyOn::Stdout = self.from
            && !thread::panicking()
        {
            check_json_lines(&self.command, self.lines().iter().map(String::as_str));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl RunningProgram {
    /// The process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process has exited.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("wait for the process")
            .is_some()
    }

    /// Waits until the process has exited successfully.
    pub(crate) fn wait_for_exit(&mut self) {
        let status = wait::ended(&mut self.child);
        assert!(status.success(), "{status}: {:#?}", self.lines());
    }

    /// The lines that it has printed so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no thread panicked").clone()
    }

    /// The first line that contains `words`, once it is printed.
    pub(crate) fn line_with(&self, words: &str) -> String {
        self.line_where(words, |lines| {
            lines.iter().find(|line| line.contains(words))
        })
    }

    /// The line with this index, once it is printed.
    pub(crate) fn line(&self, number: usize) -> String {
        self.line_where(&format!("line {number}"), |lines| lines.get(number))
    }

    fn line_where(&self, what: &str, find: impl Fn(&[String]) -> Option<&String>) -> String {
        let start = Instant::now();
        loop {
            {
                let lines = self.lines.lock().expect("no thread panicked");
                if let Some(line) = find(&lines) {
                    return line.clone();
                }
                assert!(start.elapsed() < READY_WITHIN, "no {what:?} in {lines:#?}");
            }
            thread::park_timeout(wait::POLL_INTERVAL);
        }
    }

    /// Starts `command` and passes its output lines to `ready` until that returns a value.
    pub(crate) fn start<T>(
        command: Command,
        from: ReadyOn,
        ready: impl FnMut(&str) -> Option<T>,
    ) -> (Self, T) {
        Self::start_with_stdin(command, Stdio::null(), from, ready)
    }

    /// Like [`start`](Self::start), with `stdin`.
    pub(crate) fn start_with_stdin<T>(
        mut command: Command,
        stdin: Stdio,
        from: ReadyOn,
        mut ready: impl FnMut(&str) -> Option<T>,
    ) -> (Self, T) {
        command.stdin(stdin);
        match from {
            ReadyOn::Stdout => command.stdout(Stdio::piped()).stderr(Stdio::null()),
            ReadyOn::Stderr => command.stderr(Stdio::piped()).stdout(Stdio::null()),
        };
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let lines: Box<dyn Read + Send> = match from {
            ReadyOn::Stdout => Box::new(child.stdout.take().expect("a pipe")),
            ReadyOn::Stderr => Box::new(child.stderr.take().expect("a pipe")),
        };
        let all_lines = Arc::<Mutex<Vec<String>>>::default();
        let shared_lines = all_lines.clone();
        let process = Self {
            child,
            command,
            from,
            lines: all_lines,
        };
        let (sender, receiver) = mpsc::channel();
        // Reads until the end, also after the program is ready: a full pipe would block it.
        thread::spawn(move || {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                let mut all_lines = shared_lines.lock().expect("no thread panicked");
                if all_lines.len() < MAX_LINES {
                    all_lines.push(line.clone());
                }
                drop(all_lines);
                let _ = sender.send(line);
            }
        });
        let mut output = Vec::new();
        loop {
            let Ok(line) = receiver.recv_timeout(READY_WITHIN) else {
                panic!(
                    "{:?} is not ready; its output: {output:#?}",
                    process.command
                );
            };
            if let Some(value) = ready(&line) {
                return (process, value);
            }
            output.push(line);
        }
    }
}

/// Where a program reports that it is ready.
#[derive(Clone, Copy)]
pub(crate) enum ReadyOn {
    /// JSON on stdout, as our drivers print it.
    Stdout,
    /// Text on stderr, as `spdy serve` prints it.
    Stderr,
}

/// `spdy serve`, with a plain and a TLS listener on free ports.
pub(crate) struct ServeProcess {
    _process: RunningProgram,
    pub(crate) plain: SocketAddr,
    pub(crate) tls: SocketAddr,
}

impl ServeProcess {
    /// Serves `what`, a replica or a folder.
    pub(crate) fn start(what: &Path, options: &[&str]) -> Self {
        let mut command = spdy(&["serve"]);
        command
            .arg(what)
            .args(["--plain", "127.0.0.1:0", "--tls", "127.0.0.1:0"])
            .args(options);
        let (mut plain, mut tls) = (None, None);
        let (process, (plain, tls)) = RunningProgram::start(command, ReadyOn::Stderr, |line| {
            plain = plain.or_else(|| address_after(line, "http://"));
            tls = tls.or_else(|| address_after(line, "https://"));
            plain.zip(tls)
        });
        Self {
            _process: process,
            plain,
            tls,
        }
    }

    /// The origin of URLs, with TLS or without.
    pub(crate) fn origin(&self, secure: bool) -> String {
        if secure {
            format!("https://{}", self.tls)
        } else {
            format!("http://{}", self.plain)
        }
    }
}

/// The address that follows `scheme` in `line`.
pub(crate) fn address_after(line: &str, scheme: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(scheme)?;
    let end = rest
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'))
        .unwrap_or(rest.len());
    rest[..end].trim_end_matches(':').parse().ok()
}
