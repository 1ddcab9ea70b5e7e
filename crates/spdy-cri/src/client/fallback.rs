//! Tries one transport and, if the server refuses it, the next, like `kubectl`.

use std::io;

use http::Request;
use spdy::SharedRuntime;
use spdy::upgrade::UpgradeError;
use tokio::io::{AsyncRead, AsyncWrite};

use super::options::{Options, Transport};
use super::port_forward::{PortForward, port_forward, port_forward_in_websocket};
use super::process::{Process, exec, exec_in_websocket};
use crate::error::ClientError;
use crate::request::StreamOptions;

/// True if the next transport may work: the server answered and declined. A connection that fails, or a server that
/// does not answer, would fail with any transport.
fn is_refused(error: &ClientError) -> bool {
    match error {
        ClientError::Handshake { .. } => true,
        ClientError::Upgrade(upgrade_error) => {
            matches!(
                upgrade_error,
                UpgradeError::Refused { .. } | UpgradeError::UnexpectedSwitch { .. }
            )
        }
        _ => false,
    }
}

/// Tries `attempt` with each of `transports`, each on its own connection.
async fn try_each<D, A, T, R>(
    transports: &[Transport],
    mut dial: D,
    attempt: A,
) -> Result<R, ClientError>
where
    D: AsyncFnMut() -> io::Result<T>,
    A: AsyncFn(Transport, T) -> Result<R, ClientError>,
{
    let mut refusal = ClientError::NoTransport;
    for &transport in transports {
        match attempt(transport, dial().await?).await {
            Err(error) if is_refused(&error) => {
                tracing::debug!(?transport, %error, "trying the next transport");
                refusal = error;
            }
            done => return done,
        }
    }
    Err(refusal)
}

/// Runs a command by the first of [`Options::transports`] that the server accepts: like
/// [`exec_in_websocket`](super::exec_in_websocket) and [`exec`](super::exec). `dial` opens a connection for each
/// attempt.
///
/// # Errors
///
/// The error of the last transport that was tried.
pub async fn exec_with_fallback<D, T>(
    dial: D,
    request: &Request<()>,
    stream_options: StreamOptions,
    options: Options,
    runtime: SharedRuntime,
) -> Result<Process, ClientError>
where
    D: AsyncFnMut() -> io::Result<T>,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let transports = options.transports.clone();
    try_each(&transports, dial, async |transport, io| {
        let (options, runtime) = (options.clone(), runtime.clone());
        match transport {
            Transport::WebSocket => {
                exec_in_websocket(io, request, stream_options, options, runtime).await
            }
            Transport::Spdy => exec(io, request, stream_options, options, runtime).await,
        }
    })
    .await
}

/// Attaches to a running process: like [`exec_with_fallback`], at another URL.
///
/// # Errors
///
/// The error of the last transport that was tried.
pub async fn attach_with_fallback<D, T>(
    dial: D,
    request: &Request<()>,
    stream_options: StreamOptions,
    options: Options,
    runtime: SharedRuntime,
) -> Result<Process, ClientError>
where
    D: AsyncFnMut() -> io::Result<T>,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    exec_with_fallback(dial, request, stream_options, options, runtime).await
}

/// Connects to the ports of a pod by the first of [`Options::transports`] that the server accepts: like
/// [`port_forward_in_websocket`](super::port_forward_in_websocket) and [`port_forward`](super::port_forward()).
///
/// # Errors
///
/// The error of the last transport that was tried: why the server did not switch.
pub async fn port_forward_with_fallback<D, T>(
    dial: D,
    request: &Request<()>,
    options: Options,
    runtime: SharedRuntime,
) -> Result<PortForward, ClientError>
where
    D: AsyncFnMut() -> io::Result<T>,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let transports = options.transports.clone();
    try_each(&transports, dial, async |transport, io| {
        let (options, runtime) = (options.clone(), runtime.clone());
        match transport {
            Transport::WebSocket => port_forward_in_websocket(io, request, options, runtime).await,
            Transport::Spdy => port_forward(io, request, options, runtime).await,
        }
    })
    .await
}
