//! `spdy lab view`: the report of a store in a browser, while it grows.
//!
//! ```text
//! browser ──► GET /        the shell: a line of progress, and a script that requests the rest
//!         ──► GET /state   how far the store is           ┐
//!         ──► GET /report  its report, if that is another ┴─► store_watcher.rs: a thread of its own
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use serde::Serialize;
use spdy::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_lab::experiment::plan::Plan;
use spdy_lab::store::location::Location;
use spdy_lab::store::open::Store;
use spdy_net::admission::{Admission, AdmissionLimits};
use spdy_net::latch::Latch;
use spdy_net::limit::LimitHits;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_service::signals::StopSignals;

use super::store_watcher::{QueryKind, StoreWatcher};
use super::waterfall_args::WaterfallArgs;
use crate::commands::lab::experiment::Experiment;
use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::{BOLD, DIM, Printer};

/// Arguments of `spdy lab view`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The store (a file, or a postgres:// URL), or the experiment that fills it; the store may not exist yet
    #[arg(value_name = "STORE|EXPERIMENT")]
    what: String,

    /// The store of the experiment: a file, or a postgres:// URL [default: its name with .db]
    #[arg(short, long, value_name = "STORE")]
    store: Option<Location>,

    /// Port on 127.0.0.1; 0 lets the system choose
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// Print the listening address as one line of JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    waterfalls: WaterfallArgs,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab view loss.toml                       while spdy lab run loss.toml runs"
    "spdy lab view lulic.db --port 8000"
    "spdy lab view lulic.db --json --quiet         its address, for a script"
};

/// The server is ready.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Ready {
    /// The store: a file, or a postgres:// URL without its password.
    store: String,
    /// The URL of the report.
    url: String,
}

/// Connections at once: browsers open six.
const CONNECTIONS: usize = 64;

/// Content-Security-Policy: only content of this server is shown or run, and no other page may frame it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SHELL: &str = include_str!("view.html");
const SCRIPT: &str = include_str!("view.js");

/// The first bytes of every SQLite file.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let store = locate_store(args)?;
    let watch = StoreWatcher::start(store.clone(), args.waterfalls.clone(), printer)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(args, &store, watch, printer))?;
    Ok(Outcome::Done)
}

/// Where the store is, or will be. If its plan exists already, checks that it has the requested cell.
fn locate_store(args: &Args) -> anyhow::Result<Location> {
    let named = Location::new(args.what.as_ref());
    if named.file().is_none_or(is_store) {
        if let Some(other) = &args.store {
            let message = format!("{named} is a store: remove --store {other}");
            return Err(Usage(message).into());
        }
        if args.waterfalls.cell.is_some()
            && let Some(plan) = plan_in(&named)
        {
            args.waterfalls.check(&plan)?;
        }
        return Ok(named);
    }
    let plan = Experiment::open(&args.what)?.plan;
    args.waterfalls.check(&plan)?;
    let by_name = || Location::File(format!("{}.db", plan.name()).into());
    Ok(args.store.clone().unwrap_or_else(by_name))
}

/// The plan in a store, if the store exists and has one. The reason why not is shown in the browser.
fn plan_in(store: &Location) -> Option<Plan> {
    let contents = Store::open(store).ok()?.contents().ok()?;
    Plan::parse(&contents.plan).ok()
}

/// Whether a store is there, or one will be by its ending: a run makes an empty file before it writes to it.
fn is_store(path: &Path) -> bool {
    let mut head = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(SQLITE.len() as u64).read_to_end(&mut head));
    match read {
        Err(error) if error.kind() != io::ErrorKind::NotFound => false,
        Err(_) | Ok(0) => path.extension().is_some_and(|ending| ending == "db"),
        Ok(_) => head == SQLITE,
    }
}

async fn serve(
    args: &Args,
    store: &Location,
    watch: StoreWatcher,
    printer: &Printer,
) -> anyhow::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let listener =
        Listener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.address();
    // Before the announcement: a program that reads it may send the stop signal at once.
    let mut signals = StopSignals::listen()?;
    printer.note(format_args!(
        "{store} at {BOLD}http://{address}/{BOLD:#} {DIM}until Ctrl-C{DIM:#}"
    ));
    if args.json {
        printer.json(&Ready {
            store: store.to_string(),
            url: format!("http://{address}/"),
        })?;
    }
    let (watch, stop) = (Arc::new(watch), Latch::new());
    let handler = Arc::new(move |request| answer(watch.clone(), address, request));
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let mut limits = AdmissionLimits::default();
    limits.connections = CONNECTIONS;
    let mut options = ListenOptions::default();
    options.admission = Admission::new(limits, LimitHits::default());
    let ended = stop.clone();
    let serving = tokio::spawn(listener.run(options, stop.clone(), move |io, _, seat| {
        let (handler, runtime, ended) = (handler.clone(), runtime.clone(), ended.clone());
        async move {
            let mut options = ServerOptions::default();
            options.slot = seat;
            let protocols = [Protocol::Http1];
            let serving =
                serve_connection(io, handler, &protocols, None, &options, &runtime, &ended);
            if let Err(error) = serving.await {
                tracing::debug!(%error, "serving the report failed");
            }
        }
    }));
    signals.any().await?;
    stop.set();
    serving.await?;
    Ok(())
}

/// Answers one request. Rejects requests for other hosts, and requests from pages of other sites.
async fn answer(
    watch: Arc<StoreWatcher>,
    address: SocketAddr,
    request: Request<Body>,
) -> Response<Body> {
    if !is_own_host(request.headers(), address) {
        let message = format!("expected http://{address}/\n");
        return response(StatusCode::MISDIRECTED_REQUEST, "text/plain", message);
    }
    let path = request.uri().path();
    if path != "/" && comes_from_another_site(request.headers()) {
        let message = format!("expected a request from http://{address}/\n");
        return response(StatusCode::FORBIDDEN, "text/plain", message);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = response(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "");
        let allow = HeaderValue::from_static("GET, HEAD");
        refused.headers_mut().insert(header::ALLOW, allow); // required (RFC 9110 §15.5.6)
        return refused;
    }
    let (kind, query) = match path {
        "/" => return response(StatusCode::OK, "text/html", SHELL),
        "/view.js" => return response(StatusCode::OK, "text/javascript", SCRIPT),
        "/state" => ("application/json", QueryKind::State),
        "/report" => ("text/html", QueryKind::Report),
        _ => return response(StatusCode::NOT_FOUND, "text/plain", "expected /\n"),
    };
    match watch.query(query).await {
        Ok(text) => response(StatusCode::OK, kind, text),
        Err(error) => {
            let message = format!("{error:#}\n");
            response(StatusCode::SERVICE_UNAVAILABLE, "text/plain", message)
        }
    }
}

/// Whether the browser meant this server. A site that resolves to our address (DNS rebinding) sends its own name as the host.
fn is_own_host(headers: &HeaderMap, address: SocketAddr) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let port = address.port();
    host.is_some_and(|host| {
        [address.ip().to_string(), "localhost".to_owned()]
            .into_iter()
            // Browsers leave out the port that http has anyway.
            .any(|name| host == format!("{name}:{port}") || (port == 80 && host == name))
    })
}

/// Whether a page of another site caused the request (Fetch Metadata §2.2). It could not read the response, but each one costs work.
/// Clients other than browsers do not send the header.
fn comes_from_another_site(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_some_and(|site| site != "same-origin" && site != "none")
}

fn response(status: StatusCode, kind: &'static str, text: impl Into<String>) -> Response<Body> {
    let mut response = Response::new(Body::full(text.into().into_bytes()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_str(&format!("{kind}; charset=utf-8"));
    let headers = [
        (
            header::CONTENT_TYPE,
            kind.expect("the content type is a valid header value"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(POLICY),
        ),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            HeaderValue::from_static("same-origin"),
        ),
    ];
    response.headers_mut().extend(headers);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: header::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn only_requests_for_the_own_host_are_served() {
        let is_ours = |host, port| {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            is_own_host(&with(header::HOST, host), address)
        };
        assert!(is_ours("127.0.0.1:8000", 8000) && is_ours("localhost:8000", 8000));
        for other in [
            "evil.example:8000",
            "127.0.0.1",
            "localhost",
            "127.0.0.1:8001",
            "localhost.evil:8000",
            "",
        ] {
            assert!(!is_ours(other, 8000), "{other}");
        }
        for bare in ["127.0.0.1", "localhost", "127.0.0.1:80", "localhost:80"] {
            assert!(is_ours(bare, 80), "{bare}");
        }
        assert!(!is_ours("evil.example", 80) && !is_ours("localhost:8000", 80));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 80));
        assert!(!is_own_host(&HeaderMap::new(), address));
    }

    #[test]
    fn cross_site_requests_are_distinguished() {
        let name = header::HeaderName::from_static("sec-fetch-site");
        for other in ["cross-site", "same-site", "something-new"] {
            assert!(
                comes_from_another_site(&with(name.clone(), other)),
                "{other}"
            );
        }
        for own in ["same-origin", "none"] {
            assert!(!comes_from_another_site(&with(name.clone(), own)), "{own}");
        }
        assert!(!comes_from_another_site(&HeaderMap::new()), "no browser");
    }
}
