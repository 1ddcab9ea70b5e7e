//! The servers of a site's origin: which one gets a request, and which ones are available.
//!
//! ```text
//!  pick ──▶ available, not in backoff ──▶ fewest (requests in progress + 1) / share ──▶ request ── not connected ──▶ the next one
//!                                                              └ weight, less in the slow start
//!  health check, one a server: 2 failures in a row (or the first check) ──▶ out;  2 successes ──▶ available, slow start begins
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{Either, select};
use http::{Request, Uri};
use parking_lot::Mutex;
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_client::client::Client;
use spdy_client::origin::Origin;
use spdy_clock::Instant;
use spdy_frame::priority::Priority;

use crate::config::servers::HealthConfig;
use crate::upstream::grpc::CallClient;
use crate::upstream::origin_backoff::OriginBackoff;

/// Checks in a row with the same result that change whether a server is available.
const CHECKS: u32 = 2;
/// The minimum part of its weight that a server has at the start of the slow start.
const LEAST_SHARE: f64 = 0.05;

/// The servers of one site.
#[derive(Debug)]
pub(crate) struct ServerPool {
    servers: Vec<Arc<Server>>,
    slow_start: Duration,
    /// The server with which the next search begins, so that equal servers take turns.
    turn: AtomicUsize,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its address, as configured.
    pub(crate) name: String,
    pub(crate) client: Client,
    calls: CallClient,
    /// The client of its health checks.
    checks: Client,
    pub(crate) backoff: OriginBackoff,
    weight: u32,
    in_progress: AtomicUsize,
    availability: Mutex<Availability>,
}

#[derive(Debug)]
struct Availability {
    is_available: bool,
    /// When it became available again; `None` if it always was.
    since: Option<Instant>,
    /// Checks in a row whose result differs from `is_available`; `None` before the first check.
    contrary: Option<u32>,
}

/// A request in progress at a server, until it is dropped.
pub(crate) struct InProgress(Arc<Server>);

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    pub(crate) fn new(
        name: String,
        client: Client,
        calls: CallClient,
        checks: Client,
        backoff: OriginBackoff,
        weight: u32,
    ) -> Self {
        Self {
            name,
            client,
            calls,
            checks,
            backoff,
            weight,
            in_progress: AtomicUsize::new(0),
            availability: Mutex::new(Availability {
                is_available: true,
                since: None,
                contrary: None,
            }),
        }
    }

    /// The client for a gRPC call, or for any other request, and the backoff of such requests.
    pub(crate) fn client_for(&self, is_call: bool) -> (&Client, &OriginBackoff) {
        match is_call {
            true => (&self.calls.client, &self.calls.backoff),
            false => (&self.client, &self.backoff),
        }
    }

    /// Whether its checks allow requests.
    pub(crate) fn is_available(&self) -> bool {
        self.availability.lock().is_available
    }

    /// Counts a request in progress.
    pub(crate) fn begin(self: &Arc<Self>) -> InProgress {
        self.in_progress.fetch_add(1, Ordering::Relaxed);
        InProgress(self.clone())
    }

    /// Its load at `now`: requests in progress and one more, divided by its share. `None` if it is not available.
    fn load(&self, now: Instant, slow_start: Duration) -> Option<f64> {
        let availability = self.availability.lock();
        if !availability.is_available {
            return None;
        }
        let since = availability.since;
        let ramp = since.map_or(1.0, |since| {
            let elapsed = now.saturating_since(since).as_secs_f64();
            (elapsed / slow_start.as_secs_f64().max(f64::MIN_POSITIVE)).clamp(LEAST_SHARE, 1.0)
        });
        let requests = self.in_progress.load(Ordering::Relaxed) as f64 + 1.0;
        Some(requests / (f64::from(self.weight) * ramp))
    }

    /// Records the result of a check at `now`.
    fn record_check(&self, is_success: bool, now: Instant) {
        let mut availability = self.availability.lock();
        if is_success == availability.is_available {
            availability.contrary = Some(0);
            return;
        }
        let contrary = match availability.contrary {
            // A server that fails its first check never worked.
            None => CHECKS,
            Some(before) => before + 1,
        };
        availability.contrary = Some(contrary);
        if contrary < CHECKS {
            return;
        }
        *availability = Availability {
            is_available: is_success,
            since: is_success.then_some(now),
            contrary: Some(0),
        };
        let server = &self.name;
        match is_success {
            true => tracing::info!(%server, "the server is available again"),
            false => tracing::warn!(%server, "the server failed its checks: it gets no requests"),
        }
    }
}

impl ServerPool {
    /// The pool of `servers`. With `health`, each is checked from now on, as long as the pool exists, by requests for the `target` URI.
    pub(crate) fn new(
        servers: Vec<Arc<Server>>,
        health: Option<(HealthConfig, Uri)>,
        runtime: &SharedRuntime,
    ) -> Self {
        let slow_start_s = health.as_ref().map_or(0, |(health, _)| health.slow_start_s);
        if let Some((health, target)) = health {
            for server in &servers {
                let check = HealthCheck {
                    server: Arc::downgrade(server),
                    target: target.clone(),
                    interval: Duration::from_secs(health.interval_s),
                    timeout: Duration::from_secs(health.timeout_s),
                    runtime: runtime.clone(),
                };
                runtime.spawn(Box::pin(check.run()));
            }
        }
        Self {
            servers,
            slow_start: Duration::from_secs(slow_start_s),
            turn: AtomicUsize::new(0),
        }
    }

    /// All servers, in the order of the configuration.
    pub(crate) fn all(&self) -> &[Arc<Server>] {
        &self.servers
    }

    /// The server for a request to `origin` at `now`, which may be a gRPC call, except `tried`; `None` if none is available.
    pub(crate) fn pick(
        &self,
        origin: &Origin,
        is_call: bool,
        tried: &[Arc<Server>],
        now: Instant,
    ) -> Option<Arc<Server>> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % self.servers.len();
        let in_turn = self.servers[first..].iter().chain(&self.servers[..first]);
        let mut choices: Vec<(f64, &Arc<Server>)> = in_turn
            .filter(|server| !tried.iter().any(|other| Arc::ptr_eq(other, server)))
            .filter_map(|server| Some((server.load(now, self.slow_start)?, server)))
            .collect();
        // The sort keeps the order of equal loads.
        choices.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let mut choices = choices.into_iter();
        let free = choices.find(|(_, server)| !server.client_for(is_call).1.rejects(origin, now));
        free.map(|(_, server)| server.clone())
    }
}

/// The check of one server.
struct HealthCheck {
    server: Weak<Server>,
    target: Uri,
    interval: Duration,
    timeout: Duration,
    runtime: SharedRuntime,
}

impl HealthCheck {
    /// Checks until the server is dropped.
    async fn run(self) {
        while let Some(server) = self.server.upgrade() {
            let is_success = self.check(&server.checks).await;
            server.record_check(is_success, self.runtime.now());
            drop(server);
            let next = self.runtime.now() + self.interval;
            self.runtime.sleep_until(next).await;
        }
    }

    /// Whether the server responds well in time.
    async fn check(&self, client: &Client) -> bool {
        let Ok(request) = Request::get(self.target.clone()).body(Body::empty()) else {
            return false;
        };
        let exchange = client.send(request, Priority::LOWEST);
        let timer = self.runtime.sleep_until(self.runtime.now() + self.timeout);
        match select(exchange, timer).await {
            Either::Left((Ok(response), _)) => {
                let status = response.status();
                status.is_success() || status.is_redirection()
            }
            Either::Left((Err(_), _)) | Either::Right(_) => false,
        }
    }
}

impl std::fmt::Debug for InProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("InProgress").field(&self.0.name).finish()
    }
}
