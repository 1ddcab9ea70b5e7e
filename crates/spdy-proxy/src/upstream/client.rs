//! Sends requests to origins, unless they failed recently (`origin_backoff.rs`).
//!
//! A site's own origin is where the operator configured it, even in a private network. Other hosts are looked up by a guarded network,
//! which never leads to a private address (`spdy-resolver/address_rules.rs`). The two never share a connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_client::client::{Client, Config as ClientConfig};
use spdy_client::error::{Error, TimeoutPhase};
use spdy_client::origin::Origin;
use spdy_client::retry_budget::RetryBudget;
use spdy_client::route::Route;
use spdy_client::upgrade::UpgradeOutcome;
use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_net::body_wrapper::with_guard;
use spdy_net::connection::ClientOptions;
use spdy_net::network::SharedNetwork;
use spdy_net::protocol::Protocol;
use spdy_net::tls::ClientTls;

use crate::config::servers::ServerAddress;
use crate::config::upstream::UpstreamConfig;
use crate::sites::path_rules::PathRule;
use crate::sites::site::{Site, SiteServer};
use crate::sites::site_table::Sites;
use crate::upstream::concurrency::KeyedSemaphore;
use crate::upstream::error::UpstreamError;
use crate::upstream::grpc::{self, CallClient, GrpcCall};
use crate::upstream::origin_addresses::origin_addresses;
use crate::upstream::origin_backoff::OriginBackoff;
use crate::upstream::response_framing::{check_framing, normalize_content_length};
use crate::upstream::server_network::ServerNetwork;
use crate::upstream::servers::{Server, ServerPool};
use crate::upstream::slow_readers::{SLOW_AFTER, SlowReaders};
use crate::upstream::uploads::{UploadLimit, with_permit};

/// Bytes of an HTTP/2 response that may arrive before they are read.
const STREAM_WINDOW_BYTES: u32 = 512 * 1024;
/// Maximum number of concurrent responses of an origin over HTTP/2, even if it allows more: many origins state no limit.
const MAX_STREAMS: u32 = 256;
/// The same for all of them together. All requests to an origin share its connection: with a smaller window than that of all streams, slow
/// readers would block other readers.
const CONNECTION_WINDOW_BYTES: u32 = MAX_STREAMS * STREAM_WINDOW_BYTES;

/// The key of a host's permits: the site, the host, and the number in the site's rules. Rules with different numbers for the same host have
/// separate permits.
pub(crate) type FetchLimitKey = (String, Origin, usize);

/// The key of a pool of servers: a site, and a path with its own origin.
type PoolKey = (String, Option<String>);

/// All origins.
#[derive(Debug)]
pub struct Upstream {
    site: Client,
    /// For gRPC calls to the origins of sites.
    calls: CallClient,
    others: Client,
    /// The servers of sites that have several, and of paths with their own origin.
    servers: BTreeMap<PoolKey, ServerPool>,
    pub(crate) runtime: SharedRuntime,
    backoff: OriginBackoff,
    uploads: UploadLimit,
    /// The same for gRPC calls.
    sending_calls: UploadLimit,
    slow_readers: SlowReaders,
    pub(crate) fetch_limits: KeyedSemaphore<FetchLimitKey>,
    pub(crate) queue_timeout: Duration,
    /// From a request to the head of its response.
    pub(crate) head_timeout: Duration,
    /// How long both bodies of a gRPC call may be silent.
    pub(crate) grpc_idle_timeout: Duration,
    /// How many gRPC calls one client may have open, if that is a limit.
    pub(crate) calls_per_client: Option<usize>,
    retry_budget: Arc<RetryBudget>,
}

impl Upstream {
    /// The own origins of `sites` are contacted over `network`, those of other hosts over `guarded`. `tls` has the operator's trusted
    /// authorities.
    #[must_use]
    pub fn new(
        config: &UpstreamConfig,
        tls: Option<&ClientTls>,
        sites: &Sites,
        network: SharedNetwork,
        guarded: SharedNetwork,
        runtime: &SharedRuntime,
    ) -> Self {
        let retry_budget = Arc::new(RetryBudget::new(config.retry_percent));
        let backoff = || OriginBackoff::new(config.failures, config.backoff());
        let client_config = |resolve, aliases| {
            let mut connection = ClientOptions::default();
            connection.stream_window_bytes = STREAM_WINDOW_BYTES;
            connection.session_window_bytes = Some(CONNECTION_WINDOW_BYTES);
            connection.max_streams = Some(MAX_STREAMS as usize);
            connection.write_timeout = Some(Duration::from_secs(config.write_timeout_s));
            let mut client = ClientConfig::default();
            client.protocols = vec![Protocol::Http2, Protocol::Http1];
            client.http1_connections = config.connections;
            client.tls = tls.cloned();
            client.connect_timeout = Some(Duration::from_secs(config.connect_timeout_s));
            client.head_timeout = Some(Duration::from_secs(config.head_timeout_s));
            client.body_timeout = Some(Duration::from_secs(config.body_timeout_s));
            client.retries = config.retries;
            client.retry_budget = Some(retry_budget.clone());
            client.http1_idle_timeout = Some(Duration::from_secs(config.idle_timeout_s));
            client.queue_timeout = Some(config.queue_timeout());
            client.max_queued = config.queue;
            client.connection = connection;
            client.resolve = resolve;
            client.aliases = aliases;
            client
        };
        let client = |network, resolve, aliases| {
            Client::new(runtime.clone(), network, client_config(resolve, aliases))
        };
        let calls = |network, resolve, aliases| {
            let mut client = client_config(resolve, aliases);
            grpc::configure(&mut client);
            CallClient {
                client: Client::new(runtime.clone(), network, client),
                backoff: backoff(),
            }
        };
        let own = origin_addresses(sites, &config.resolve);
        let of_others = config.resolve.iter();
        let of_others = of_others.map(|(name, &address)| (name.clone(), None, address));
        let of_others = of_others.collect();
        let server = |server: &SiteServer| {
            let resolved = match &server.address {
                ServerAddress::Tcp(host, _) => config.address_of(host),
                ServerAddress::Unix(_) => None,
            };
            let network = ServerNetwork::shared(network.clone(), server.address.clone(), resolved);
            let own = client(network.clone(), Vec::new(), BTreeMap::new());
            let calls = calls(network.clone(), Vec::new(), BTreeMap::new());
            // A check waits for no request of a client.
            let checks = client(network, Vec::new(), BTreeMap::new());
            let name = server.address.to_string();
            Arc::new(Server::new(
                name,
                own,
                calls,
                checks,
                backoff(),
                server.weight,
            ))
        };
        let servers = sites.all().filter(|site| !site.servers.is_empty());
        let servers = servers.map(|site| {
            let servers = site.servers.iter().map(server).collect();
            let pool = ServerPool::new(servers, site.health_target(), runtime);
            ((site.name.clone(), None), pool)
        });
        let of_paths = sites.all().flat_map(|site| {
            let rules = site.paths.all();
            let rules = rules.filter_map(|rule| Some((rule, rule.origin()?)));
            rules.map(move |(rule, origin)| {
                let place = (site.name.clone(), Some(rule.path().to_owned()));
                (place, SiteServer::of_origin(origin))
            })
        });
        let of_paths = of_paths.map(|(place, of_origin)| {
            let servers = vec![server(&of_origin)];
            (place, ServerPool::new(servers, None, runtime))
        });
        let servers = servers.chain(of_paths).collect();
        Self {
            site: client(network.clone(), own.clone(), sites.connect_hosts().clone()),
            calls: calls(network, own, sites.connect_hosts().clone()),
            servers,
            others: client(guarded, of_others, BTreeMap::new()),
            runtime: runtime.clone(),
            backoff: backoff(),
            uploads: UploadLimit::new(config.max_uploads()),
            sending_calls: UploadLimit::new(grpc::MAX_SENDING_CALLS),
            slow_readers: SlowReaders::new(config.slow_readers()),
            fetch_limits: KeyedSemaphore::default(),
            queue_timeout: config.queue_timeout(),
            head_timeout: Duration::from_secs(config.head_timeout_s),
            grpc_idle_timeout: config.grpc_idle_timeout(),
            calls_per_client: config.calls_per_client(),
            retry_budget,
        }
    }

    /// Sends `request`, whose URI is absolute, to the own origin of `site`, for a path with `rule`.
    ///
    /// # Errors
    ///
    /// [`UpstreamError`]: the caller decides on the status for the client, and whether a stale response may take its place.
    pub(crate) async fn fetch_own(
        &self,
        site: &Site,
        rule: Option<&PathRule>,
        request: Request<Body>,
        priority: Priority,
    ) -> Result<Response<Body>, UpstreamError> {
        let origin = Origin::of(request.uri())?;
        let is_call = is_call(&request);
        let Some(pool) = self.pool(site, rule) else {
            let (client, backoff) = match is_call {
                true => (&self.calls.client, &self.calls.backoff),
                false => (&self.site, &self.backoff),
            };
            if backoff.rejects(&origin, self.runtime.now()) {
                return Err(UpstreamError::Backoff(origin));
            }
            return self
                .exchange(client, backoff, origin, request, priority)
                .await;
        };
        let mut tried = Vec::new();
        let mut request = request;
        loop {
            let Some(server) = pool.pick(&origin, is_call, &tried, self.runtime.now()) else {
                return Err(UpstreamError::Backoff(origin));
            };
            let again = try_clone(&request);
            let in_progress = server.begin();
            let (client, backoff) = server.client_for(is_call);
            let exchange = self.exchange(client, backoff, origin.clone(), request, priority);
            match (exchange.await, again) {
                // Nothing of the request has reached a server.
                (Err(UpstreamError::Client(error)), Some(again))
                    if is_not_connected(&error) && tried.len() + 1 < pool.all().len() =>
                {
                    drop(in_progress);
                    tried.push(server);
                    request = again;
                }
                (result, _) => {
                    return result.map(|response| {
                        response.map(|body| with_guard(body, in_progress, |_| ()))
                    });
                }
            }
        }
    }

    /// Sends `request`, whose URI is absolute, to another host.
    ///
    /// # Errors
    ///
    /// As of [`fetch_own`](Self::fetch_own).
    pub(super) async fn fetch_other(
        &self,
        request: Request<Body>,
        priority: Priority,
    ) -> Result<Response<Body>, UpstreamError> {
        let origin = Origin::of(request.uri())?;
        if self.backoff.rejects(&origin, self.runtime.now()) {
            return Err(UpstreamError::Backoff(origin));
        }
        self.exchange(&self.others, &self.backoff, origin, request, priority)
            .await
    }

    /// Sends `request` to `origin` with `client`, and records the result in `backoff`.
    async fn exchange(
        &self,
        client: &Client,
        backoff: &OriginBackoff,
        origin: Origin,
        request: Request<Body>,
        priority: Priority,
    ) -> Result<Response<Body>, UpstreamError> {
        let request = self.with_upload_permit(&origin, request).await?;
        let (sent_at, is_call) = (self.runtime.now(), is_call(&request));
        let result = self.send(client, &origin, request, priority).await;
        let now = self.runtime.now();
        let error = result.as_ref().err();
        if !is_call || error.is_none_or(grpc::is_failure) {
            backoff.record_result(origin.clone(), sent_at, error, now);
        }
        let mut response = result?;
        check_framing(response.headers(), origin.clone())?;
        normalize_content_length(&mut response);
        let route = response.extensions().get::<Route>();
        let is_exclusive = route.is_some_and(|route| !route.protocol.is_multiplexed());
        let is_incomplete = !http_body::Body::is_end_stream(response.body());
        Ok(match is_exclusive && is_incomplete {
            true => response.map(|body| self.slow_readers.read(origin, body, &self.runtime)),
            false => response,
        })
    }

    /// Sends `request` with `client`. While all connections are in use, responses that are read too slowly are aborted.
    async fn send(
        &self,
        client: &Client,
        origin: &Origin,
        request: Request<Body>,
        priority: Priority,
    ) -> Result<Response<Body>, Error> {
        let mut exchange = client.send(request, priority);
        loop {
            let timer = self.runtime.sleep_until(self.runtime.now() + SLOW_AFTER);
            match select(exchange, timer).await {
                Either::Left((response, _)) => return response,
                Either::Right(((), pending)) => exchange = pending,
            }
            if client.is_full(origin) {
                self.slow_readers.abort_slowest(origin, self.runtime.now());
            }
        }
    }

    /// Requests another protocol from the own origin of `site`. An origin that does not respond to this may respond to all other requests, so such a
    /// failure does not count.
    ///
    /// # Errors
    ///
    /// [`UpstreamError`], as of [`fetch_own`](Self::fetch_own).
    pub(crate) async fn upgrade(
        &self,
        site: &Site,
        rule: Option<&PathRule>,
        request: Request<Body>,
    ) -> Result<UpgradeOutcome, UpstreamError> {
        let origin = Origin::of(request.uri())?;
        let sent_at = self.runtime.now();
        let server = match self.pool(site, rule) {
            Some(pool) => {
                let server = pool.pick(&origin, false, &[], sent_at);
                Some(server.ok_or_else(|| UpstreamError::Backoff(origin.clone()))?)
            }
            None => None,
        };
        let (client, backoff) = match &server {
            Some(server) => (&server.client, &server.backoff),
            None if self.backoff.is_backing_off(&origin, sent_at) => {
                return Err(UpstreamError::Backoff(origin));
            }
            None => (&self.site, &self.backoff),
        };
        let switched = client.upgrade(request).await;
        match &switched {
            Err(error) if !error.is_unreachable() => (),
            switched => {
                let (error, now) = (switched.as_ref().err(), self.runtime.now());
                backoff.record_result(origin.clone(), sent_at, error, now);
            }
        }
        let switched = switched?;
        check_framing(switched.headers(), origin)?;
        Ok(switched)
    }

    /// The servers for `site` at a path with `rule`, if they are not those of the origin's name.
    fn pool(&self, site: &Site, rule: Option<&PathRule>) -> Option<&ServerPool> {
        if self.servers.is_empty() {
            return None;
        }
        let rule = rule.filter(|rule| rule.origin().is_some());
        let path = rule.map(|rule| rule.path().to_owned());
        self.servers.get(&(site.name.clone(), path))
    }

    /// The servers of sites that have several: the site's name, the server's address, and whether its checks allow requests.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        let of_sites = self.servers.iter().filter(|((_, path), _)| path.is_none());
        of_sites.flat_map(|((site, _), pool)| {
            let servers = pool.all().iter();
            servers.map(move |server| (&site[..], &server.name[..], server.is_available()))
        })
    }

    /// `request`, with a permit if its body is not complete yet.
    async fn with_upload_permit(
        &self,
        origin: &Origin,
        request: Request<Body>,
    ) -> Result<Request<Body>, UpstreamError> {
        if request.body().is_in_memory() {
            return Ok(request);
        }
        let deadline = self.runtime.now() + self.queue_timeout;
        let limit = match is_call(&request) {
            true => &self.sending_calls,
            false => &self.uploads,
        };
        let permit = Box::pin(limit.acquire(origin));
        match select(permit, self.runtime.sleep_until(deadline)).await {
            Either::Left((permit, _)) => Ok(request.map(|body| with_permit(body, permit))),
            Either::Right(_) => Err(UpstreamError::UploadQueueTimeout(origin.clone())),
        }
    }

    /// The number of responses that were aborted since the last call, because they were read too slowly while other requests waited.
    pub(crate) fn take_broken_off(&self) -> u64 {
        self.slow_readers.take_aborted()
    }

    /// The number of requests since the last call that were not retried because of the retry budget (`retry_percent`).
    pub(crate) fn take_retries_withheld(&self) -> u64 {
        self.retry_budget.take_withheld()
    }

    /// Closes all connections gracefully.
    pub async fn close(&self) {
        self.site.close().await;
        self.calls.client.close().await;
        self.others.close().await;
        for server in self.servers.values().flat_map(ServerPool::all) {
            server.client.close().await;
            server.client_for(true).0.close().await;
        }
    }

    /// Records the result of a request to another host, which was sent at `sent_at`.
    pub(super) fn record_result(&self, origin: Origin, sent_at: Instant, error: Option<&Error>) {
        let now = self.runtime.now();
        self.backoff.record_result(origin, sent_at, error, now);
    }
}

/// Whether it is a gRPC call.
fn is_call(request: &Request<Body>) -> bool {
    request.extensions().get::<GrpcCall>().is_some()
}

/// `request` once more, if its body is whole.
fn try_clone(request: &Request<Body>) -> Option<Request<Body>> {
    let body = request.body().try_clone()?;
    let mut again = Request::new(body);
    *again.method_mut() = request.method().clone();
    *again.uri_mut() = request.uri().clone();
    *again.version_mut() = request.version();
    again.headers_mut().clone_from(request.headers());
    again.extensions_mut().clone_from(request.extensions());
    Some(again)
}

/// Whether no connection was opened, so that nothing of the request was sent.
fn is_not_connected(error: &Error) -> bool {
    matches!(
        error,
        Error::Connect { .. }
            | Error::Resolve { .. }
            | Error::TimedOut {
                phase: TimeoutPhase::Connection,
                ..
            }
    )
}
