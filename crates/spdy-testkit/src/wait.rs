//! Waits for another process or thread, with a timeout. Every wait has one: a test that hangs reports nothing.

use std::io::Read;
use std::net::TcpStream;
use std::process::{Child, ExitStatus, Output};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The timeout of a wait. It is long enough for a machine with a high load.
pub const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// The poll interval for a condition without a notification.
pub const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Polls until `is_so` returns true, for a condition without a notification.
///
/// # Panics
///
/// With `what`, after [`WAIT_LIMIT`].
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < WAIT_LIMIT,
            "timed out waiting until {what}"
        );
        thread::park_timeout(POLL_INTERVAL);
    }
}

/// Sets the read timeout of `connection` to [`WAIT_LIMIT`].
///
/// # Panics
///
/// If the system has no such setting.
#[must_use]
pub fn with_read_timeout(connection: TcpStream) -> TcpStream {
    let set = connection.set_read_timeout(Some(WAIT_LIMIT));
    set.expect("a read timeout can be set");
    connection
}

/// Waits until `child` has ended.
///
/// # Panics
///
/// If `child` has not ended after [`WAIT_LIMIT`]; it is killed then.
pub fn ended(child: &mut Child) -> ExitStatus {
    let ended = wait_for_exit_within(WAIT_LIMIT, child);
    ended.unwrap_or_else(|_| panic!("process {} did not end", child.id()))
}

/// Waits until `child` has ended, and returns what it wrote to its outputs that are pipes.
///
/// # Panics
///
/// If `child` has not ended after `longest`; it is killed then.
pub fn output_within(longest: Duration, mut child: Child) -> Output {
    drop(child.stdin.take());
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let ended = wait_for_exit_within(longest, &mut child);
    let (Ok(status) | Err(status)) = ended;
    // A process that `child` started may hold the pipes for longer.
    let [stdout, stderr] = [stdout, stderr].map(|bytes| {
        bytes
            .recv_timeout(WAIT_LIMIT)
            .expect("the pipe ends within the time limit")
    });
    let output = Output {
        status,
        stdout,
        stderr,
    };
    assert!(
        ended.is_ok(),
        "process {} did not end: {output:?}",
        child.id()
    );
    output
}

/// `Ok` if `child` ended within `longest`. Otherwise it is killed, and `Err` has its status.
fn wait_for_exit_within(longest: Duration, child: &mut Child) -> Result<ExitStatus, ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            return Ok(status);
        }
        if begun.elapsed() >= longest {
            let _ = child.kill();
            return Err(child.wait().expect("the child can be waited for"));
        }
        thread::park_timeout(POLL_INTERVAL);
    }
}

/// Sends all bytes of `pipe` once it has ended; no bytes if there is no pipe.
fn read(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (all, bytes) = mpsc::channel();
    thread::spawn(move || {
        let mut read = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut read);
        }
        let _ = all.send(read);
    });
    bytes
}
