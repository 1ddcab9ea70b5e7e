//! The process that a link lives and dies with.
//!
//! ```text
//!  spdy (outer)                waits; passes on the exit code
//!    │  unshare: user (unless root), pid, mount
//!    └─ spdy (inner)           pid 1 of its own processes; the namespaces, devices and threads of the link
//!         └─ spdy (command)    back to the user's own ids, then exec of COMMAND
//! ```
//!
//! Namespaces of users and processes must be entered before the first thread starts, so the program starts itself
//! again: with the same arguments, and a first one (the name by which it was called) that says which part it plays.
//! The inner process is killed by the kernel when the outer one ends, however that happens; and all processes of its
//! namespace are, when it ends itself, for they lose their pid 1. With the last of them go namespaces and devices.
//!
//! An unprivileged user is root inside, of nothing but these namespaces. A command that is started there
//! gets its own ids back, in one more namespace, so that it finds itself who it was.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Gid, Uid, getegid, geteuid, mkstemp};

use crate::error::RealTimeError;

/// What the program is called when it plays a part; the part and its arguments follow.
const ROLE_ARGUMENT: &str = "spdy-enclosed";
/// The program itself.
const SELF_EXE: &str = "/proc/self/exe";

/// Which process this is.
#[derive(Debug)]
pub enum ProcessRole {
    /// The one that was started first; everything was done inside, and ended so.
    Outer(ExitStatus),
    /// The one that makes the link.
    Inner(InnerProcess),
    /// One that is to become the command of this number: call [`become_command`].
    Command(usize),
}

/// Whose Ctrl-C is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CtrlCPolicy {
    /// The command's: ours wait for it to end, and then tell what was.
    ForwardToCommand,
    /// Everybody's: no command is run, and all of it ends.
    EndAll,
    /// The inner process's, which hears it and ends in its own time: the outer one waits for that.
    HandleInside,
}

/// What the inner process knows of the outer one.
#[derive(Clone, Copy, Debug)]
pub struct InnerProcess {
    /// User and group, if these are namespaces of an unprivileged user.
    ids: Option<(Uid, Gid)>,
}

/// Enters the namespaces, and returns the role of this process. Call it before any thread starts, first in a command.
/// In the outer process it returns when the inner process has ended. `typed` decides which process gets SIGINT and
/// SIGQUIT.
///
/// # Errors
///
/// Threads are already running, or the system allows no namespaces.
pub fn enter(typed: CtrlCPolicy) -> Result<ProcessRole, RealTimeError> {
    let program_name = env::args().next().unwrap_or_default();
    let Some(part) = program_name.strip_prefix(ROLE_ARGUMENT) else {
        return outside(typed).map(ProcessRole::Outer);
    };
    let numbers: Vec<u32> = part
        .split(':')
        .filter_map(|word| word.parse().ok())
        .collect();
    match *numbers.as_slice() {
        [parent, ref ids @ ..] if part.starts_with(":inner:") => {
            kill_with_parent(parent)?;
            own_proc();
            if typed == CtrlCPolicy::HandleInside {
                let opened = terminal_signals().thread_unblock();
                opened.map_err(|error| RealTimeError::Start {
                    what: "the inner process",
                    source: error.into(),
                })?;
            }
            let ids = match *ids {
                [user, group] => Some((Uid::from_raw(user), Gid::from_raw(group))),
                _ => None,
            };
            Ok(ProcessRole::Inner(InnerProcess { ids }))
        }
        [number, ref ids @ ..] if part.starts_with(":command:") => {
            if let [user, group] = *ids {
                new_user(CloneFlags::empty(), (user, group), (0, 0))?;
            }
            Ok(ProcessRole::Command(number as usize))
        }
        _ => outside(typed).map(ProcessRole::Outer),
    }
}

/// Leaves the outer process behind, and waits for the inner one.
fn outside(typed: CtrlCPolicy) -> Result<ExitStatus, RealTimeError> {
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(RealTimeError::Threads { threads });
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let parts = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    let ids = match unshare(parts) {
        Ok(()) => String::new(),
        Err(_) => {
            new_user(parts, (0, 0), (user, group))?;
            format!(":{user}:{group}")
        }
    };
    let start = |source| RealTimeError::Start {
        what: "the inner process",
        source,
    };
    if typed != CtrlCPolicy::EndAll {
        // The inner process inherits it; who they are for opens them again.
        let blocked = terminal_signals().thread_block();
        blocked.map_err(|error| start(error.into()))?;
    }
    // As /proc numbers us, which is where the inner process will look.
    let me = fs::read_link("/proc/self").map_err(start)?;
    let mut inner = Command::new(SELF_EXE)
        .arg0(format!("{ROLE_ARGUMENT}:inner:{}{ids}", me.display()))
        .args(env::args_os().skip(1))
        .spawn()
        .map_err(start)?;
    inner.wait().map_err(start)
}

fn terminal_signals() -> SigSet {
    SigSet::from_iter([Signal::SIGINT, Signal::SIGQUIT])
}

/// A new user namespace (and what else `with` names) where `inside` is who was `outside` before.
fn new_user(
    with: CloneFlags,
    inside: (u32, u32),
    outside: (u32, u32),
) -> Result<(), RealTimeError> {
    unshare(CloneFlags::CLONE_NEWUSER | with)
        .map_err(|error| RealTimeError::Namespaces(error.into()))?;
    let write = |what: &str, text: String| {
        fs::write(what, text).map_err(|source| RealTimeError::Kernel {
            what: what.to_owned(),
            source,
        })
    };
    write("/proc/self/setgroups", "deny".to_owned())?;
    write(
        "/proc/self/uid_map",
        format!("{} {} 1", inside.0, outside.0),
    )?;
    write(
        "/proc/self/gid_map",
        format!("{} {} 1", inside.1, outside.1),
    )
}

/// Has this process killed when `parent` ends.
fn kill_with_parent(parent: u32) -> Result<(), RealTimeError> {
    let failed = |source| RealTimeError::Start {
        what: "the inner process",
        source,
    };
    set_pdeathsig(Signal::SIGKILL).map_err(|error| failed(error.into()))?;
    // It may have ended before that. From in here it has no number; /proc is still that of outside.
    let status = fs::read_to_string("/proc/self/status").map_err(failed)?;
    let now = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    if now.is_some_and(|now| now.trim() != parent.to_string()) {
        return Err(failed(io::Error::other("the outer process has ended")));
    }
    Ok(())
}

/// Shows this namespace's processes in `/proc`. Where the system does not let us (some containers hide parts of
/// it), the outer ones stay to be seen: only who looks for processes by number notices.
fn own_proc() {
    let slave = MsFlags::MS_SLAVE | MsFlags::MS_REC;
    let nothing: Option<&Path> = None;
    if mount(nothing, "/", nothing, slave, nothing).is_ok() {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let _ = mount(Some("proc"), "/proc", Some("proc"), flags, nothing);
    }
}

/// Where programs read who resolves names.
const RESOLVERS: &str = "/etc/resolv.conf";

impl InnerProcess {
    /// Makes `resolver` the name server of every program in these namespaces, by a resolver file of their own, until
    /// the last of them ends.
    ///
    /// # Errors
    ///
    /// There is no resolver file, or it cannot be replaced.
    pub fn set_resolver(&self, resolver: Ipv4Addr) -> Result<(), RealTimeError> {
        let kernel = |source| RealTimeError::Kernel {
            what: RESOLVERS.to_owned(),
            source,
        };
        let template = env::temp_dir().join("spdy-resolv-XXXXXX");
        let (file, path) = mkstemp(&template).map_err(|error| kernel(error.into()))?;
        let written = fs::File::from(file).write_all(format!("nameserver {resolver}\n").as_bytes());
        let nothing: Option<&Path> = None;
        let mounted = mount(Some(&path), RESOLVERS, nothing, MsFlags::MS_BIND, nothing);
        // The mounted file needs no name.
        fs::remove_file(&path).and(written).map_err(kernel)?;
        mounted.map_err(|error| kernel(error.into()))
    }

    /// A process that will be the command of this `number`. Start it on the thread of its host.
    #[must_use]
    pub fn command(&self, number: usize) -> Command {
        let ids = self
            .ids
            .map_or_else(String::new, |(user, group)| format!(":{user}:{group}"));
        let mut command = Command::new(SELF_EXE);
        command
            .arg0(format!("{ROLE_ARGUMENT}:command:{number}{ids}"))
            .args(env::args_os().skip(1))
            .stdin(Stdio::inherit());
        command
    }
}

/// Replaces this process by `command_line`, a program and its arguments. Returns only on failure.
pub fn become_command(command_line: &[OsString]) -> io::Error {
    let Some((program, arguments)) = command_line.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    if let Err(error) = terminal_signals().thread_unblock() {
        return error.into();
    }
    Command::new(program).args(arguments).exec()
}

/// The exit code that tells how `status` was: its own, or 128 and the signal, as shells have it.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}
