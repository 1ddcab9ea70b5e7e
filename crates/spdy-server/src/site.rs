//! A site in memory: finds a response by host name, method and target.
//!
//! A target is looked up exactly as requested, with its query: a replayed page sends the same requests as the recorded one, and an
//! approximate match would hide a difference. [`Site::with_similar_queries`] allows such matches, for pages that a browser loads. If one
//! target was recorded with two schemes or ports, the one that matches the connection is served.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};
use spdy_page::replica::Replica;

use crate::directory::Directory;
use crate::similar_query::most_similar;
use crate::stored_response::StoredResponse;

/// Counters of requests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SiteStats {
    /// All requests, with any response.
    pub requests: u64,
    /// Requests for an unknown target (404).
    pub not_found: u64,
    /// Requests for an unknown host (421).
    pub misdirected: u64,
}

/// Responses by host, method and target (path and query).
#[derive(Debug)]
pub struct Site {
    /// In the order of the replica.
    hosts: Vec<(String, Option<IpAddr>)>,
    /// By host without port, then by target.
    recorded: BTreeMap<String, BTreeMap<String, Vec<RecordedExchange>>>,
    /// Served under any host name.
    directory: Option<Directory>,
    /// The host to use for `localhost` and addresses.
    default_host: Option<String>,
    /// Whether an unknown target gets the response of a similar one.
    similar_queries: bool,
    /// See [`with_range_rests`](Self::with_range_rests).
    range_rest_bytes: usize,
    requests: AtomicU64,
    not_found: AtomicU64,
    misdirected: AtomicU64,
}

/// One exchange of a target.
#[derive(Debug)]
struct RecordedExchange {
    method: Method,
    secure: bool,
    port: Option<u16>,
    response: StoredResponse,
}

/// The result of a lookup.
#[derive(Debug)]
pub enum LookupResult<'a> {
    /// The response.
    Response(&'a StoredResponse),
    /// The response of this recorded target, whose query differs.
    Similar(&'a str, &'a StoredResponse),
    /// A folder was requested without its trailing slash: the target of the redirect.
    Redirect(String),
    /// The target exists, but only for these methods.
    OtherMethods(Vec<Method>),
    /// The host is served, but the target does not exist.
    NoTarget,
    /// The host is not served.
    NoHost,
}

impl Site {
    fn empty() -> Self {
        Self {
            hosts: Vec::new(),
            recorded: BTreeMap::new(),
            directory: None,
            default_host: None,
            similar_queries: false,
            range_rest_bytes: 0,
            requests: AtomicU64::new(0),
            not_found: AtomicU64::new(0),
            misdirected: AtomicU64::new(0),
        }
    }

    /// The responses of `replica`. Hop-by-hop headers are removed, and content-length is corrected. Of several responses to one request the
    /// first full one is served.
    ///
    /// Media are recorded as 206. If the 206 responses of a target together contain all bytes, it is served like any file.
    /// Otherwise a range request gets the known bytes from its first byte on, and any other request gets 404.
    #[must_use]
    pub fn of_replica(replica: &Replica) -> Self {
        Self::with_think_times(replica, &replica.think_times())
    }

    /// The same with these think times, one for each exchange.
    ///
    /// # Panics
    ///
    /// If there are more or fewer think times than exchanges.
    #[must_use]
    pub fn with_think_times(replica: &Replica, think_times: &[Duration]) -> Self {
        assert_eq!(
            replica.exchanges.len(),
            think_times.len(),
            "a think time for each exchange"
        );
        let mut site = Self::empty();
        for (index, exchange) in replica.exchanges.iter().enumerate() {
            let Some(host) = exchange.url.host_str().map(normalize_host) else {
                continue;
            };
            match site.hosts.iter_mut().find(|(name, _)| *name == host) {
                Some((_, address)) => *address = address.or(exchange.address),
                None => site.hosts.push((host.clone(), exchange.address)),
            }
            let Some(mut response) = StoredResponse::from_exchange(exchange) else {
                tracing::warn!(url = %exchange.url, "ignored an invalid recorded response head");
                continue;
            };
            response.think_time = think_times[index];
            response.exchange = Some(index);
            let secure = exchange.url.scheme() == "https";
            let (method, port) = (exchange.method.clone(), exchange.url.port());
            let recorded_exchange = RecordedExchange {
                method,
                secure,
                port,
                response,
            };
            let targets = site.recorded.entry(host).or_default();
            let all = targets
                .entry(spdy_page::head::target(&exchange.url))
                .or_default();
            let same = |old: &&mut RecordedExchange| {
                (&old.method, old.secure, old.port) == (&recorded_exchange.method, secure, port)
            };
            match all.iter_mut().find(same) {
                None => all.push(recorded_exchange),
                // A client without a copy needs a full response, neither "not modified" nor a part.
                Some(old) if is_fuller(&recorded_exchange.response, &old.response) => {
                    *old = recorded_exchange;
                }
                Some(old) => old.response.merge_parts(&recorded_exchange.response),
            }
        }
        let recorded = site.recorded.values_mut().flat_map(BTreeMap::values_mut);
        recorded.flatten().for_each(|one| one.response.complete());
        site
    }

    /// The files of `directory`, under any host name.
    #[must_use]
    pub fn of_directory(directory: Directory) -> Self {
        Self {
            directory: Some(directory),
            ..Self::empty()
        }
    }

    /// Sets `host` as the host for requests to `localhost` or to an address.
    #[must_use]
    pub fn with_default_host(mut self, host: &str) -> Self {
        self.default_host = Some(normalize_host(host));
        self
    }

    /// Serves an unknown target with the response of the recorded target that has the same path and the most similar query. The
    /// response has [`SimilarTarget`](crate::respond::SimilarTarget) as an extension.
    ///
    /// A lookup of an unknown target then compares it with all recorded queries of its path: for trusted clients only.
    #[must_use]
    pub fn with_similar_queries(mut self) -> Self {
        self.similar_queries = true;
        self
    }

    /// Continues the response to a range of which only the first bytes were recorded with zeros, at most `max_bytes` of them. Without it,
    /// or if more than `max_bytes` bytes were recorded, such a response ends after the recorded bytes.
    ///
    /// It is for a client that cancels after the recorded bytes, so that more is under way then, as from the real server.
    #[must_use]
    pub fn with_range_rests(mut self, max_bytes: usize) -> Self {
        self.range_rest_bytes = max_bytes;
        self
    }

    pub(crate) fn range_rest_bytes(&self) -> usize {
        self.range_rest_bytes
    }

    /// Host names served, in the order of the replica, with the recorded address of each. Empty for a
    /// directory, which is served under any name.
    #[must_use]
    pub fn hosts(&self) -> Vec<(String, Option<IpAddr>)> {
        self.hosts.clone()
    }

    /// Number of served targets, over all hosts.
    #[must_use]
    pub fn targets(&self) -> usize {
        let recorded: usize = self.recorded.values().map(BTreeMap::len).sum();
        recorded + self.directory.as_ref().map_or(0, Directory::len)
    }

    /// Counters so far.
    #[must_use]
    pub fn stats(&self) -> SiteStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SiteStats {
            requests: read(&self.requests),
            not_found: read(&self.not_found),
            misdirected: read(&self.misdirected),
        }
    }

    /// The response to a GET of `target` on `host`. It is not counted as a request.
    pub(crate) fn response(
        &self,
        host: Option<&str>,
        target: &str,
        secure: bool,
    ) -> Option<&StoredResponse> {
        match self.lookup(host, &Method::GET, target, secure) {
            LookupResult::Response(response) => Some(response),
            _ => None,
        }
    }

    /// All responses.
    pub(crate) fn responses(&self) -> impl Iterator<Item = &StoredResponse> {
        let recorded = self.recorded.values().flat_map(BTreeMap::values).flatten();
        let files = self.directory.iter().flat_map(Directory::responses);
        recorded
            .map(|recorded| &recorded.response)
            .chain(files.map(|(_, response)| response))
    }

    /// The recorded host that is served for `host`; "" for a folder.
    pub(crate) fn host_behind(&self, host: Option<&str>) -> &str {
        let (name, _) = split_port(host.unwrap_or_default());
        let bare = normalize_host(name);
        let recorded_host = self
            .recorded
            .get_key_value(&bare)
            .map(|(host, _)| &host[..]);
        match (recorded_host, &self.default_host) {
            (Some(recorded_host), _) => recorded_host,
            (None, Some(default)) if self.targets_of(&bare).is_some() => default,
            (None, _) => "",
        }
    }

    /// The served folder, if the site is one.
    #[must_use]
    pub fn directory(&self) -> Option<&Directory> {
        self.directory.as_ref()
    }

    /// Looks up `method` and `target` on `host`, which may include a port. HEAD is handled like GET.
    pub fn find(
        &self,
        host: Option<&str>,
        method: &Method,
        target: &str,
        secure: bool,
    ) -> LookupResult<'_> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let result = self.lookup(host, method, target, secure);
        match result {
            LookupResult::NoTarget => {
                self.not_found.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(host = host.unwrap_or("-"), target, "not found");
            }
            LookupResult::NoHost => {
                self.misdirected.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(host = host.unwrap_or("-"), target, "host is not served");
            }
            LookupResult::Response(_)
            | LookupResult::Similar(..)
            | LookupResult::Redirect(_)
            | LookupResult::OtherMethods(_) => {}
        }
        result
    }

    /// Counts a request for bytes that were not recorded (404).
    pub(crate) fn count_missing_part(&self) {
        self.not_found.fetch_add(1, Ordering::Relaxed);
    }

    fn lookup<'a>(
        &'a self,
        host: Option<&str>,
        method: &Method,
        target: &str,
        secure: bool,
    ) -> LookupResult<'a> {
        let method = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        if let Some(directory) = &self.directory {
            return directory.find(method, target);
        }
        let (name, port) = split_port(host.unwrap_or_default());
        let Some(targets) = self.targets_of(&normalize_host(name)) else {
            return LookupResult::NoHost;
        };
        let fit = |one: &&RecordedExchange| (one.secure == secure, one.port == port);
        let best = |all: &'a [RecordedExchange]| {
            let all = all.iter().filter(|one| one.method == *method);
            all.rev().max_by_key(fit)
        };
        let Some(all) = targets.get(target) else {
            let similar = self
                .similar_queries
                .then(|| most_similar(targets, target, |all| best(all)));
            return match similar.flatten() {
                Some((name, one)) => LookupResult::Similar(name, &one.response),
                None => LookupResult::NoTarget,
            };
        };
        match best(all) {
            Some(best) => LookupResult::Response(&best.response),
            None => {
                let mut methods: Vec<Method> = all.iter().map(|one| one.method.clone()).collect();
                methods.dedup();
                LookupResult::OtherMethods(methods)
            }
        }
    }

    fn targets_of(&self, host: &str) -> Option<&BTreeMap<String, Vec<RecordedExchange>>> {
        self.recorded.get(host).or_else(|| {
            let by_number =
                host.is_empty() || host == "localhost" || host.parse::<IpAddr>().is_ok();
            self.recorded
                .get(self.default_host.as_ref().filter(|_| by_number)?)
        })
    }
}

/// True if `new` is a better response than `old` for a client without a copy.
fn is_fuller(new: &StoredResponse, old: &StoredResponse) -> bool {
    let rank = |response: &StoredResponse| match response.status {
        StatusCode::NOT_MODIFIED => 0,
        StatusCode::PARTIAL_CONTENT => 1,
        _ => 2,
    };
    match (rank(new), rank(old)) {
        (_, 0) => true,
        // A failed exchange is no better than a part.
        (new_rank, 1) => new_rank == 2 && new.status.is_success(),
        _ => false,
    }
}

/// The host in lower case, without brackets and final dot.
fn normalize_host(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Splits a host and its port, if there is one.
fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address without brackets do not start a port.
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
            (name, port.parse().ok())
        }
        _ => (host, None),
    }
}
