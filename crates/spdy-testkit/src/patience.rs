//! How long a test waits for what another process or thread is to do. Nobody waits for ever: a test that hangs says nothing.

use std::net::TcpStream;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take on a machine that has much else to do.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks.
const BETWEEN: Duration = Duration::from_millis(5);

/// Waits until `is_so`, of which nothing else tells.
///
/// # Panics
///
/// With `what`, after [`PATIENCE`].
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::park_timeout(BETWEEN);
    }
}

/// The connection; whoever reads from it fails after [`PATIENCE`] without a byte.
///
/// # Panics
///
/// If the system has no such setting.
#[must_use]
pub fn patient(connection: TcpStream) -> TcpStream {
    let set = connection.set_read_timeout(Some(PATIENCE));
    set.expect("there is such a setting");
    connection
}

/// Waits until `child` has ended.
///
/// # Panics
///
/// If it has not after [`PATIENCE`]; it is killed then.
pub fn ended(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status;
        }
        if begun.elapsed() >= PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("process {} did not end by itself", child.id());
        }
        thread::park_timeout(BETWEEN);
    }
}
