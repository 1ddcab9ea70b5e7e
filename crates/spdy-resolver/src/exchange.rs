//! One question to one server: over UDP, and over TCP if the answer does not fit or UDP cannot be trusted.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use futures_util::future::{Either, select};
use spdy::runtime::SharedRuntime;
use spdy_net::datagrams::Datagrams;
use spdy_net::network::SharedNetwork;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::reply::{QueryTransport, Question, Reply};
use crate::spoof_budget::{Mismatch, SpoofBudget};

/// Receive buffer: more than a query permits, so that a reply that is too long is recognized as one.
const REPLY_BUFFER_BYTES: usize = 4096;

/// Queries `server`. Each transport has `timeout`.
///
/// A reply over UDP is accepted if it comes from the address of `server`, to the port of this one question, with its ID and its name in
/// the same case. All others are counted by `suspicion`. After one that differs in case alone the server is queried over TCP, since not all
/// servers preserve case; past the limit of `suspicion` UDP is not used at all. Packets from other addresses do not count towards that
/// limit: they are no guesses at a reply, and any host can send them.
pub(crate) async fn query_server(
    network: &SharedNetwork,
    runtime: &SharedRuntime,
    server: SocketAddr,
    question: &Question,
    timeout: Duration,
    suspicion: &SpoofBudget,
) -> io::Result<Reply> {
    if !suspicion.is_past_limit() {
        let over_udp = query_udp(network, server, question, suspicion);
        match with_timeout(runtime, timeout, over_udp).await? {
            None | Some(Reply::Truncated) => {}
            Some(reply) => return Ok(reply),
        }
    }
    let over_tcp = query_tcp(network, server, question);
    with_timeout(runtime, timeout, over_tcp).await
}

/// The reply; `None` if the query must be sent over TCP instead.
async fn query_udp(
    network: &SharedNetwork,
    server: SocketAddr,
    question: &Question,
    suspicion: &SpoofBudget,
) -> io::Result<Option<Reply>> {
    let anywhere: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = network.datagrams(SocketAddr::new(anywhere, 0))?;
    let mut datagrams = Datagrams::new(socket, REPLY_BUFFER_BYTES);
    datagrams.send(server, None, &question.message()).await?;
    loop {
        let (bytes, from) = datagrams.receive().await?;
        let same = from.address.port() == server.port()
            && from.address.ip().to_canonical() == server.ip().to_canonical();
        let reply = match same {
            true => question.reply(bytes, QueryTransport::Udp),
            false => Err(Mismatch::Source),
        };
        match reply {
            Ok(reply) => return Ok(Some(reply)),
            Err(mismatch) => {
                suspicion.note(mismatch);
                if mismatch == Mismatch::Case || suspicion.is_past_limit() {
                    return Ok(None);
                }
            }
        }
    }
}

async fn query_tcp(
    network: &SharedNetwork,
    server: SocketAddr,
    question: &Question,
) -> io::Result<Reply> {
    let mut io = network.connect(server).await?;
    let message = question.message();
    let Ok(len) = u16::try_from(message.len()) else {
        unreachable!("query has {} bytes", message.len())
    };
    io.write_all(&[&len.to_be_bytes()[..], &message].concat())
        .await?;
    io.flush().await?;
    let mut len = [0; 2];
    io.read_exact(&mut len).await?;
    let mut reply = vec![0; u16::from_be_bytes(len).into()];
    io.read_exact(&mut reply).await?;
    let other = |_| io::Error::new(io::ErrorKind::InvalidData, "a reply to another question");
    question.reply(&reply, QueryTransport::Tcp).map_err(other)
}

async fn with_timeout<T>(
    runtime: &SharedRuntime,
    timeout: Duration,
    asking: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let asking = std::pin::pin!(asking);
    match select(asking, runtime.sleep_until(runtime.now() + timeout)).await {
        Either::Left((reply, _)) => reply,
        Either::Right(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no reply in {timeout:?}"),
        )),
    }
}
