//! The operator's listener: metrics for every client that reaches it; the dashboard's numbers, reports of pages and purges for those with
//! the token. A request must name an address, `localhost` or a configured host (`spdy-net/listen/allowed_hosts.rs`).
//!
//! ```text
//! GET  /                                          the page of the dashboard, without data (dashboard_page.rs)
//! GET  /metrics                                   OpenMetrics
//! GET  /dashboard.json  Authorization: Bearer …   the numbers of the dashboard (dashboard.rs)
//! GET  /pages   Authorization: Bearer <token>     the results for the latest pages; with ?url=https://… the report of one
//! POST /purge   Authorization: Bearer <token>     {"url": "https://www.site.test/a.css"}             202, and the ID of the job
//!                                                 {"tag": "article-7", "site": "www.site.test", "soft": true}
//!                                                 {"prefix": "https://www.site.test/static/"}
//!                                                 {"site": "www.site.test", "wait": true}             200, when it is complete
//! GET  /purge/7                                   how far it is
//! ```
//!
//! A soft purge makes the matching responses stale: they may still be served where that is allowed, and a 304 of the origin makes them fresh. A
//! URL may be one of another host: then the purge matches its proxied responses, for each site that has them.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, header};
use parking_lot::RwLock;
use serde::Serialize;
use spdy::body::Body;
use spdy::runtime::BoxFuture;
use spdy_net::handler::Handler;
use spdy_net::listen::allowed_hosts::AllowedHosts;
use tokio::sync::oneshot;
use url::{Position, Url};

use crate::admin::dashboard::{CertificateReader, Dashboard};
use crate::admin::dashboard_page;
use crate::admin::purge_jobs::{PurgeJob, PurgeJobs, PurgeResult, PurgeState};
use crate::cache::purge::{PurgeCount, PurgeRequest};
use crate::proxy::Proxy;
use crate::telemetry::page_report::{PageSummary, Report};
use crate::token::Token;

/// The largest body of a purge, bytes.
const MAX_BODY: usize = 16 * 1024;

/// Writes the metrics as text, for a request.
pub type MetricsHandler = Arc<dyn Fn(&Request<Body>) -> Response<Body> + Send + Sync>;

/// Handles the operator's requests.
#[derive(Clone)]
pub struct Admin {
    proxy: Arc<Proxy>,
    token: Arc<RwLock<Token>>,
    hosts: Arc<RwLock<AllowedHosts>>,
    metrics: MetricsHandler,
    certificates: Option<CertificateReader>,
    jobs: Arc<PurgeJobs>,
}

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Admin")
    }
}

/// The list of reports.
#[derive(Debug, Serialize)]
struct PageList {
    pages: Vec<PageSummary>,
}

impl Admin {
    /// A handler for `proxy`; purges and reports require `token`.
    #[must_use]
    pub fn new(proxy: Arc<Proxy>, token: Token, metrics: MetricsHandler) -> Self {
        Self {
            proxy,
            token: Arc::new(RwLock::new(token)),
            hosts: Arc::default(),
            metrics,
            certificates: None,
            jobs: Arc::default(),
        }
    }

    /// The dashboard also shows these certificates.
    #[must_use]
    pub fn with_certificates(mut self, certificates: CertificateReader) -> Self {
        self.certificates = Some(certificates);
        self
    }

    /// Purges and reports require `token` from now on.
    pub fn set_token(&self, token: Token) {
        *self.token.write() = token;
    }

    /// Answers requests for these hosts from now on, besides addresses and `localhost`.
    pub fn set_hosts(&self, hosts: AllowedHosts) {
        *self.hosts.write() = hosts;
    }

    /// The response to a request for a host that is not allowed.
    fn reject_unknown_host(&self, request: &Request<Body>) -> Option<Response<Body>> {
        let hosts = self.hosts.read();
        hosts.refusal(
            request,
            "use an IP address or localhost, or add it to `names` of `[admin]`",
        )
    }

    async fn purge(&self, request: Request<Body>) -> Response<Body> {
        if let Some(refused) = self.reject_unauthorized(&request, &Method::POST) {
            return refused;
        }
        let body = match request.into_body().collect_up_to(MAX_BODY).await {
            Ok(body) => body,
            Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
        };
        let purge_request: PurgeRequest = match serde_json::from_slice(&body) {
            Ok(purge_request) => purge_request,
            Err(error) => {
                return text(StatusCode::BAD_REQUEST, format!("invalid purge: {error}\n"));
            }
        };
        let Some(id) = self.jobs.begin() else {
            let message = "too many purges are in progress; try again soon\n".to_owned();
            let mut response = text(StatusCode::SERVICE_UNAVAILABLE, message);
            let soon = http::HeaderValue::from_static("1");
            response.headers_mut().insert(header::RETRY_AFTER, soon);
            return response;
        };
        let PurgeCount(purged) = match self.proxy.purge(&purge_request) {
            Ok(purged) => purged,
            Err(message) => {
                self.jobs.forget(id);
                return text(StatusCode::BAD_REQUEST, format!("{message}\n"));
            }
        };
        let (admin, soft) = (self.clone(), purge_request.soft);
        // In its own task: the client may disconnect before it is over.
        let (over, ended) = oneshot::channel();
        let settling = async move {
            let (removed_from_disk, published) = admin.flush_purges().await;
            let done = PurgeResult {
                purged,
                soft,
                removed_from_disk,
                published,
            };
            admin.jobs.end(id, done);
            // The client may have disconnected.
            let _ = over.send(done);
        };
        self.proxy.clock.runtime.spawn(Box::pin(settling));
        if purge_request.wait
            && let Ok(done) = ended.await
        {
            return json(&done);
        }
        let state = PurgeState::Running;
        let mut response = json(&PurgeJob { id, state });
        *response.status_mut() = StatusCode::ACCEPTED;
        let place = http::HeaderValue::try_from(format!("/purge/{id}"))
            .expect("a path of ASCII digits is a valid field value");
        response.headers_mut().insert(header::LOCATION, place);
        response
    }

    /// Waits until a crash cannot undo the purges. Returns whether that is so for the disk, and whether the machines that share a tier can
    /// see them.
    async fn flush_purges(&self) -> (Option<bool>, Option<bool>) {
        let removed_from_disk = match self.proxy.cache.disk() {
            Some(disk) => Some(disk.flush_removals().await),
            None => None,
        };
        let published = match self.proxy.cache.shared() {
            Some(shared) => Some(shared.flush_purges().await),
            None => None,
        };
        (removed_from_disk, published)
    }

    /// The progress of a purge.
    fn purge_job(&self, request: &Request<Body>, id: &str) -> Response<Body> {
        if let Some(refused) = self.reject_unauthorized(request, &Method::GET) {
            return refused;
        }
        match self.jobs.of(id) {
            Some(job) => json(&job),
            None => {
                let message = "unknown purge: no such ID, or too many purges since\n";
                text(StatusCode::NOT_FOUND, message.to_owned())
            }
        }
    }

    /// The numbers of the dashboard.
    fn dashboard(&self, request: &Request<Body>) -> Response<Body> {
        if let Some(refused) = self.reject_unauthorized(request, &Method::GET) {
            return refused;
        }
        json(&Dashboard::read(&self.proxy, self.certificates.as_ref()))
    }

    /// Reports of pages: a line each, or the whole report of one.
    fn page_reports(&self, request: &Request<Body>) -> Response<Body> {
        if let Some(refused) = self.reject_unauthorized(request, &Method::GET) {
            return refused;
        }
        let query = request.uri().query().unwrap_or_default();
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        match (pairs.next(), pairs.next()) {
            (None, _) => json(&PageList {
                pages: self.proxy.pages.reports.list(),
            }),
            (Some((key, url)), None) if key == "url" => match self.find_report(&url) {
                Some(report) => json(&report),
                None => {
                    let message = "no report of this page, or too many pages since\n";
                    text(StatusCode::NOT_FOUND, message.to_owned())
                }
            },
            _ => text(
                StatusCode::BAD_REQUEST,
                "invalid query: expected none, or ?url=\n".to_owned(),
            ),
        }
    }

    /// The report of a page by its URL under any of its site's names and on any listener.
    fn find_report(&self, url: &str) -> Option<Report> {
        let reports = &self.proxy.pages.reports;
        reports.of(url).or_else(|| {
            let url = Url::parse(url).ok()?;
            let sites = self.proxy.origins.sites();
            let site = sites.find(&url[Position::BeforeHost..Position::AfterPort])?;
            let rest = &url[Position::BeforePath..Position::AfterQuery];
            reports.of(&[site.rules.site_origin(), rest].concat())
        })
    }

    /// The response to a request with another method than `method`, or without the token.
    fn reject_unauthorized(
        &self,
        request: &Request<Body>,
        method: &Method,
    ) -> Option<Response<Body>> {
        if request.method() != method {
            return Some(reject_method(method.as_str()));
        }
        let credentials = request.headers().get(header::AUTHORIZATION);
        let credentials = credentials.and_then(|credentials| {
            let (scheme, token) = credentials.as_bytes().split_at_checked(b"Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
        });
        let token = self.token.read();
        if token.is(credentials.unwrap_or_default()) {
            return None;
        }
        let message = "expected Authorization: Bearer with the operator's token\n".to_owned();
        let mut response = text(StatusCode::UNAUTHORIZED, message);
        let challenge = http::HeaderValue::from_static("Bearer");
        let headers = response.headers_mut();
        headers.insert(header::WWW_AUTHENTICATE, challenge);
        Some(response)
    }
}

impl Handler for Admin {
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>> {
        let admin = self.clone();
        Box::pin(async move {
            if let Some(refusal) = admin.reject_unknown_host(&request) {
                return refusal;
            }
            let path = request.uri().path().to_owned();
            match (path.as_str(), path.strip_prefix("/purge/")) {
                (_, Some(id)) => admin.purge_job(&request, id),
                ("/purge", None) => admin.purge(request).await,
                ("/pages", None) => admin.page_reports(&request),
                ("/metrics", None) => (admin.metrics)(&request),
                ("/dashboard.json", None) => admin.dashboard(&request),
                (path, None) => match dashboard_page::file(path) {
                    Some(file) => only_read(request.method(), file),
                    None => unknown_path(),
                },
            }
        })
    }
}

/// `file`, unless `method` is more than a read.
fn only_read(method: &Method, file: Response<Body>) -> Response<Body> {
    match *method {
        Method::GET | Method::HEAD => file,
        _ => reject_method("GET, HEAD"),
    }
}

fn reject_method(allowed: &str) -> Response<Body> {
    let message = format!("expected method {allowed}\n");
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, message);
    let allowed = http::HeaderValue::from_str(allowed).expect("methods are a valid field value");
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}

fn unknown_path() -> Response<Body> {
    text(
        StatusCode::NOT_FOUND,
        "unknown path: expected /, /dashboard.json, /metrics, /pages or /purge\n".to_owned(),
    )
}

fn json(value: &impl Serialize) -> Response<Body> {
    let text = serde_json::to_vec(value).expect("names and numbers are JSON");
    let mut response = Response::new(Body::from(text));
    let json = http::HeaderValue::from_static("application/json");
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, json);
    // The numbers change, and no copy may outlive the token.
    let no_store = http::HeaderValue::from_static("no-store");
    headers.insert(header::CACHE_CONTROL, no_store);
    response
}

fn text(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text.into_bytes()));
    *response.status_mut() = status;
    response
}
