//! Port-forward over channels, in the server: two channels for each port, and one connection to each port, opened at the start.
//!
//! The old form, without half-close: only the end of the whole connection shows that the other side has no more data. It ends when
//! every port is done.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, StatusCode};
use spdy::SharedRuntime;
use spdy::upgrade::Refusal;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{ChannelDirection, ChannelEnds, Channels, run_with};
use crate::handler::Handler;
use crate::port_forward::error_text;
use crate::protocol::{ChannelProtocol, PORT};
use crate::request::PortForwardRequest;
use crate::stdio::{Connection, Output};
use crate::websocket;

/// Limit of ports of one connection: channel numbers go up to 255, or up to 80 in the text form, which uses an ASCII character.
pub(crate) fn max_ports(protocol: ChannelProtocol) -> usize {
    if protocol.is_base64() { 40 } else { 127 }
}

/// The ports of a connection: those of the URL's request, otherwise those of its query, `port=80,443`.
pub(crate) fn ports<B>(
    forward: &PortForwardRequest,
    request: &Request<B>,
    protocol: ChannelProtocol,
) -> Result<Vec<u16>, Refusal> {
    let refuse = |message: String| Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    let mut ports = forward.ports.clone();
    if ports.is_empty() {
        let query = request.uri().query().unwrap_or_default();
        // A port is decimal, and so is the escape of its separator; the rest of the query is ignored.
        let values = query
            .split('&')
            .filter_map(|pair| pair.strip_prefix(PORT)?.strip_prefix('='));
        for value in values {
            for text in value.to_ascii_uppercase().replace("%2C", ",").split(',') {
                match text.parse() {
                    Ok(port) if port > 0 => ports.push(port),
                    _ => return refuse(format!("invalid port {text:?}: expected 1 to 65535")),
                }
            }
        }
    }
    let limit = max_ports(protocol);
    match ports.len() {
        0 => refuse("no port requested: add port=80 to the query".to_owned()),
        count if count > limit => refuse(format!("{count} ports requested, limit {limit}")),
        _ => Ok(ports),
    }
}

/// The channels of `ports`, as seen from the side that has the ports.
pub(crate) fn directions(ports: &[u16]) -> Vec<ChannelDirection> {
    ports
        .iter()
        .flat_map(|_| [ChannelDirection::Both, ChannelDirection::Write])
        .collect()
}

/// Serves one connection after its 101, until it ends.
pub(crate) async fn serve<T, H>(
    io: T,
    protocol: ChannelProtocol,
    handler: Arc<H>,
    sandbox: String,
    ports: Vec<u16>,
    message_bytes: usize,
    runtime: &SharedRuntime,
) where
    T: AsyncRead + AsyncWrite + Unpin,
    H: Handler,
{
    let socket = websocket::server(io, message_bytes).await;
    let (directions, runtime) = (directions(&ports), runtime.clone());
    let (channels, ends, held) =
        Channels::new(socket, protocol, &directions, false, message_bytes, runtime);
    drop(held);
    let mut ends = ends.into_iter();
    let pairs = std::iter::from_fn(|| Some((ends.next()?, ends.next()?)));
    let forwards: Vec<_> = ports
        .iter()
        .zip(pairs)
        .map(|(&port, (data, error))| forward(&*handler, &sandbox, port, data, error))
        .collect();
    run_with(channels, async {
        join_all(forwards).await;
    })
    .await;
}

/// Forwards one connection.
async fn forward<H: Handler>(
    handler: &H,
    sandbox: &str,
    port: u16,
    data: ChannelEnds,
    error: ChannelEnds,
) {
    let ChannelEnds {
        reader: Some(reader),
        writer: Some(writer),
    } = data
    else {
        unreachable!("a bidirectional lane has both ends");
    };
    let mut error = error.writer.map(Output::of_channel);
    let mut connection = Connection::of_channel(reader, writer);
    let label = Bytes::copy_from_slice(&port.to_le_bytes());
    if connection.send(label.clone()).await.is_err() {
        return; // the client has disconnected
    }
    if let Some(error) = &mut error {
        let _ = error.send(label).await;
    }
    let forwarded = handler
        .port_forward(sandbox.to_owned(), port, connection)
        .await;
    if let (Err(failure), Some(mut error)) = (forwarded, error) {
        let text = error_text(sandbox, port, &failure.to_string());
        let _ = error.send(text.into()).await; // the client may have disconnected
    }
}
