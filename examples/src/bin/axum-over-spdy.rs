//! An axum application over SPDY/3.1: a JSON route, streaming responses and graceful shutdown.
//!
//! ```sh
//! cargo run --manifest-path examples/Cargo.toml --bin axum-over-spdy -- 127.0.0.1:6121                    # without TLS
//! cargo run --manifest-path examples/Cargo.toml --bin axum-over-spdy -- 127.0.0.1:8443 cert.pem key.pem   # TLS, ALPN `spdy/3.1`
//! ```
//!
//! Ctrl-C or SIGTERM stops it: every session gets GOAWAY and ends with its last stream, after 30 s at the latest.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use axum::body::Body;
use axum::extract::Path;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use spdy::BoxError;
use spdy_client::tls::certificates::Identity;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::{TlsAcceptor, rustls};

/// Most connections at once; more wait to be accepted.
const MAX_CONNECTIONS: usize = 1000;
const ACCEPT_DELAY: Duration = Duration::from_millis(100);
const TLS_TIMEOUT: Duration = Duration::from_secs(10);
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

fn app() -> Router {
    Router::new()
        .route("/hello/{name}", get(hello))
        .route("/count/{to}", get(count))
        .route("/echo", post(async |body: Body| body)) // streams: each piece is sent back when it arrives
}

async fn hello(Path(name): Path<String>) -> Json<Value> {
    Json(json!({ "hello": name }))
}

/// One line for each number. The next line is made when the session has room for it.
async fn count(Path(to): Path<u32>) -> Body {
    let lines = (1..=to).map(|number| io::Result::Ok(format!("{number}\n")));
    Body::from_stream(futures_util::stream::iter(lines))
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (address, tls) = match arguments.as_slice() {
        [address] => (address, None),
        [address, certificates, key] => (address, Some(acceptor(certificates, key)?)),
        _ => return Err("usage: axum-over-spdy ADDRESS [CERTIFICATES.pem KEY.pem]".into()),
    };
    let mut stop_signal = pin!(stop_signal()?);
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);

    let (stop, stopping) = watch::channel(false);
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if sessions.len() < MAX_CONNECTIONS => {
                match accepted {
                    Ok((socket, _)) => drop(sessions.spawn(serve(socket, tls.clone(), stopping.clone()))),
                    // No free file descriptors, for example: sessions that end free some.
                    Err(_) => sleep(ACCEPT_DELAY).await,
                }
            }
            Some(ended) = sessions.join_next() => report(ended),
            () = &mut stop_signal => break,
        }
    }
    drop(listener);
    println!("stopping, open sessions: {}", sessions.len());
    stop.send_replace(true);
    timeout(DRAIN_TIMEOUT, async {
        while let Some(ended) = sessions.join_next().await {
            report(ended);
        }
    })
    .await
    .map_err(|_| format!("some sessions did not end within {DRAIN_TIMEOUT:?}").into())
}

/// Serves one connection to its end.
async fn serve(
    socket: TcpStream,
    tls: Option<TlsAcceptor>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), BoxError> {
    socket.set_nodelay(true)?;
    let stop = async move {
        // An error means that the sender is gone, which also ends the program.
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    match tls {
        None => spdy::tower::serve_until(socket, app(), stop).await?,
        Some(tls) => {
            let stream = timeout(TLS_TIMEOUT, tls.accept(socket)).await??;
            if stream.get_ref().1.alpn_protocol() != Some(b"spdy/3.1") {
                return Err("the client did not negotiate spdy/3.1 by ALPN".into());
            }
            spdy::tower::serve_until(stream, app(), stop).await?;
        }
    }
    Ok(())
}

fn report(ended: Result<Result<(), BoxError>, JoinError>) {
    match ended.unwrap_or_else(|panic| Err(panic.into())) {
        Ok(()) => println!("a session ended"),
        Err(error) => println!("a session failed: {error}"),
    }
}

fn acceptor(certificates: &str, key: &str) -> Result<TlsAcceptor, BoxError> {
    let identity = Identity::from_files(certificates.as_ref(), key.as_ref())?;
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(identity.chain, identity.key)?;
    config.alpn_protocols = vec![b"spdy/3.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Completes at SIGINT (Ctrl-C) or SIGTERM.
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
