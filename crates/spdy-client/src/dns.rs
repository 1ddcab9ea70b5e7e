//! Name resolution: a small cache, and one lookup for all requests that wait for the same name.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;
use spdy_net::latch::Latch;
use spdy_net::network::SharedNetwork;

use crate::error::Error;
use crate::origin::Origin;
use crate::timing::Span;

/// Names in the cache; when it is full, it is cleared.
const MAX_NAMES: usize = 4096;

/// The name cache. Clones share it.
#[derive(Clone)]
pub(crate) struct Dns {
    runtime: SharedRuntime,
    network: SharedNetwork,
    ttl: Duration,
    fixed: Arc<[(String, Option<u16>, IpAddr)]>,
    aliases: Arc<BTreeMap<String, String>>,
    names: Arc<Mutex<BTreeMap<String, Arc<Lookup>>>>,
}

/// A pending or cached lookup.
struct Lookup {
    started_at: Instant,
    /// Set when the answer has arrived.
    answered: Latch,
    answer: OnceLock<(Instant, Result<Vec<IpAddr>, LookupError>)>,
}

/// Addresses, and the time spent waiting for them.
pub(crate) type ResolveResult = (Result<Vec<IpAddr>, LookupError>, Option<Span>);

/// Why a name has no address. Every request that waited for the lookup gets a copy.
#[derive(Clone, Debug)]
pub(crate) struct LookupError {
    kind: io::ErrorKind,
    reason: String,
}

impl LookupError {
    fn no_address() -> Self {
        Self {
            kind: io::ErrorKind::NotFound,
            reason: "the name has no address".to_owned(),
        }
    }

    /// Converts it to the error of a request to `host`.
    pub(crate) fn for_host(self, host: &str) -> Error {
        Error::Resolve {
            host: host.to_owned(),
            kind: self.kind,
            reason: self.reason,
        }
    }
}

impl From<io::Error> for LookupError {
    fn from(error: io::Error) -> Self {
        Self {
            kind: error.kind(),
            reason: error.to_string(),
        }
    }
}

impl Dns {
    pub(crate) fn new(
        runtime: SharedRuntime,
        network: SharedNetwork,
        ttl: Duration,
        fixed: &[(String, Option<u16>, IpAddr)],
        aliases: &BTreeMap<String, String>,
    ) -> Self {
        let fixed = fixed
            .iter()
            .map(|(host, port, ip)| (host.to_ascii_lowercase(), *port, *ip));
        Self {
            runtime,
            network,
            ttl,
            fixed: fixed.collect(),
            aliases: Arc::new(aliases.clone()),
            names: Arc::default(),
        }
    }

    /// The addresses of `origin`'s host, in the order in which they are tried.
    pub(crate) async fn resolve(&self, origin: &Origin) -> ResolveResult {
        if let Some(configured) = self.without_lookup(origin) {
            return (Ok(configured), None);
        }
        let began = self.runtime.now();
        let look_up = self.lookup(self.name(origin), began);
        let was_cached = look_up.answered.is_set();
        look_up.answered.wait().await;
        let (_, answer) = look_up
            .answer
            .get()
            .expect("the latch is set after the result");
        let waited = (!was_cached).then(|| (began, self.runtime.now()));
        (answer.clone(), waited)
    }

    /// Starts the lookup of `origin`'s host, unless it is cached or pending.
    pub(crate) fn prefetch(&self, origin: &Origin) {
        if self.without_lookup(origin).is_none() {
            self.lookup(self.name(origin), self.runtime.now());
        }
    }

    /// True if the addresses of `origin`'s host are known.
    pub(crate) fn is_resolved(&self, origin: &Origin) -> bool {
        let is_answered = || {
            let names = self.names.lock();
            let lookup = names.get(self.name(origin));
            lookup.is_some_and(|lookup| lookup.answered.is_set())
        };
        self.without_lookup(origin).is_some() || is_answered()
    }

    /// The name that is looked up for `origin`.
    fn name<'a>(&'a self, origin: &'a Origin) -> &'a str {
        self.aliases.get(&origin.host).unwrap_or(&origin.host)
    }

    /// The addresses of `origin`'s host if they are configured, or if it is an address.
    fn without_lookup(&self, origin: &Origin) -> Option<Vec<IpAddr>> {
        let fixed: Vec<IpAddr> = self
            .fixed
            .iter()
            .filter(|(host, port, _)| {
                *host == origin.host && port.is_none_or(|port| port == origin.port)
            })
            .map(|(_, _, address)| *address)
            .collect();
        if !fixed.is_empty() {
            return Some(fixed);
        }
        let address = self.name(origin).trim_matches(['[', ']']).parse().ok()?;
        Some(vec![address])
    }

    /// The pending or fresh lookup of `host`, or a new one.
    fn lookup(&self, host: &str, now: Instant) -> Arc<Lookup> {
        let mut names = self.names.lock();
        if let Some(cached) = names.get(host) {
            let good = match cached.answer.get() {
                None => true,
                Some((_, Err(_))) => false,
                Some((at, Ok(_))) => now.saturating_since(*at) < self.ttl,
            };
            if good {
                return cached.clone();
            }
        }
        if names.len() >= MAX_NAMES {
            names.clear();
        }
        let look_up = Arc::new(Lookup {
            started_at: now,
            answered: Latch::new(),
            answer: OnceLock::new(),
        });
        names.insert(host.to_owned(), look_up.clone());
        // A separate task: the first caller may be dropped while other callers still wait.
        let (pending, question) = (look_up.clone(), self.network.resolve(host));
        let runtime = self.runtime.clone();
        self.runtime.spawn(Box::pin(async move {
            let answer = match question.await {
                Ok(addresses) if addresses.is_empty() => Err(LookupError::no_address()),
                Ok(addresses) => Ok(addresses),
                Err(error) => Err(error.into()),
            };
            let now = runtime.now();
            tracing::trace!(took = ?(now - pending.started_at), ?answer, "name resolved");
            let _ = pending.answer.set((now, answer));
            pending.answered.set();
        }));
        look_up
    }
}
