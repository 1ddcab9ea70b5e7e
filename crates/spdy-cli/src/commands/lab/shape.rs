//! `spdy lab shape`: any program behind a link in real time.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::wait::{WaitStatus, waitpid};
use serde::Serialize;
use spdy_lab::network_spec::parse_network;
use spdy_netem::profile::{Era, Profile};
use spdy_tun::limits::{Fault, ValidityLimits};
use spdy_tun::namespaces::{self, CtrlCPolicy, InnerProcess, ProcessRole};
use spdy_tun::network::{RealNetwork, RealNetworkConfig};
use spdy_tun::stats::LinkStats;

use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::{BAD, BOLD, GOOD, Printer, WARN};

/// Arguments of `spdy lab shape`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    link: LinkArgs,

    /// Run this command with sh at the far end, and wait until it listens; its output goes to stderr
    #[arg(long, value_name = "COMMAND")]
    server: Option<OsString>,

    /// Print the measured link as one line of JSON on stderr
    #[arg(long)]
    json: bool,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The link, written as networks of `spdy race` are.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Link")]
struct LinkArgs {
    /// A network by name, or as "down=2mbit,up=384kbit,rtt=100ms,loss=1%"; settings after a name change it
    #[arg(short, long, value_name = "NAME|SPEC")]
    network: Option<String>,

    /// Seed of packet loss and jitter
    #[arg(short, long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Congestion control on both sides, by the kernel's name
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    congestion: String,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab shape --network dsl --server \"spdy serve portal --plain 0.0.0.0:80\" -- spdy fetch -v http://198.18.0.1/"
    "spdy lab shape -n down=2mbit,up=384kbit,rtt=100ms,loss=1% --server ./server -- curl http://198.18.0.1/"
    "spdy lab shape -n 3g --congestion bbr --json --server \"python3 -m http.server 80\" -- curl -s http://198.18.0.1/"
};

/// Which command an enclosed process becomes.
const CLIENT: usize = 0;
const SERVER: usize = 1;
/// For the server to listen.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);
/// Exit code for a command that cannot be run, as shells have it.
const CANNOT_RUN: u8 = 126;
/// Exit code for a command that is not found.
const NOT_FOUND: u8 = 127;

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let profile = args.link.profile()?;
    match namespaces::enter(CtrlCPolicy::ForwardToCommand)? {
        ProcessRole::Outer(status) => Ok(Outcome::Code(namespaces::exit_code(status))),
        ProcessRole::Command(number) => Ok(become_command(args, number, printer)),
        ProcessRole::Inner(inside) => shape(args, &profile, inside, printer),
    }
}

fn become_command(args: &Args, number: usize, printer: &Printer) -> Outcome {
    let command = match (number, &args.server) {
        (SERVER, Some(server)) => vec!["sh".into(), "-c".into(), server.clone()],
        _ => args.command.clone(),
    };
    let error = namespaces::become_command(&command);
    let code = match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_RUN,
    };
    let name = command.first().cloned().unwrap_or_default();
    let context = format!("cannot run {}", name.to_string_lossy());
    printer.error(&anyhow::Error::new(error).context(context));
    Outcome::Code(code)
}

fn shape(
    args: &Args,
    profile: &Profile,
    inside: InnerProcess,
    printer: &Printer,
) -> anyhow::Result<Outcome> {
    let link = &args.link;
    if profile.era != Era::default() {
        let era = profile.era;
        printer.note(format_args!(
            "{WARN}note{WARN:#}: the network has TCP of {era}, but this command always uses the kernel's TCP"
        ));
    }
    let config = RealNetworkConfig {
        seed: link.seed,
        congestion: link.congestion.clone(),
        initial_window: profile.initial_window,
        ..RealNetworkConfig::new(profile.path.clone())
    };
    let mut network = RealNetwork::start(&config)?;
    let server = match &args.server {
        Some(_) => Some(start_server(&network, inside)?),
        None => None,
    };
    network.begin(&profile.path, link.seed)?;
    let started = network
        .client
        .run(move || inside.command(CLIENT).spawn().map(|child| child.id()));
    let client = started.context("cannot start the command")?;
    let status = wait_for(client, server, printer)?;
    let measured = network.measure()?;
    let limits = ValidityLimits::default();
    let shaped = ShapeReport {
        network: profile.settings(),
        seed: link.seed,
        congestion: &link.congestion,
        exit_code: namespaces::exit_code(status),
        faults: limits.faults(&measured),
        limits,
        measured,
    };
    shaped.print(args.json, printer)?;
    Ok(Outcome::Code(shaped.exit_code))
}

/// Starts the server's command, and waits until something listens at the far end.
fn start_server(network: &RealNetwork, inside: InnerProcess) -> anyhow::Result<u32> {
    let started = network.server.run(move || {
        let mut command = inside.command(SERVER);
        command.stdin(Stdio::null()).stdout(io::stderr());
        command.spawn()
    });
    let mut child = started.context("cannot start the server")?;
    let deadline = Instant::now() + SERVER_TIMEOUT;
    while !network.server.run(has_listener) {
        if let Some(status) = child.try_wait()? {
            let code = namespaces::exit_code(status);
            anyhow::bail!("the server ended with {code} before it listened");
        }
        if Instant::now() > deadline {
            let within = SERVER_TIMEOUT.as_secs();
            anyhow::bail!("the server did not listen within {within} s");
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(child.id())
}

/// True if this thread's namespace has a listening TCP socket, or any UDP socket (proc(5): after the head, a line for
/// each socket; the fourth word is the state).
fn has_listener() -> bool {
    const LISTEN: &str = "0A";
    let has = |file: &str, is_match: fn(&str) -> bool| {
        let table = fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
        let mut sockets = table.lines().skip(1);
        sockets.any(|line| line.split_whitespace().nth(3).is_some_and(is_match))
    };
    has("tcp", |state| state == LISTEN)
        || has("tcp6", |state| state == LISTEN)
        || has("udp", |_| true)
        || has("udp6", |_| true)
}

/// Waits until `client` ends. As the first process of its namespace it also reaps every other process that ends.
fn wait_for(client: u32, server: Option<u32>, printer: &Printer) -> anyhow::Result<ExitStatus> {
    loop {
        let ended = match waitpid(None, None) {
            Err(nix::errno::Errno::EINTR) => continue,
            ended => ended.context("cannot wait for the command")?,
        };
        let (pid, status) = match ended {
            WaitStatus::Exited(pid, code) => (pid, ExitStatus::from_raw(code << 8)),
            WaitStatus::Signaled(pid, signal, _) => (pid, ExitStatus::from_raw(signal as i32)),
            _ => continue,
        };
        let pid = pid.as_raw().unsigned_abs();
        if pid == client {
            return Ok(status);
        }
        if Some(pid) == server {
            let code = namespaces::exit_code(status);
            printer.note(format_args!("{WARN}the server ended{WARN:#} with {code}"));
        }
    }
}

impl LinkArgs {
    fn profile(&self) -> anyhow::Result<Profile> {
        let spec = self.network.as_deref().unwrap_or_default();
        parse_network(spec).map_err(|error| Usage(format!("link {spec:?}: {error}")).into())
    }
}

/// A run of a program behind a link.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ShapeReport<'a> {
    /// The configured link, as text.
    network: String,
    /// The seed of the link.
    seed: u64,
    /// Congestion control of both ends, by the name of the kernel.
    congestion: &'a str,
    /// The exit code of the program.
    exit_code: u8,
    /// Reasons why the run does not count; empty if it counts.
    faults: Vec<Fault>,
    /// The limits within which a run counts.
    limits: ValidityLimits,
    /// Measurements of the link.
    #[serde(flatten)]
    measured: LinkStats,
}

impl ShapeReport<'_> {
    fn print(&self, json: bool, printer: &Printer) -> anyhow::Result<()> {
        if json {
            return printer.json_to_stderr(self);
        }
        let Self {
            network, measured, ..
        } = self;
        printer.note(format_args!("{BOLD}link{BOLD:#}  {network}"));
        printer.note(format_args!("{BOLD}down{BOLD:#}  {}", measured.down));
        printer.note(format_args!("{BOLD}up{BOLD:#}    {}", measured.up));
        if self.faults.is_empty() {
            printer.note(format_args!("{GOOD}valid{GOOD:#}"));
        }
        for fault in &self.faults {
            printer.note(format_args!("{BAD}invalid{BAD:#}: {fault}"));
        }
        Ok(())
    }
}
