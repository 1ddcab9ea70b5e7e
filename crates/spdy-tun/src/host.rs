//! A host: a thread in its own network namespace, with one device that leads to the other host.
//!
//! A socket belongs to the namespace of the thread that opens it. Threads and processes inherit the namespace of the thread that
//! starts them. So all work of a host runs [on its thread](Host::run), and the namespace exists as long as anything uses it.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, unshare};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::error::RealTimeError;
use crate::netlink::{Destination, Netlink, RouteTcp};

/// The client's address.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);
/// The first address of the servers' side, which has every address except the client's.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Name of the device in its namespace.
pub const DEVICE: &str = "link0";
/// Largest IP packet, bytes.
const MTU: u16 = 1_500;
/// Limit of packets that a device queues for the link's thread. The thread reads at once, so packets queue only while it waits for
/// a core: a tenth of a second at 1 Gbps.
const DEVICE_QUEUE: u32 = 10_000;

/// Settings that differ between hosts, and between experiments.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostConfig {
    /// Its own address.
    pub address: Ipv4Addr,
    /// The address of the only other host; this host then has all other addresses itself. `None`: all packets are sent to the link.
    pub peer: Option<Ipv4Addr>,
    /// Congestion control of the host's connections.
    pub congestion: String,
    /// Initial window in segments, if not the kernel's.
    pub initial_window: Option<u32>,
}

/// Stack size of a host's thread: futures of an unoptimised build are deeply nested.
const STACK_BYTES: usize = 8 * 1024 * 1024;

type Job = Box<dyn FnOnce() + Send>;

/// A namespace and its thread.
#[derive(Debug)]
pub struct Host {
    jobs: mpsc::Sender<Job>,
    /// The thread's path in `/proc`.
    proc: PathBuf,
}

impl Host {
    /// Creates a host, and its end of the link.
    ///
    /// # Errors
    ///
    /// The system allows no namespace or device, or cannot set it up.
    pub fn start(name: &str, config: HostConfig) -> Result<(Self, SyncDevice), RealTimeError> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let (ready, made) = mpsc::channel();
        let work = move || {
            let made = start_namespace(&config);
            let failed = made.is_err();
            if ready.send(made).is_err() || failed {
                return;
            }
            for job in inbox {
                job();
            }
        };
        let start = |source| RealTimeError::Start {
            what: "a thread",
            source,
        };
        thread::Builder::new()
            .name(name.to_owned())
            .stack_size(STACK_BYTES)
            .spawn(work)
            .map_err(start)?;
        let (device, proc) = made
            .recv()
            .map_err(|_| RealTimeError::LinkThreadEnded(format!("the {name} thread panicked")))??;
        Ok((Self { jobs, proc }, device))
    }

    /// Queues `job` on this host's thread, after all earlier jobs. The receiver gets its result.
    pub fn start_job<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> mpsc::Receiver<T> {
        let (sender, receiver) = mpsc::channel();
        let job = Box::new(move || {
            let _ = sender.send(job()); // the receiver may be gone
        });
        self.jobs
            .send(job)
            .expect("the host's thread runs until its handle is dropped");
        receiver
    }

    /// Runs `job` on this host's thread, and waits for it.
    ///
    /// # Panics
    ///
    /// If `job` panics.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let done = self.start_job(job);
        done.recv().expect("the job must not panic")
    }

    /// Packets that the device dropped because they were not read in time. Does not wait for jobs.
    #[must_use]
    pub fn missed_packets(&self) -> u64 {
        let table = fs::read_to_string(self.proc.join("net/dev")).unwrap_or_default();
        dropped_of(&table, DEVICE)
    }
}

/// Sent packets that `device` dropped, from the table of `/proc/net/dev` (proc(5)): eight receive counters, then bytes, packets,
/// errors and drops of sending.
fn dropped_of(table: &str, device: &str) -> u64 {
    const SENT_DROPS: usize = 8 + 3;
    table
        .lines()
        .filter_map(|line| line.trim_start().split_once(':'))
        .find(|(name, _)| *name == device)
        .and_then(|(_, numbers)| numbers.split_whitespace().nth(SENT_DROPS)?.parse().ok())
        .unwrap_or(0)
}

/// On the host's own thread: moves it to a new namespace, and sets that up.
fn start_namespace(config: &HostConfig) -> Result<(SyncDevice, PathBuf), RealTimeError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| RealTimeError::Namespaces(error.into()))?;
    check_congestion(&config.congestion)?;
    let device = DeviceBuilder::new()
        .name(DEVICE)
        .layer(Layer::L3)
        .packet_information(false)
        .mtu(MTU)
        .build_sync()
        .map_err(RealTimeError::Device)?;
    device
        .set_nonblocking(true)
        .map_err(RealTimeError::Device)?;
    // Otherwise TCP metrics of a path would be carried over from one run to the next.
    set("net/ipv4/tcp_no_metrics_save", "1")?;
    if fs::exists("/proc/sys/net/ipv6").unwrap_or(false) {
        set("net/ipv6/conf/all/disable_ipv6", "1")?;
    }
    // A server of an unprivileged user may use port 80 here.
    set("net/ipv4/ip_unprivileged_port_start", "0")?;
    configure_network(config)?;
    let link = "/proc/thread-self";
    let thread = fs::read_link(link).map_err(|source| RealTimeError::Kernel {
        what: link.to_owned(),
        source,
    })?;
    Ok((device, Path::new("/proc").join(thread)))
}

fn configure_network(config: &HostConfig) -> Result<(), RealTimeError> {
    let what = |what| move |source| RealTimeError::Netlink { what, source };
    let index = |name| if_nametoindex(name).map_err(|error| what("a device")(error.into()));
    let (loopback, link) = (index("lo")?, index(DEVICE)?);
    let netlink = Netlink::open().map_err(what("a netlink socket"))?;
    let own = config.address;
    netlink
        .up(loopback, None, None)
        .map_err(what("the loopback device"))?;
    netlink
        .up(link, Some(DEVICE_QUEUE), Some(u32::from(MTU)))
        .map_err(what("the link's device"))?;
    netlink
        .add_address(link, own)
        .map_err(what("the host's address"))?;
    let tcp = RouteTcp {
        congestion: &config.congestion,
        initial_window: config.initial_window,
    };
    let to = config
        .peer
        .map_or(Destination::Everywhere, Destination::Host);
    netlink
        .add_route(to, link, &tcp)
        .map_err(what("the route over the link"))?;
    if config.peer.is_some() {
        netlink
            .own_everything(loopback)
            .map_err(what("the route to every address"))?;
    }
    Ok(())
}

/// Checks that the algorithm exists, because some kernels silently ignore an unknown name in a route.
fn check_congestion(name: &str) -> Result<(), RealTimeError> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = fs::read_to_string(file).map_err(|source| RealTimeError::Kernel {
        what: file.to_owned(),
        source,
    })?;
    if available.split_whitespace().any(|one| one == name) {
        return Ok(());
    }
    Err(RealTimeError::Congestion {
        name: name.to_owned(),
        available: available.trim().replace(' ', ", "),
    })
}

/// Writes a sysctl of this thread's namespace.
fn set(name: &str, value: &str) -> Result<(), RealTimeError> {
    let file = format!("/proc/sys/{name}");
    fs::write(&file, value)
        .map_err(|source: io::Error| RealTimeError::Kernel { what: file, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_those_of_sent_packets_of_the_one_device() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
             lo:     840      10    0    1    0     0          0         0      840      10    0    2    0     0       0          0\n \
             link0: 1234      12    0    3    0     0          0         0     5678      56    0    7    0     0       0          0\n";
        assert_eq!(dropped_of(table, "link0"), 7);
        assert_eq!(dropped_of(table, "eth0"), 0);
    }
}
