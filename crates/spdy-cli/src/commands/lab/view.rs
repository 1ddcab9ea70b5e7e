//! `spdy lab view`: the report of a store in a browser, while it grows.
//!
//! ```text
//! browser ──► GET /        the shell: a line of progress, and a script that asks for the rest
//!         ──► GET /state   how far the store is           ┐
//!         ──► GET /report  its report, if that is another ┴─► watch.rs: a thread of its own
//! ```

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use spdy::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_lab::store::location::Location;
use spdy_net::admission::{Admission, AdmissionLimits};
use spdy_net::latch::Latch;
use spdy_net::limit::LimitHits;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};

use super::experiment::Experiment;
use super::report::WaterfallArgs;
use super::watch::{Asked, Watch};
use crate::commands::Outcome;
use crate::commands::signals::Signals;
use crate::help::examples;
use crate::printer::{BOLD, DIM, Printer};

/// What `spdy lab view` is asked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The store (a file, or a postgres:// URL), or the experiment that is run into it; the store need not be there yet
    #[arg(value_name = "STORE|EXPERIMENT")]
    what: String,

    /// The store of the experiment: a file, or a postgres:// URL [default: its name with .db]
    #[arg(short, long, value_name = "STORE")]
    store: Option<Location>,

    /// Listen on this port of 127.0.0.1; 0 lets the system choose
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    #[command(flatten)]
    waterfalls: WaterfallArgs,
}

pub(super) const EXAMPLES: &str = examples! {
    "spdy lab view loss.toml                       while spdy lab run loss.toml runs"
    "spdy lab view lulic.db --port 8000"
};

/// Connections at once: browsers open six.
const CONNECTIONS: usize = 64;

/// Nothing but what comes from here is shown or run, and nobody else may put it into a frame.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SHELL: &str = include_str!("view.html");
const SCRIPT: &str = include_str!("view.js");

/// The first bytes of every SQLite file.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

pub(super) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let store = store_of(args)?;
    let watch = Watch::start(store.clone(), args.waterfalls.clone(), printer)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(args, &store, watch, printer))?;
    Ok(Outcome::Done)
}

/// Where the store is, or will be.
fn store_of(args: &Args) -> anyhow::Result<Location> {
    let named = Location::new(args.what.as_ref());
    if named.file().is_none_or(is_store) {
        return Ok(named);
    }
    if let Some(store) = &args.store {
        return Ok(store.clone());
    }
    let experiment = Experiment::open(&args.what)?;
    let file = format!("{}.db", experiment.plan.name());
    Ok(Location::File(file.into()))
}

/// Whether a store is there, or one will be by its ending.
fn is_store(path: &Path) -> bool {
    if !path.exists() {
        return path.extension().is_some_and(|ending| ending == "db");
    }
    let mut head = [0; SQLITE.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == *SQLITE
}

async fn serve(
    args: &Args,
    store: &Location,
    watch: Watch,
    printer: &Printer,
) -> anyhow::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let listener =
        Listener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.address();
    // Whoever reads that we listen may ask us to stop the next moment.
    let mut signals = Signals::listen()?;
    printer.note(format_args!(
        "{store} at {BOLD}http://{address}/{BOLD:#} {DIM}until Ctrl-C{DIM:#}"
    ));
    let (watch, stop) = (Arc::new(watch), Latch::new());
    let handler = Arc::new(move |request| answer(watch.clone(), address, request));
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let limits = AdmissionLimits {
        connections: CONNECTIONS,
        ..AdmissionLimits::default()
    };
    let options = ListenOptions {
        admission: Admission::new(limits, LimitHits::default()),
        ..ListenOptions::default()
    };
    let ended = stop.clone();
    let serving = tokio::spawn(listener.run(options, stop.clone(), move |io, _, seat| {
        let (handler, runtime, ended) = (handler.clone(), runtime.clone(), ended.clone());
        async move {
            let options = ServerOptions {
                seat,
                ..ServerOptions::default()
            };
            let protocols = [Protocol::Http1];
            let serving =
                serve_connection(io, handler, &protocols, None, &options, &runtime, &ended);
            if let Err(error) = serving.await {
                tracing::debug!(%error, "a look at the report ended out of order");
            }
        }
    }));
    signals.any().await?;
    stop.set();
    serving.await?;
    Ok(())
}

/// Answers one request, if it is meant for us.
async fn answer(watch: Arc<Watch>, address: SocketAddr, request: Request<Body>) -> Response<Body> {
    if !is_for_us(request.headers(), address) {
        let why = format!("want http://{address}/\n");
        return response(StatusCode::MISDIRECTED_REQUEST, "text/plain", why);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = response(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "");
        let allow = HeaderValue::from_static("GET, HEAD");
        refused.headers_mut().insert(header::ALLOW, allow); // it must be said (RFC 9110 §15.5.6)
        return refused;
    }
    let (kind, asked) = match request.uri().path() {
        "/" => return response(StatusCode::OK, "text/html", SHELL),
        "/view.js" => return response(StatusCode::OK, "text/javascript", SCRIPT),
        "/state" => ("application/json", Asked::State),
        "/report" => ("text/html", Asked::Report),
        _ => return response(StatusCode::NOT_FOUND, "text/plain", "want /\n"),
    };
    match watch.ask(asked).await {
        Ok(text) => response(StatusCode::OK, kind, text),
        Err(why) => {
            let why = format!("{why:#}\n");
            response(StatusCode::SERVICE_UNAVAILABLE, "text/plain", why)
        }
    }
}

/// Whether the browser meant this server: a site whose name was turned to our address (DNS rebinding) says its own name.
fn is_for_us(headers: &HeaderMap, address: SocketAddr) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    host.is_some_and(|host| {
        host == address.to_string() || host == format!("localhost:{}", address.port())
    })
}

fn response(status: StatusCode, kind: &'static str, text: impl Into<String>) -> Response<Body> {
    let mut response = Response::new(Body::full(text.into().into_bytes()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_str(&format!("{kind}; charset=utf-8"));
    let headers = [
        (header::CONTENT_TYPE, kind.expect("a kind of ours")),
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

    #[test]
    fn only_our_own_name_is_answered() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 8000));
        let is_ours = |host: &'static str| {
            let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]);
            is_for_us(&headers, address)
        };
        assert!(is_ours("127.0.0.1:8000") && is_ours("localhost:8000"));
        for other in [
            "evil.example:8000",
            "127.0.0.1",
            "127.0.0.1:8001",
            "localhost.evil:8000",
            "",
        ] {
            assert!(!is_ours(other), "{other}");
        }
        assert!(!is_for_us(&HeaderMap::new(), address));
    }
}
