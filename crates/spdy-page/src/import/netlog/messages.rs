//! The literal heads and the bodies of transactions, from the bytes of their connections.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;

use super::event::Id;
use super::log::{Log, Session, Socket, Transaction, TransactionId};
use super::{http1, http2};
use crate::coding;
use crate::head::{self, Head};
use crate::limits::DECODED_BODY_BYTES;

/// One transaction with a response.
#[derive(Clone, Debug)]
pub(super) struct TransactionMessages {
    pub(super) protocol: &'static str,
    pub(super) request_head: Bytes,
    pub(super) request_body: Bytes,
    pub(super) response_head: Bytes,
    /// Without chunks, with its content codings.
    pub(super) body: Bytes,
    pub(super) has_trailers: bool,
    /// Fewer bytes arrived than announced.
    pub(super) is_cut: bool,
    /// From the connection's own bytes, and not from Chromium's parsed form.
    pub(super) is_literal: bool,
}

/// The transactions of `log` whose bytes were found on a connection.
pub(super) fn from_connections(log: &mut Log) -> BTreeMap<TransactionId, TransactionMessages> {
    let mut answers = BTreeMap::new();
    for session in log.sessions.values() {
        let socket = session.socket.and_then(|id| log.sockets.get(&id));
        if let Some(socket) = socket.filter(|socket| !socket.is_damaged) {
            of_session(log, session, socket, &mut answers);
        }
    }
    let mut sockets = std::mem::take(&mut log.sockets);
    for socket in sockets.values_mut() {
        // The bytes move into the responses, so they are in memory only once.
        let (sent, received) = (
            std::mem::take(&mut socket.sent).into(),
            std::mem::take(&mut socket.received).into(),
        );
        if !socket.is_damaged {
            of_socket(log, &socket.carried, &sent, &received, &mut answers);
        }
    }
    log.sockets = sockets;
    answers
}

/// HTTP/1.1: the bytes sent must match the heads that the transactions log.
fn of_socket(
    log: &Log,
    carried: &[TransactionId],
    sent: &Bytes,
    received: &Bytes,
    answers: &mut BTreeMap<TransactionId, TransactionMessages>,
) {
    let requests = http1::requests(sent, carried.len());
    let mut fitting = Vec::new();
    let mut methods = Vec::new();
    for (&place, request) in carried.iter().zip(requests) {
        let Some((transaction, method)) = at(log, place) else {
            break;
        };
        if request.head != literal_head(transaction) {
            break;
        }
        methods.push(method);
        fitting.push((place, request));
    }
    let received = http1::answers(received, &methods);
    for ((place, request), response) in fitting.into_iter().zip(received) {
        let answer = TransactionMessages {
            protocol: "http/1.1",
            request_head: request.head,
            request_body: request.framed_body,
            response_head: response.head,
            body: response.body,
            has_trailers: response.has_trailers,
            is_cut: response.is_cut,
            is_literal: true,
        };
        answers.insert(place, answer);
    }
}

/// HTTP/2: heads from the lists of fields, bodies from the frames.
fn of_session(
    log: &Log,
    session: &Session,
    socket: &Socket,
    answers: &mut BTreeMap<TransactionId, TransactionMessages>,
) {
    let Some(mut received) = http2::bodies(&socket.received) else {
        return;
    };
    // The client's side begins with 24 bytes that are not a frame (RFC 9113 §3.4).
    let sent = socket.sent.get(24..).and_then(http2::bodies);
    let mut sent = sent.unwrap_or_default();
    for (number, stream) in &session.streams {
        let Some((place, (transaction, _))) = stream
            .request
            .and_then(|place| Some((place, at(log, place)?)))
        else {
            continue;
        };
        let is_final = |fields: &&Vec<String>| {
            parse_status(fields).is_some_and(|status| !(100..200).contains(&status))
        };
        let Some(fields) = stream.heads.iter().find(is_final) else {
            continue;
        };
        let body = received.remove(number).unwrap_or_default();
        let answer = TransactionMessages {
            protocol: "h2",
            request_head: request_head(transaction),
            request_body: sent.remove(number).unwrap_or_default().bytes.into(),
            response_head: response_head(fields),
            has_trailers: stream
                .heads
                .iter()
                .any(|fields| parse_status(fields).is_none()),
            is_cut: !body.is_whole,
            body: body.bytes.into(),
            is_literal: true,
        };
        answers.insert(place, answer);
    }
}

/// Chromium's parsed form of a transaction; `None` without a response.
pub(super) fn from_events(
    transaction: &Transaction,
    method: &http::Method,
) -> Option<TransactionMessages> {
    let response_head = response_head(&transaction.response_fields);
    let head = Head::parse(&response_head)?;
    let status = head.status()?;
    let coded = !transaction.encoded.is_empty();
    let body = match head::has_body(method, status) {
        // Chromium follows a redirect without reading its body.
        false => Bytes::new(),
        true if coded => Bytes::copy_from_slice(&transaction.encoded),
        true => Bytes::copy_from_slice(&transaction.plain),
    };
    let codings = head.content_codings();
    let announced = head.content_length().filter(|_| !head.is_chunked());
    let is_cut = head::has_body(method, status)
        && (announced.is_some_and(|length| length != body.len() as u64)
            || !codings.is_empty() && coding::decode(&body, &codings, DECODED_BODY_BYTES).is_err());
    Some(TransactionMessages {
        protocol: match (transaction.line.is_empty(), transaction.carrier.session) {
            (false, _) => "http/1.1",
            (true, Some(_)) => "h2",
            (true, None) => "h3",
        },
        request_head: request_head(transaction),
        request_body: Bytes::new(),
        body,
        has_trailers: false,
        is_cut,
        is_literal: false,
        response_head,
    })
}

/// The address of the other end of a transaction's connection.
pub(super) fn address(log: &Log, transaction: &Transaction) -> Option<IpAddr> {
    let socket = log.sockets.get(&socket(log, transaction)?)?;
    let remote: SocketAddr = socket.remote.parse().ok()?;
    Some(remote.ip())
}

/// The connection under a transaction.
pub(super) fn socket(log: &Log, transaction: &Transaction) -> Option<Id> {
    let session = transaction.carrier.session;
    let under = session.and_then(|id| log.sessions.get(&id)?.socket);
    under.or(transaction.carrier.socket)
}

fn at(
    log: &Log,
    (request, leg, transaction): TransactionId,
) -> Option<(&Transaction, http::Method)> {
    let leg = log.requests.get(&request)?.hops.get(leg)?;
    let method = http::Method::from_bytes(leg.method.as_bytes()).ok()?;
    Some((leg.transactions.get(transaction)?, method))
}

/// The head of a transaction in HTTP/1.1.
fn literal_head(transaction: &Transaction) -> Vec<u8> {
    let mut head = transaction.line.clone().into_bytes();
    for field in &transaction.request_fields {
        head.extend_from_slice(field.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The head of a request as HTTP/1.1 text.
fn request_head(transaction: &Transaction) -> Bytes {
    let mut line = transaction.line.trim_end().to_owned();
    let pseudo = |name: &str| {
        let mut fields = transaction.request_fields.iter().map(|field| split(field));
        fields
            .find(|(field_name, _)| *field_name == name)
            .map(|(_, value)| value)
    };
    if line.is_empty() {
        let (method, path) = (pseudo(":method"), pseudo(":path"));
        line = format!(
            "{} {} HTTP/1.1",
            method.unwrap_or("GET"),
            path.unwrap_or("/")
        );
    }
    let host = pseudo(":authority").map(|host| ("Host", host));
    head::synthesize(
        &line,
        host.into_iter().chain(fields(&transaction.request_fields)),
    )
}

/// The head of a response as HTTP/1.1 text: its status line is the first of `header_lines`, or a field `:status`.
fn response_head(header_lines: &[String]) -> Bytes {
    let first = header_lines
        .first()
        .filter(|line| line.starts_with("HTTP/"));
    let line = match (first, parse_status(header_lines)) {
        (Some(line), _) => line.clone(),
        (None, Some(status)) => {
            let reason = http::StatusCode::from_u16(status)
                .ok()
                .and_then(|status| status.canonical_reason());
            format!("HTTP/1.1 {status} {}", reason.unwrap_or_default())
        }
        (None, None) => String::new(),
    };
    head::synthesize(&line, fields(&header_lines[usize::from(first.is_some())..]))
}

fn parse_status(header_lines: &[String]) -> Option<u16> {
    let mut fields = header_lines.iter().map(|field| split(field));
    fields.find(|(name, _)| *name == ":status")?.1.parse().ok()
}

/// Fields without those of HTTP/2 that begin with a colon; values that were joined by NUL are split again.
fn fields(header_lines: &[String]) -> impl Iterator<Item = (&str, &str)> {
    let fields = header_lines.iter().map(|field| split(field));
    let named = fields.filter(|(name, _)| http::HeaderName::from_bytes(name.as_bytes()).is_ok());
    named.flat_map(|(name, value)| value.split('\0').map(move |value| (name, value)))
}

/// `name: value`, where the name may begin with a colon.
fn split(field: &str) -> (&str, &str) {
    let colon = field.bytes().skip(1).position(|byte| byte == b':');
    let (name, value) = colon.map_or((field, ""), |at| (&field[..=at], &field[at + 2..]));
    (name, value.trim_matches([' ', '\t']))
}
