//! How long a test waits for another process or thread. No test waits for ever: a test that hangs reports nothing.

use std::io::Read;
use std::net::TcpStream;
use std::process::{Child, ExitStatus, Output};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take on a machine that has much else to do.
pub const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// The poll interval for a condition without a notification.
pub const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Polls until `is_so`, for a condition without a notification.
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

/// The connection; a read from it fails after [`WAIT_LIMIT`] without a byte.
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
/// If it has not after [`WAIT_LIMIT`]; it is killed then.
pub fn ended(child: &mut Child) -> ExitStatus {
    let ended = wait_for_exit_within(WAIT_LIMIT, child);
    ended.unwrap_or_else(|_| panic!("process {} did not end", child.id()))
}

/// The output of `child` on those of its outputs that are pipes, until its end.
///
/// # Panics
///
/// If it has not ended after `longest`; it is killed then.
pub fn output_within(longest: Duration, mut child: Child) -> Output {
    drop(child.stdin.take());
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let ended = wait_for_exit_within(longest, &mut child);
    let (Ok(status) | Err(status)) = ended;
    // A process that it started may hold its pipes for longer.
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

/// How `child` ended, by itself or killed.
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

/// All bytes of `pipe`, once it has ended; none if there is none.
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
