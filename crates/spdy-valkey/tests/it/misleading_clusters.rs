//! Clusters that mislead their clients: none blocks the tier for ever.
//!
//! A client can lose its way while the cluster goes down: every node that it knows is gone, and it does not go back to the configured
//! ones. The tier creates another client.
//!
//! ```text
//!  client ──▶ the one that is left       EXISTS ─▶ MOVED to the silent one ─▶ a connection to it is wanted, and
//!                                        CLUSTER SLOTS ─▶ all are the silent one's ─▶ no other connection is kept
//!         ──▶ the silent one             no connection is left: CLUSTER SLOTS is sent to no node
//! ```

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use spdy_cache::shared_tier::PurgeVersion;
use spdy_testkit::redis_cluster::{NODES, RedisCluster, peers_enabled};
use spdy_testkit::wait::until;
use spdy_valkey::config::Config;
use spdy_valkey::tier::Tier;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Counters of the two nodes.
#[derive(Debug, Default)]
struct NodeCounts {
    /// Commands that were sent on from the one that is left.
    sent_on: AtomicUsize,
    /// Connections to the silent one that were given up since.
    given_up: AtomicUsize,
}

/// Requests to a node that forgets everything it is sent.
#[derive(Debug, Default)]
struct RequestCounts {
    /// The log of purges.
    reads: AtomicUsize,
    probes: AtomicUsize,
}

/// The words of the next command; `None` at the end.
async fn command(from: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut line = String::new();
    from.read_line(&mut line).await.ok()?;
    let words: usize = line.trim_end().strip_prefix('*')?.parse().ok()?;
    let mut command = Vec::new();
    for _ in 0..words {
        line.clear();
        from.read_line(&mut line).await.ok()?;
        let len: usize = line.trim_end().strip_prefix('$')?.parse().ok()?;
        let mut word = vec![0; len + 2];
        from.read_exact(&mut word).await.ok()?;
        word.truncate(len);
        command.push(String::from_utf8_lossy(&word).into_owned());
    }
    Some(command)
}

/// The replies of a node about itself and the owner of all slots.
fn of_cluster(command: &[String], owner: SocketAddr) -> Option<String> {
    let (ip, port) = (owner.ip().to_string(), owner.port());
    let len = ip.len();
    match command[0].as_str() {
        "HELLO" => Some("%1\r\n$5\r\nproto\r\n:3\r\n".to_owned()),
        "CLIENT" => Some("+OK\r\n".to_owned()),
        "PING" => Some("+PONG\r\n".to_owned()),
        "CLUSTER" => Some(format!(
            "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n${len}\r\n{ip}\r\n:{port}\r\n"
        )),
        _ => None,
    }
}

/// A node that replies with the result of `respond`.
async fn node(
    listener: TcpListener,
    respond: impl Fn(&[String]) -> String + Send + Sync + 'static,
) {
    let (respond, mut connections) = (Arc::new(respond), JoinSet::new());
    while let Ok((stream, _)) = listener.accept().await {
        let (respond, mut stream) = (respond.clone(), BufReader::new(stream));
        connections.spawn(async move {
            while let Some(command) = command(&mut stream).await {
                let reply = respond(&command);
                if stream.write_all(reply.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// A node that has all slots until one of them is requested.
async fn node_that_moves_slots(
    listener: TcpListener,
    silent_address: SocketAddr,
    counts: Arc<NodeCounts>,
) {
    let address = listener.local_addr().expect("it is bound");
    let respond = move |command: &[String]| {
        let owner = match counts.sent_on.load(Ordering::SeqCst) {
            0 => address,
            _ => silent_address,
        };
        of_cluster(command, owner).unwrap_or_else(|| {
            counts.sent_on.fetch_add(1, Ordering::SeqCst);
            format!("-MOVED 0 {silent_address}\r\n")
        })
    };
    node(listener, respond).await;
}

/// A node that accepts connections, and sends nothing.
async fn silent_node(listener: TcpListener, counts: Arc<NodeCounts>) {
    let mut connections = JoinSet::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let is_counted = counts.sent_on.load(Ordering::SeqCst) > 0;
        let counts = counts.clone();
        connections.spawn(async move {
            // An error is an end, too.
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
            if is_counted {
                counts.given_up.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
}

async fn stopped(node: JoinHandle<()>) {
    node.abort();
    let result = node.await;
    assert!(result.is_err_and(|error| error.is_cancelled()), "it runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_returning_cluster_is_found_again() {
    if !peers_enabled() {
        return;
    }
    let mut cluster = RedisCluster::start();
    let config = Config {
        nodes: cluster.urls(),
        // Under load everything takes its time.
        timeout: Duration::from_secs(10),
        poll: Duration::from_millis(50),
        ..Config::default()
    };
    let addresses = config.nodes.iter().map(|url| {
        let address = url.strip_prefix("redis://").map(str::parse);
        address.and_then(Result::ok).expect("an address and a port")
    });
    let addresses: Vec<SocketAddr> = addresses.collect();
    let tier = Tier::start(config, PurgeVersion::default(), Arc::new(|_: &_, _| ()));
    let tier = tier.expect("a valid configuration");
    let all = tier.parts().1;
    let waits = |what: &str, parts: usize| {
        tokio::task::block_in_place(|| until(what, || tier.parts().0 == parts));
    };
    waits("the cluster is found", all);

    let counts = Arc::new(NodeCounts::default());
    (0..NODES).for_each(|node| cluster.kill(node));
    let bound = async |node: usize| TcpListener::bind(addresses[node]).await;
    let silent_listener = bound(1).await.expect("the port is free");
    let moving_listener = bound(0).await.expect("the port is free");
    let silent_task = tokio::spawn(silent_node(silent_listener, counts.clone()));
    let moving_task = tokio::spawn(node_that_moves_slots(
        moving_listener,
        addresses[1],
        counts.clone(),
    ));
    // One that was for the slots, and at least one that a command was sent on for.
    let is_lost = || counts.given_up.load(Ordering::SeqCst) >= 2;
    tokio::task::block_in_place(|| until("no way is left", is_lost));
    waits("no node responds", 0);
    stopped(moving_task).await;
    stopped(silent_task).await;

    cluster.restart(&[0, 1, 2]);
    waits("the cluster is found again", all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_always_lost_does_not_block_the_tier() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    let request_counts = Arc::new(RequestCounts::default());
    let counter = request_counts.clone();
    let forgetful = move |command: &[String]| {
        of_cluster(command, address).unwrap_or_else(|| match command[0].as_str() {
            "XADD" => "$3\r\n1-0\r\n".to_owned(),
            "XRANGE" => {
                counter.reads.fetch_add(1, Ordering::SeqCst);
                "*0\r\n".to_owned()
            }
            _ => {
                counter.probes.fetch_add(1, Ordering::SeqCst);
                ":0\r\n".to_owned()
            }
        })
    };
    let node = tokio::spawn(node(listener, forgetful));
    let config = Config {
        nodes: vec![format!("redis://{address}")],
        timeout: Duration::from_secs(1),
        poll: Duration::from_millis(50),
        ..Config::default()
    };
    let tier = Tier::start(config, PurgeVersion::default(), Arc::new(|_: &_, _| ()));
    let tier = tier.expect("a valid configuration");
    let reads = || request_counts.reads.load(Ordering::SeqCst);
    let probes = || request_counts.probes.load(Ordering::SeqCst);
    tokio::task::block_in_place(|| {
        until("what was not there is looked for again", || reads() > 1);
        let probes_before = probes();
        until("there is another round", || probes() > probes_before);
    });
    assert_eq!(tier.parts().0, 0, "the purge log is unreadable");
    stopped(node).await;
}
