//! Switches an HTTP/1.1 connection to another protocol after a 101 (RFC 9110 §7.8).
//!
//! ```text
//!  server   request with Upgrade --> handler ----------> 101 with an UpgradeHandler --> hyper writes it --> UpgradeHandler: all later bytes
//!  client   request with Upgrade --> request_upgrade --> 101: bytes after it, or another response and its body
//! ```
//!
//! The caller decides which protocols may be switched to, and checks that a 101 matches its request.

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, MutexGuard};
use spdy::body::{Body, BoxError};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_net_core::connection_slot::SlotExchange;
use spdy_net_core::error::{ExchangeError, Retry, error_chain};
use spdy_net_core::latch::Latch;
use spdy_net_core::network::BoxIo;
use spdy_net_core::options::ClientOptions;
use spdy_net_core::timing::write_timeout_io::with_write_timeout;
use tokio::io::AsyncWriteExt;

use crate::http1::send::{MIN_BUFFER_BYTES, check_head_size, exchange_error, in_origin_form};

type UpgradeFn = Box<dyn FnOnce(BoxIo, Latch) -> BoxFuture<()> + Send>;

/// Takes over a served connection once its 101 was written; set in the extensions of that response, over HTTP/1.1 only.
#[derive(Clone)]
pub struct UpgradeHandler(Arc<Mutex<Option<UpgradeFn>>>);

impl std::fmt::Debug for UpgradeHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UpgradeHandler")
    }
}

impl UpgradeHandler {
    /// `begin` gets the connection, including bytes that the client sent after its request, and a latch that is set when the server
    /// stops. Its future must then end, and the connection is closed. If the client leaves before the switch, it is dropped.
    pub fn new<F>(begin: impl FnOnce(BoxIo, Latch) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let begin: UpgradeFn = Box::new(|io, stop| Box::pin(begin(io, stop)));
        Self(Arc::new(Mutex::new(Some(begin))))
    }

    fn take(&self) -> Option<UpgradeFn> {
        self.0.lock().take()
    }
}

/// What to do with a served connection after its last response. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct PendingUpgrade(Arc<Mutex<Option<AfterHttp>>>);

enum AfterHttp {
    /// Run another protocol.
    Switch(AcceptedUpgrade),
    /// Close it, because the offer was declined: until then hyper keeps the connection open, and leaves closing it to the code that
    /// upgrades it.
    End(OnUpgrade),
}

struct AcceptedUpgrade {
    upgrade: OnUpgrade,
    begin: UpgradeFn,
    /// Keeps the slot busy while the other protocol runs.
    exchange: SlotExchange,
}

/// A request's offer to switch to another protocol.
pub(crate) struct UpgradeOffer {
    upgrade: OnUpgrade,
    pending: PendingUpgrade,
}

impl UpgradeOffer {
    /// Records that `response` switches the protocol; returns `exchange` if it does not.
    pub(crate) fn accept(
        self,
        exchange: SlotExchange,
        response: &mut Response<Body>,
    ) -> Option<SlotExchange> {
        let takeover = response.extensions_mut().remove::<UpgradeHandler>();
        let begin = takeover.and_then(|takeover| takeover.take());
        let is_101 = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let Some(begin) = begin.filter(|_| is_101) else {
            *self.pending.lock() = Some(AfterHttp::End(self.upgrade));
            return Some(exchange);
        };
        *self.pending.lock() = Some(AfterHttp::Switch(AcceptedUpgrade {
            upgrade: self.upgrade,
            begin,
            exchange,
        }));
        None
    }
}

impl PendingUpgrade {
    /// The offer of `request`, if hyper detects one: an `Upgrade`, except over HTTP/1.0 (RFC 9110 §7.8), or CONNECT.
    pub(crate) fn offer<B>(&self, request: &mut Request<B>) -> Option<UpgradeOffer> {
        let upgrade = request.extensions_mut().remove();
        upgrade.map(|upgrade| UpgradeOffer {
            upgrade,
            pending: self.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<AfterHttp>> {
        self.0.lock()
    }

    /// Runs the other protocol to its end, if one was negotiated. The connection ends with it, or now if there is none.
    pub(crate) async fn run(self, stop: &Latch) {
        let next = self.lock().take();
        let switching = match next {
            None => return,
            Some(AfterHttp::End(upgrade)) => return end(upgrade).await,
            Some(AfterHttp::Switch(switching)) => switching,
        };
        match switching.upgrade.await {
            Ok(upgraded) => {
                let io: BoxIo = Box::new(TokioIo::new(upgraded));
                (switching.begin)(io, stop.clone()).await;
            }
            Err(error) => {
                tracing::debug!(
                    error = error_chain(&error),
                    "the switch to another protocol failed"
                );
            }
        }
        drop(switching.exchange);
    }
}

/// Closes a connection in order, if hyper has not done so.
async fn end(upgrade: OnUpgrade) {
    if let Ok(mut io) = upgrade.await.map(TokioIo::new)
        && let Err(error) = io.shutdown().await
    {
        tracing::debug!(%error, "http/1.1 connection ended");
    }
}

/// The response of a server to a request with `Upgrade`.
#[derive(Debug)]
pub enum UpgradeResponse {
    /// 101, and the bytes after it.
    Upgraded(Response<()>, BoxIo),
    /// Any other response; the connection ends with it.
    Declined(Response<Body>),
}

/// Sends `request`, which has an `Upgrade` header and an absolute URI, as the only request on `io`. Nothing else is sent until the
/// response has arrived.
///
/// # Errors
///
/// The connection failed, the server accepted no bytes of the request for [`write_timeout`](ClientOptions::write_timeout), or its
/// response is invalid. Writes after a 101 fail in the same way.
pub async fn request_upgrade(
    io: BoxIo,
    request: Request<Body>,
    options: &ClientOptions,
    runtime: &SharedRuntime,
) -> Result<UpgradeResponse, ExchangeError> {
    let request = in_origin_form(request)?;
    let broken = |error: hyper::Error| ExchangeError::new(Retry::Never, error_chain(&error));
    let mut builder = hyper::client::conn::http1::Builder::new();
    let max_head_bytes = options.max_head_bytes;
    builder.max_buf_size(max_head_bytes.max(MIN_BUFFER_BYTES));
    let io = TokioIo::new(with_write_timeout(io, options, runtime));
    let (mut sender, connection) = builder.handshake(io).await.map_err(broken)?;
    runtime.spawn(Box::pin(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(error = error_chain(&error), "http/1.1 connection ended");
        }
    }));
    let response = sender.send_request(request).await;
    let mut response = response.map_err(|error| exchange_error(false, &error, max_head_bytes))?;
    check_head_size(&response, max_head_bytes)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        // The text of hyper's error omits the cause.
        let boxed = |error: hyper::Error| BoxError::from(error_chain(&error));
        let response = response.map(|body| Body::wrap(body.map_err(boxed)));
        return Ok(UpgradeResponse::Declined(response));
    }
    let upgraded = hyper::upgrade::on(&mut response).await.map_err(broken)?;
    let (mut head, _) = response.into_parts();
    head.extensions.clear();
    let io = Box::new(TokioIo::new(upgraded));
    Ok(UpgradeResponse::Upgraded(
        Response::from_parts(head, ()),
        io,
    ))
}
