//! Runs a command with pipes or on a pseudo-terminal, and ends its processes when the client leaves.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use pty_process::Size;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Winsize, tcsetwinsize};
use spdy_cri::{ExitCode, HandlerError, ResizeEvents, StartError, Streams, TerminalSize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

/// Maximum time that a command with a terminal waits for the client's first size. Without it, a full-screen program would start with the
/// default size and draw twice.
const FIRST_SIZE: Duration = Duration::from_secs(5);
/// Default size of a terminal.
const SIZE: TerminalSize = TerminalSize {
    width: 80,
    height: 24,
};
/// Time between SIGHUP and SIGKILL for the processes of a client that disconnected.
const GRACE: Duration = Duration::from_secs(1);

/// Runs `command` to the end of its output and of its first process.
///
/// When the future is dropped, because the client disconnected, all processes of the command get SIGHUP, and SIGKILL a second later. A
/// container runtime knows them by their cgroup; here they are those of the process group, and of the session on the terminal.
pub(crate) async fn run(
    command: &[String],
    directory: &Path,
    tty: bool,
    streams: Streams,
) -> Result<ExitCode, HandlerError> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory);
    let status = match tty {
        true => run_on_terminal(program, command, streams).await?,
        false => run_with_pipes(program, command, streams).await?,
    };
    Ok(status.into())
}

async fn run_with_pipes(
    program: &str,
    mut command: Command,
    streams: Streams,
) -> Result<ExitStatus, HandlerError> {
    let piped = |enabled| match enabled {
        true => Stdio::piped(),
        false => Stdio::null(),
    };
    command
        .stdin(piped(streams.stdin.is_some()))
        .stdout(piped(streams.stdout.is_some()))
        .stderr(piped(streams.stderr.is_some()))
        .process_group(0);
    let mut group = ProcessGroup::spawn(program, || command.spawn())?;
    let leader = group.leader();
    let (to, from) = (leader.stdin.take(), leader.stdout.take());
    let errors = leader.stderr.take();
    let input = copy(streams.stdin, to);
    let output = async {
        tokio::join!(copy(from, streams.stdout), copy(errors, streams.stderr));
    };
    Ok(group.run(input, output).await?)
}

async fn run_on_terminal(
    program: &str,
    command: Command,
    mut streams: Streams,
) -> Result<ExitStatus, HandlerError> {
    let (pty, terminal) = pty_process::open()?;
    let mut size = SIZE;
    if let Some(resize) = &mut streams.resize
        && let Ok(Some(first)) = timeout(FIRST_SIZE, resize.next()).await
    {
        size = first;
    }
    pty.resize(Size::new(size.height, size.width))?;
    // The child is the leader of a session, and so of a process group, with the terminal as its controlling terminal.
    let group = ProcessGroup::spawn(program, || {
        let spawned = pty_process::Command::from(command).spawn(terminal);
        spawned.map_err(|error| match error {
            pty_process::Error::Io(error) => error,
            other => io::Error::other(other),
        })
    })?;
    let resized = pty.as_fd().try_clone_to_owned()?;
    let (from, to) = pty.into_split();
    let input = async {
        tokio::join!(
            copy(streams.stdin, Some(to)),
            resize(resized, streams.resize)
        );
    };
    Ok(group.run(input, copy(Some(from), streams.stdout)).await?)
}

/// Passes the client's sizes to the terminal; SIGWINCH follows from the system.
async fn resize(terminal: impl AsFd, sizes: Option<ResizeEvents>) {
    let Some(mut sizes) = sizes else { return };
    while let Some(TerminalSize { width, height }) = sizes.next().await {
        let size = Winsize {
            ws_row: height,
            ws_col: width,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let _ = tcsetwinsize(&terminal, size);
    }
}

/// Copies to the end of `from`; an error ends it as well. Both are closed then.
async fn copy(from: Option<impl AsyncRead + Unpin>, to: Option<impl AsyncWrite + Unpin>) {
    if let (Some(mut from), Some(mut to)) = (from, to) {
        let _ = tokio::io::copy(&mut from, &mut to).await;
    }
}

/// The processes of a command, in a process group of their own. They end when it is dropped.
pub(crate) struct ProcessGroup {
    /// The leader, until its end was awaited. Its ID, which is also the group's, is not used again before.
    leader: Option<Child>,
}

impl ProcessGroup {
    /// Starts `program` as the leader of a new group, which `spawn` must provide for.
    pub(crate) fn spawn(
        program: &str,
        spawn: impl FnOnce() -> io::Result<Child>,
    ) -> Result<Self, StartError> {
        let leader = spawn().map_err(|error| StartError::new(program, error))?;
        Ok(Self {
            leader: Some(leader),
        })
    }

    /// The leader, for its pipes.
    pub(crate) fn leader(&mut self) -> &mut Child {
        self.leader.as_mut().expect("it has not ended")
    }

    /// Runs `input` until the end of `output` and of the leader. Processes that it leaves in the background, with their output
    /// elsewhere, continue.
    async fn run(
        mut self,
        input: impl Future<Output = ()>,
        output: impl Future<Output = ()>,
    ) -> io::Result<ExitStatus> {
        let to_the_end = async {
            output.await;
            self.leader().wait().await
        };
        let input_only = async {
            input.await;
            std::future::pending().await
        };
        let status = tokio::select! {
            status = to_the_end => status,
            status = input_only => status,
        };
        self.leader = None;
        status
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let Some(mut leader) = self.leader.take() else {
            return;
        };
        let Some(id) = leader.id().and_then(|id| Pid::from_raw(id.cast_signed())) else {
            return;
        };
        let Ok(runtime) = Handle::try_current() else {
            return signal(id, Signal::KILL);
        };
        signal(id, Signal::HUP);
        runtime.spawn(async move {
            // Not awaited before, because its ID may be used again then.
            sleep(GRACE).await;
            signal(id, Signal::KILL);
            let _ = leader.wait().await;
        });
    }
}

/// Sends a signal to the process group `id`, and to the session `id` of a terminal: a shell with job control gives each job a group of
/// its own.
fn signal(id: Pid, signal: Signal) {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    for process in ids.filter_map(Pid::from_raw) {
        if group_and_session(process).is_some_and(|ids| ids.contains(&id.as_raw_pid())) {
            let _ = kill_process(process, signal); // it may have ended meanwhile
        }
    }
}

/// The IDs of the process group and of the session, from proc_pid_stat(5): the fields after the name, which ends with the last
/// parenthesis, are the state, the parent, the group and the session.
fn group_and_session(process: Pid) -> Option<[i32; 2]> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(2);
    Some([fields.next()?.parse().ok()?, fields.next()?.parse().ok()?])
}
