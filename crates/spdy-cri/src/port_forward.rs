//! Port-forward over a session: two streams for each connection, joined by their `requestid`.
//!
//! ```text
//!  client                                                     server
//!    | SYN_STREAM streamtype: error, port: 80, requestid: 0     |  SYN_REPLY
//!    | FIN on it                                                |
//!    | SYN_STREAM streamtype: data,  port: 80, requestid: 0     |  SYN_REPLY; a pair: the handler starts
//!    | DATA, FIN                                                |
//!    |                                                          |  DATA, FIN; and FIN on error
//!    |                              or, if it failed            |  text on error, RST_STREAM on both
//! ```
//!
//! Pairs of several connections may be interleaved. An old client without `requestid` opens error and data streams one after the
//! other: the ID of its error stream is used instead.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use spdy::server::{Accept, Incoming};
use spdy::upgrade::Channel;
use spdy::{HeaderBlock, Instant, RstStatus, SharedRuntime};
use tokio::task::JoinSet;

use crate::config::Config;
use crate::handler::Handler;
use crate::protocol::{DATA, ERROR, PORT, REQUEST_ID, STREAM_TYPE};
use crate::remote_command::header;
use crate::request::PortForwardRequest;
use crate::stdio::Connection;

/// Maximum length of a `requestid`, bytes; a stream with a longer one is reset. Clients use a counter.
const REQUEST_ID_BYTES: usize = 64;

/// The headers that identify a stream.
struct StreamLabel {
    id: Bytes,
    port: u16,
    is_error: bool,
}

/// Reads the headers of a stream.
fn stream_label(incoming: &Incoming) -> Option<StreamLabel> {
    let is_error = match &*header(incoming, STREAM_TYPE)? {
        kind if kind == ERROR.as_bytes() => true,
        kind if kind == DATA.as_bytes() => false,
        _ => return None,
    };
    let port = header(incoming, PORT)?;
    let port = std::str::from_utf8(&port).ok()?.parse().ok()?;
    let stream = incoming.id().value();
    let id = match header(incoming, REQUEST_ID) {
        Some(id) if !id.is_empty() => id,
        _ if is_error => Bytes::from(stream.to_string()),
        _ => Bytes::from(stream.checked_sub(2)?.to_string()),
    };
    let fits = port > 0 && id.len() <= REQUEST_ID_BYTES;
    fits.then_some(StreamLabel { id, port, is_error })
}

/// A connection with only one of its streams.
struct HalfPair {
    port: u16,
    error: Option<Channel>,
    data: Option<Channel>,
    until: Instant,
}

/// Serves one session to its end.
pub(crate) async fn serve<H: Handler>(
    mut accept: Accept,
    handler: Arc<H>,
    request: PortForwardRequest,
    config: &Config,
    runtime: &SharedRuntime,
) {
    let mut halves: BTreeMap<Bytes, HalfPair> = BTreeMap::new();
    // Ends with this future: after the client is gone, the data from the port has no reader.
    let mut running = JoinSet::new();
    loop {
        let due = halves.values().map(|half| half.until).min();
        let late = async {
            match due {
                Some(due) => runtime.sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            incoming = accept.next() => {
                let Some(incoming) = incoming else { return };
                let Some(label) = stream_label(&incoming) else {
                    incoming.reject(RstStatus::CANCEL);
                    continue;
                };
                let full = halves.len() >= config.max_half_pairs;
                let half = match halves.remove(&label.id) {
                    Some(half) => half,
                    None if full => {
                        incoming.reject(RstStatus::REFUSED_STREAM);
                        continue;
                    }
                    None => HalfPair {
                        port: label.port,
                        error: None,
                        data: None,
                        until: runtime.now() + config.stream_creation_timeout,
                    },
                };
                match add(half, &label, incoming) {
                    Some(HalfPair { port, error: Some(error), data: Some(data), .. }) => {
                        let (handler, request) = (handler.clone(), request.clone());
                        running.spawn(forward(handler, request, port, error, data));
                    }
                    Some(half) => { halves.insert(label.id, half); }
                    None => {}
                }
            }
            () = late => {
                let now = runtime.now();
                let all = mem::take(&mut halves).into_iter();
                let (expired, waiting): (BTreeMap<_, _>, _) = all.partition(|(_, half)| half.until <= now);
                halves = waiting;
                for (id, half) in expired {
                    reject_half(&id, half, config).await;
                }
            }
            Some(ended) = running.join_next() => {
                if let Err(error) = ended && error.is_panic() {
                    tracing::error!(%error, "forwarding a connection panicked");
                }
            }
        }
    }
}

/// Answers a stream and adds it to the other one of its pair. A second stream of the same type is reset, and so is one for another
/// port. `None` if there is no stream: the first ended before it was answered.
fn add(mut half: HalfPair, label: &StreamLabel, incoming: Incoming) -> Option<HalfPair> {
    let slot = match label.is_error {
        true => &mut half.error,
        false => &mut half.data,
    };
    if slot.is_some() || half.port != label.port {
        incoming.reject(RstStatus::CANCEL);
        return Some(half);
    }
    match incoming.accept_raw(&HeaderBlock::new()) {
        Ok(stream) => *slot = Some(Channel::new(stream)),
        Err(error) => tracing::debug!(%error, "stream ended before it got a reply"),
    }
    (half.error.is_some() || half.data.is_some()).then_some(half)
}

/// Rejects a connection whose second stream was not opened.
async fn reject_half(id: &Bytes, half: HalfPair, config: &Config) {
    let id = String::from_utf8_lossy(id);
    tracing::debug!(%id, "a forwarded connection has only one stream");
    if let Some(mut error) = half.error {
        let timeout = config.stream_creation_timeout;
        let text = format!("no data stream for request {id} within {timeout:?}");
        let _ = error.send(text.into()).await; // the client may have disconnected
    }
}

/// Forwards one connection.
async fn forward<H: Handler>(
    handler: Arc<H>,
    request: PortForwardRequest,
    port: u16,
    mut error: Channel,
    data: Channel,
) {
    let PortForwardRequest { sandbox, ports } = request;
    let failed = if ports.is_empty() || ports.contains(&port) {
        let connection = Connection::of_spdy(data);
        let forwarded = handler
            .port_forward(sandbox.clone(), port, connection)
            .await;
        forwarded.err().map(|error| error.to_string())
    } else {
        drop(data); // its SYN_REPLY is sent before its end
        Some(format!("expected one of the ports {ports:?}"))
    };
    if let Some(reason) = failed {
        let text = error_text(&sandbox, port, &reason);
        let _ = error.send(text.into()).await; // the client may have disconnected
    }
}

/// The text on the error stream, in the kubelet's format.
pub(crate) fn error_text(sandbox: &str, port: u16, reason: &str) -> String {
    format!("error forwarding port {port} to pod {sandbox}: {reason}")
}

#[cfg(test)]
mod tests {
    use spdy::client::OpenOptions;
    use spdy::upgrade;

    use super::*;

    /// Regression: such a stream used a place among the half pairs for as long as a waiting one.
    #[tokio::test]
    async fn a_stream_that_is_over_before_it_is_answered_is_no_half_of_a_pair() {
        let runtime = SharedRuntime::tokio();
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (session, connection) = upgrade::client_builder().handshake(near, runtime.clone());
        connection.spawn();
        let (mut accept, serving) = upgrade::server_builder().handshake(far, runtime.clone());
        serving.spawn();
        for over in [false, true] {
            let block = HeaderBlock::from_iter([(STREAM_TYPE, ERROR), (PORT, "80")]);
            let stream = session.open(block, OpenOptions::default()).await;
            let incoming = accept.next().await.expect("the client has opened a stream");
            if over {
                drop(stream);
                session.ping().await.expect("SYN_REPLY follows RST_STREAM");
            }
            let label = stream_label(&incoming).expect("SYN_REPLY has headers");
            let half = HalfPair {
                port: label.port,
                error: None,
                data: None,
                until: runtime.now(),
            };
            assert_eq!(add(half, &label, incoming).is_none(), over);
        }
    }
}
