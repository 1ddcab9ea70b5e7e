//! A cluster of three Redis servers of a test's own: real processes on an address of theirs, which can be killed and come back.
//!
//! ```text
//!  node 0   slots     0 …  5460     127.x.y.z, a free port, and another for what nodes tell each other
//!  node 1   slots  5461 … 10922
//!  node 2   slots 10923 … 16383     no replicas: what a node has is gone with it
//! ```
//!
//! The address belongs to no other cluster, of this process or another, so that the port of a stopped node stays free: the owner holds
//! one port of the address, which none of its nodes uses. Only the slot table of the nodes is written to disk.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::wait::{WAIT_LIMIT, with_read_timeout};

/// Nodes of every cluster.
pub const NODES: usize = 3;

/// Its slots, first and last of each node.
const SLOTS: [(u16, u16); NODES] = [(0, 5460), (5461, 10_922), (10_923, 16_383)];

/// Addresses that this process has tried so far.
static ADDRESSES_TRIED: AtomicU32 = AtomicU32::new(0);

/// The port that marks an address as taken. It is below the ephemeral ports.
const HELD_PORT: u16 = 16_379;

/// Files of PEM, where the nodes are to speak TLS.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The chain of all nodes' certificate.
    pub chain: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authority that signed it.
    pub authority: PathBuf,
}

/// True if tests with other programs are enabled: unless SPDY_SKIP_PEERS is set.
#[must_use]
pub fn peers_enabled() -> bool {
    std::env::var_os("SPDY_SKIP_PEERS").is_none_or(|value| value.is_empty())
}

/// The cluster. Its processes end with this value.
#[derive(Debug)]
pub struct RedisCluster {
    folder: tempfile::TempDir,
    tls: Option<Tls>,
    nodes: Vec<Node>,
    /// Reserves the address for the lifetime of the cluster.
    _held: TcpListener,
}

#[derive(Debug)]
struct Node {
    /// Without TLS.
    plain: SocketAddr,
    /// Where clients go.
    clients: SocketAddr,
    bus: u16,
    child: Option<Child>,
}

impl Drop for RedisCluster {
    fn drop(&mut self) {
        (0..NODES).for_each(|node| self.kill(node));
    }
}

impl RedisCluster {
    /// Makes one, and waits until it is of one mind.
    ///
    /// # Panics
    ///
    /// If there is no `redis-server`, or it does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::new(own_address(), None)
    }

    /// One that speaks TLS, with `files` for the address of all its nodes.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start), and if it does not like the files.
    #[must_use]
    pub fn with_tls(files: impl FnOnce(Ipv4Addr) -> Tls) -> Self {
        let (address, own) = own_address();
        Self::new((address, own), Some(files(address)))
    }

    fn new((address, own): (Ipv4Addr, TcpListener), tls: Option<Tls>) -> Self {
        let mut held = Vec::new();
        let mut free = || {
            let listener = TcpListener::bind((address, 0)).expect("loopback has free ports");
            let port = listener.local_addr().expect("the listener is bound").port();
            held.push(listener);
            port
        };
        let nodes = (0..NODES).map(|_| {
            let plain = SocketAddr::from((address, free()));
            let clients = match tls {
                Some(_) => SocketAddr::from((address, free())),
                None => plain,
            };
            let (bus, child) = (free(), None);
            Node {
                plain,
                clients,
                bus,
                child,
            }
        });
        let nodes = nodes.collect();
        drop(held);
        let folder = tempfile::tempdir().expect("a folder can be created");
        let mut cluster = Self {
            folder,
            tls,
            nodes,
            _held: own,
        };
        let logs: Vec<_> = (0..NODES).map(|node| cluster.run(node)).collect();
        for (node, (first, last)) in SLOTS.into_iter().enumerate() {
            cluster.run_command(node, &format!("CLUSTER SET-CONFIG-EPOCH {}", node + 1));
            cluster.run_command(node, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
            let (at, bus) = (cluster.nodes[node].clients, cluster.nodes[node].bus);
            if node > 0 {
                cluster.run_command(0, &format!("CLUSTER MEET {} {} {bus}", at.ip(), at.port()));
            }
        }
        for log in logs {
            wait_for(&log, "Cluster state changed: ok");
        }
        cluster
    }

    /// URLs of its nodes.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let scheme = if self.tls.is_some() {
            "rediss"
        } else {
            "redis"
        };
        let urls = self
            .nodes
            .iter()
            .map(|node| format!("{scheme}://{}", node.clients));
        urls.collect()
    }

    /// Kills a node at once; nothing if it is dead.
    pub fn kill(&mut self, node: usize) {
        if let Some(mut child) = self.nodes[node].child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops a node in its steps: it takes connections, and answers nothing.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn pause(&self, node: usize) {
        self.signal(node, "-STOP");
    }

    /// Lets a node go on that was [`pause`](Self::pause)d.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn resume(&self, node: usize) {
        self.signal(node, "-CONT");
    }

    fn signal(&self, node: usize, signal: &str) {
        let child = self.nodes[node].child.as_ref().expect("the node runs");
        let id = child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the node runs");
    }

    /// Starts nodes that were killed, empty, and waits until they find the cluster whole.
    ///
    /// # Panics
    ///
    /// If they do not start.
    pub fn restart(&mut self, nodes: &[usize]) {
        let logs: Vec<_> = nodes.iter().map(|node| self.run(*node)).collect();
        for log in logs {
            wait_for(&log, "Cluster state changed: ok");
        }
    }

    /// The reply of a node to a command of one line; arguments are not quoted.
    ///
    /// # Panics
    ///
    /// If it does not answer.
    #[must_use]
    pub fn query(&self, node: usize, command: &str) -> String {
        let stream = TcpStream::connect(self.nodes[node].plain).expect("the node runs");
        let mut stream = with_read_timeout(stream);
        write!(stream, "{command}\r\nQUIT\r\n").expect("the node runs");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the node runs");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The node that has the key called `name`.
    ///
    /// # Panics
    ///
    /// If the first node does not answer.
    #[must_use]
    pub fn node_of(&self, name: &str) -> usize {
        let slot = self.query(0, &format!("CLUSTER KEYSLOT {name}"));
        let slot = slot.lines().next().and_then(|line| line.strip_prefix(':'));
        let slot: u16 = slot
            .and_then(|slot| slot.parse().ok())
            .expect("the reply is a slot number");
        let place = SLOTS.iter().position(|(_, last)| slot <= *last);
        place.expect("every slot has a node")
    }

    fn run_command(&self, node: usize, command: &str) {
        let answer = self.query(node, command);
        assert!(answer.starts_with("+OK"), "{command}: {answer}");
    }

    /// Starts a node's process; returns its output, from when it accepts connections.
    fn run(&mut self, number: usize) -> mpsc::Receiver<String> {
        let folder = self.folder.path().join(number.to_string());
        std::fs::create_dir_all(&folder).expect("a folder can be created");
        let node = &mut self.nodes[number];
        let mut server = Command::new("redis-server");
        server
            .current_dir(&folder)
            .args(["--cluster-enabled", "yes"]);
        let address = node.plain.ip().to_string();
        // What it connects from is another address, and no sign of where it is.
        server.args(["--bind", &address, "--cluster-announce-ip", &address]);
        server.args(["--port", &node.plain.port().to_string()]);
        server.args(["--cluster-port", &node.bus.to_string()]);
        // A node that is gone is not voted to be: what the others have is served on, for as long as a test takes.
        server.args(["--cluster-node-timeout", "60000", "--protected-mode", "no"]);
        server.args(["--save", "", "--appendonly", "no"]);
        if let Some(tls) = &self.tls {
            server.args(["--tls-port", &node.clients.port().to_string()]);
            server.args(["--tls-cluster", "yes", "--tls-auth-clients", "no"]);
            server.arg("--tls-cert-file").arg(&tls.chain);
            server.arg("--tls-key-file").arg(&tls.key);
            server.arg("--tls-ca-cert-file").arg(&tls.authority);
        }
        server.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = server.spawn();
        let mut child = child.unwrap_or_else(|error| {
            panic!("redis-server is missing; install the peers with `scripts/setup-peers`: {error}")
        });
        let log = child.stdout.take().expect("stdout is a pipe");
        node.child = Some(child);
        let log = lines(log);
        wait_for(&log, "Ready to accept connections");
        log
    }
}

/// An address that no other cluster has, and what holds it.
fn own_address() -> (Ipv4Addr, TcpListener) {
    /// So that two processes with numbers side by side do not try the same ones.
    const STEP: u32 = 0x1_0007;
    const TRIES: u32 = 1000;
    let free = (0..TRIES).find_map(|_| {
        let tried = ADDRESSES_TRIED.fetch_add(1, Ordering::Relaxed);
        let number = std::process::id().wrapping_add(tried.wrapping_mul(STEP));
        let [_, high, middle, low] = number.to_be_bytes();
        let address = Ipv4Addr::new(127, 16 + high % 200, middle, low.clamp(1, 254));
        let held = TcpListener::bind((address, HELD_PORT)).ok()?;
        Some((address, held))
    });
    free.expect("an address of the loopback network is free")
}

/// The lines of the server's output. They are read to the end: a full pipe would stop the server.
fn lines(log: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            // The receiver may be dropped.
            let _ = sender.send(line);
        }
    });
    lines
}

/// Reads until a line contains `expected`.
fn wait_for(log: &mpsc::Receiver<String>, expected: &str) {
    let mut lines = Vec::new();
    while !lines
        .last()
        .is_some_and(|line: &String| line.contains(expected))
    {
        let line = log.recv_timeout(WAIT_LIMIT);
        let line = line.unwrap_or_else(|error| {
            panic!("expected {expected:?} in the log, {error}: {lines:#?}")
        });
        lines.push(line);
    }
}
