//! Resolves a host to its addresses: from upstream servers, never from ourselves.
//!
//! ```text
//!  host ──▶ config.rs        a configured address? then no lookup
//!       ──▶ own_names.rs     one of our own names? refused ("the request would loop")
//!       ──▶ cache.rs         a response that is still valid, also a negative one
//!       ──▶ exchange.rs      A and AAAA in parallel: UDP, then TCP; the next server when one fails
//!       ──▶ reply.rs         along the aliases to addresses, and their TTL
//!       ──▶ spoof_budget.rs  counts replies that do not match the query; after too many, TCP only
//! ```
//!
//! The accelerator's names lead to the accelerator, in the public DNS and in its own zones. A resolver that followed them
//! would make it fetch from itself. So [`OwnNames`] are refused as origins, unless the operator configured an address.
//!
//! A [`Resolver`] is a [`Network`]: it resolves, and the network below it connects. Without servers it queries that
//! network's own resolver, which in the lab is virtual time's.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join;
use hickory_proto::ProtoError;
use hickory_proto::rr::{Name, RecordType};
use parking_lot::Mutex;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_net::network::{BoxIo, DatagramSocket, Network, SharedNetwork};

use crate::cache::{Cache, CachedAnswer, NegativeAnswer};
use crate::config::ResolverConfig;
use crate::exchange::query_server;
use crate::own_names::OwnNames;
use crate::reply::{Question, Reply};
use crate::spoof_budget::{MismatchedReplies, SpoofBudget};

/// A resolver, and the network below it. Clones share one cache.
#[derive(Clone)]
pub struct Resolver {
    network: SharedNetwork,
    runtime: SharedRuntime,
    config: Arc<ResolverConfig>,
    own: OwnNames,
    cache: Arc<Mutex<Cache>>,
    random: Arc<Mutex<ChaCha20Rng>>,
    mismatched: MismatchedReplies,
    in_flight: Arc<AtomicUsize>,
}

/// A permit for one of the concurrent look-ups.
struct LookupPermit(Arc<AtomicUsize>);

impl Drop for LookupPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Resolver {
    /// A resolver over `network` that refuses `own` names. IDs and letter cases of its questions follow from `seed`. An
    /// attacker that knows the seed can forge replies, so outside of a simulation it must come from the system.
    #[must_use]
    pub fn new(
        network: SharedNetwork,
        runtime: SharedRuntime,
        config: ResolverConfig,
        own: OwnNames,
        seed: [u8; 32],
    ) -> Self {
        Self {
            network,
            runtime,
            config: Arc::new(config),
            own,
            cache: Arc::default(),
            random: Arc::new(Mutex::new(ChaCha20Rng::from_seed(seed))),
            mismatched: MismatchedReplies::default(),
            in_flight: Arc::default(),
        }
    }

    /// The same, but counts replies that match none of its questions in `mismatched`.
    #[must_use]
    pub fn with_counts(mut self, mismatched: MismatchedReplies) -> Self {
        self.mismatched = mismatched;
        self
    }

    async fn resolve_host(self, host: String) -> io::Result<Vec<IpAddr>> {
        let host = host.to_ascii_lowercase();
        if let Some(explicit) = self.config.explicit.get(&host) {
            return Ok(explicit.clone());
        }
        // An invalid name is none of ours.
        if absolute_name(&host).is_ok_and(|name| self.own.contains(&name)) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "{host} is a name of this program and has no configured origin address: the request would loop"
                ),
            ));
        }
        let answer = {
            let cache = self.cache.lock();
            cache.get(self.runtime.now(), &host)
        };
        let answer = match answer {
            Some(answer) => answer,
            None => {
                let (answer, ttl) = self.lookup(&host).await?;
                let end = self.runtime.now() + ttl;
                let mut cache = self.cache.lock();
                cache.put(&host, end, answer.clone(), self.config.hosts);
                answer
            }
        };
        answer.map_err(|nothing| {
            let what = match nothing {
                NegativeAnswer::Name => "unknown host",
                NegativeAnswer::Address => "no address for",
            };
            let reason = format!("{what} {host} (`upstream.resolve` gives a name an address)");
            io::Error::new(io::ErrorKind::NotFound, reason)
        })
    }

    /// Looks up `host`. Returns the answer, and how long it is valid.
    async fn lookup(&self, host: &str) -> io::Result<(CachedAnswer, Duration)> {
        let _place = self.place()?;
        let config = &self.config;
        if config.servers.is_empty() {
            let addresses = self.network.resolve(host).await?;
            return Ok(if addresses.is_empty() {
                (Err(NegativeAnswer::Address), config.max_negative_ttl)
            } else {
                (Ok(addresses), config.default_ttl)
            });
        }
        let name = absolute_name(host).map_err(|error| {
            let reason = format!("invalid hostname {host:?}: {error}");
            io::Error::new(io::ErrorKind::InvalidInput, reason)
        })?;
        let suspicion = SpoofBudget::new(config.max_mismatched_replies, self.mismatched.clone());
        let v6 = self.addresses(name.clone(), RecordType::AAAA, &suspicion);
        let (v6, v4) = join(v6, self.addresses(name, RecordType::A, &suspicion)).await;
        match (v6, v4) {
            (Ok((Ok(v6), ttl_v6)), Ok((Ok(v4), ttl_v4))) => {
                let addresses = interleave(&v6, &v4);
                Ok((Ok(addresses), self.clamp_ttl(ttl_v6.min(ttl_v4))))
            }
            // One kind is enough: the other failed, or has no addresses.
            (Ok((Ok(addresses), ttl)), _) | (_, Ok((Ok(addresses), ttl))) => {
                Ok((Ok(addresses), self.clamp_ttl(ttl)))
            }
            (Ok((Err(nothing), ttl)), Ok((Err(also), ttl_also))) => {
                let nothing = match (nothing, also) {
                    (NegativeAnswer::Name, NegativeAnswer::Name) => NegativeAnswer::Name,
                    _ => NegativeAnswer::Address,
                };
                let ttl = ttl.min(ttl_also).min(config.max_negative_ttl);
                Ok((Err(nothing), ttl))
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    fn clamp_ttl(&self, ttl: Duration) -> Duration {
        // `clamp` panics if its bounds are not in order, and a configuration may have them so.
        ttl.max(self.config.min_ttl).min(self.config.max_ttl)
    }

    fn place(&self) -> io::Result<LookupPermit> {
        let before = self.in_flight.fetch_add(1, Ordering::AcqRel);
        let place = LookupPermit(self.in_flight.clone());
        if before >= self.config.max_lookups {
            let most = self.config.max_lookups;
            let reason = format!("too many DNS lookups in progress (limit {most})");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, reason));
        }
        Ok(place)
    }

    /// Looks up addresses of one kind, and follows aliases from one reply to another.
    async fn addresses(
        &self,
        name: Name,
        kind: RecordType,
        suspicion: &SpoofBudget,
    ) -> io::Result<(CachedAnswer, Duration)> {
        let (mut name, mut ttl, mut aliases) = (name, Duration::MAX, 0);
        let mut seen = BTreeSet::new();
        while seen.insert(name.clone()) {
            let (found, reply_ttl, through) =
                match self.query_servers(&name, kind, suspicion).await? {
                    Reply::Addresses {
                        addresses,
                        ttl,
                        through,
                    } => (Some(addresses), ttl, through),
                    Reply::Alias { ttl, through } => (None, ttl, through),
                    Reply::Nothing {
                        nothing,
                        ttl: reply_ttl,
                    } => return Ok((Err(nothing), ttl.min(reply_ttl))),
                    Reply::AliasLoop | Reply::Truncated | Reply::Failed(_) => break,
                };
            if let Some(own) = through.iter().find(|name| self.own.contains(name)) {
                let reason = format!(
                    "{name} is an alias of {own}, a name of this program: the request would loop"
                );
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
            }
            aliases += through.len();
            ttl = ttl.min(reply_ttl);
            if aliases > self.config.aliases {
                break;
            }
            match (found, through.into_iter().next_back()) {
                (Some(addresses), _) => return Ok((Ok(addresses), ttl)),
                (None, Some(target)) => name = target,
                (None, None) => break,
            }
        }
        let most = self.config.aliases;
        let reason = format!("{name} is a circle or chain of more than {most} aliases");
        Err(io::Error::new(io::ErrorKind::InvalidData, reason))
    }

    /// The first usable reply of any server.
    async fn query_servers(
        &self,
        name: &Name,
        kind: RecordType,
        suspicion: &SpoofBudget,
    ) -> io::Result<Reply> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no name server was queried");
        for _ in 0..self.config.rounds.max(1) {
            for &server in &self.config.servers {
                let question = {
                    let random = self.random.lock();
                    let mut random = random;
                    Question::new(name, kind, &mut *random)
                };
                let (network, runtime, timeout) =
                    (&self.network, &self.runtime, self.config.timeout);
                let querying =
                    query_server(network, runtime, server, &question, timeout, suspicion);
                last = match querying.await {
                    Ok(Reply::Failed(code)) => {
                        io::Error::other(format!("{server} returned {code} for {name}"))
                    }
                    Ok(Reply::Truncated) => io::Error::other(format!(
                        "{server} returned a truncated response for {name} over TCP"
                    )),
                    Ok(reply) => return Ok(reply),
                    Err(error) => {
                        let reason = format!("query to {server} for {name} failed: {error}");
                        io::Error::new(error.kind(), reason)
                    }
                };
                tracing::debug!(error = %last, "a name server gave no usable response");
            }
        }
        Err(last)
    }
}

/// `host` as a name below the root.
fn absolute_name(host: &str) -> Result<Name, ProtoError> {
    let mut name = Name::from_ascii(host)?;
    name.set_fqdn(true);
    Ok(name)
}

/// Alternates the two families, IPv6 first (RFC 8305 §4), so that a client that tries them in order soon tries both.
fn interleave(v6: &[IpAddr], v4: &[IpAddr]) -> Vec<IpAddr> {
    let longest = v6.len().max(v4.len());
    let turns = (0..longest).flat_map(|at| [v6.get(at), v4.get(at)]);
    turns.flatten().copied().collect()
}

impl Network for Resolver {
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        Box::pin(self.clone().resolve_host(host.to_owned()))
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        self.network.connect(to)
    }

    fn datagrams(&self, local: SocketAddr) -> io::Result<DatagramSocket> {
        self.network.datagrams(local)
    }
}
