//! The process that owns a link: the link ends with it.
//!
//! ```text
//!  spdy (outer)                waits; passes on the exit code
//!    │  unshare: user (unless root), pid, mount
//!    └─ spdy (inner)           pid 1 of its own processes; the namespaces, devices and threads of the link
//!         └─ spdy (command)    back to the user's own ids, then exec of COMMAND
//! ```
//!
//! User and process namespaces must be entered before the first thread starts. So the program starts itself again with the same
//! arguments, and with an argument 0 that states its role. The kernel kills the inner process when the outer one ends for any
//! reason. When the inner process ends, the kernel kills all processes of its namespace, because it is their pid 1. The namespaces
//! and devices are removed with the last process.
//!
//! An unprivileged user is root inside, but only of these namespaces. A command that is started there gets the user's own IDs back,
//! by one more namespace.

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

/// Argument 0 of the program in one of these roles, followed by the role and its arguments.
const ROLE_ARGUMENT: &str = "spdy-enclosed";
/// The program itself.
const SELF_EXE: &str = "/proc/self/exe";

/// The role of this process.
#[derive(Debug)]
pub enum ProcessRole {
    /// The process that was started first: everything ran in the inner process, which ended with this status.
    Outer(ExitStatus),
    /// The process that creates the link.
    Inner(InnerProcess),
    /// The process that is to become the command with this number: call [`become_command`].
    Command(usize),
}

/// Which process handles Ctrl-C.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CtrlCPolicy {
    /// The command: our processes wait until it ends, and then report.
    ForwardToCommand,
    /// All processes: there is no command, and all of them end.
    EndAll,
    /// The inner process, which ends in order; the outer process waits for that.
    HandleInside,
}

/// What the inner process was given by the outer one.
#[derive(Clone, Copy, Debug)]
pub struct InnerProcess {
    /// User and group ID, if the namespaces are those of an unprivileged user.
    ids: Option<(Uid, Gid)>,
}

/// Enters the namespaces, and returns the role of this process. Call it first in a command, before any thread starts. In the outer
/// process it returns when the inner process has ended. `typed` decides which process gets SIGINT and SIGQUIT.
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

/// The outer process: creates the namespaces, starts the inner process and waits for it.
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
        // The inner process inherits the blocked signals; the process that handles them unblocks them.
        let blocked = terminal_signals().thread_block();
        blocked.map_err(|error| start(error.into()))?;
    }
    // Our path in /proc, which the inner process will check.
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

/// Creates a user namespace (and the others in `with`) that maps the ids `outside` to `inside`.
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

/// Makes the kernel kill this process when `parent` ends.
fn kill_with_parent(parent: u32) -> Result<(), RealTimeError> {
    let failed = |source| RealTimeError::Start {
        what: "the inner process",
        source,
    };
    set_pdeathsig(Signal::SIGKILL).map_err(|error| failed(error.into()))?;
    // It may have ended before that. Its pid is not visible in here, but /proc still shows the processes outside.
    let status = fs::read_to_string("/proc/self/status").map_err(failed)?;
    let now = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    if now.is_some_and(|now| now.trim() != parent.to_string()) {
        return Err(failed(io::Error::other("the outer process has ended")));
    }
    Ok(())
}

/// Mounts `/proc` with this namespace's processes. If the system does not allow that (some containers hide parts of it), the outer
/// processes stay visible, which only matters to a program that looks up processes by pid.
fn own_proc() {
    let slave = MsFlags::MS_SLAVE | MsFlags::MS_REC;
    let nothing: Option<&Path> = None;
    if mount(nothing, "/", nothing, slave, nothing).is_ok() {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let _ = mount(Some("proc"), "/proc", Some("proc"), flags, nothing);
    }
}

/// The configuration file of the name resolver.
const RESOLVERS: &str = "/etc/resolv.conf";

impl InnerProcess {
    /// Makes `resolver` the name server of every program in these namespaces, by mounting another resolver file, until the last of
    /// them ends.
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

    /// A process that becomes the command with this `number`. Start it on the thread of its host.
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

/// The exit code for `status`: its own, or 128 plus the signal, like shells.
#[must_use]
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}
