//! The client's side: sends the request, and reads the response without consuming any byte of the first frame.

use std::pin::pin;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::future::{BoxFuture, Either, select};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::runtime::SharedRuntime;
use crate::upgrade::head::{
    has_token, header_map, lines, members, read_head, within, write_headers,
};
use crate::upgrade::{Limits, PROTOCOL, Rewind, STREAM_PROTOCOL_VERSION, UpgradeError, Upgraded};

/// Requests an upgrade over `io`, offers `protocols` in order of preference, and waits for the switch.
///
/// `request` has the method, the target (origin form or absolute; the authority of an absolute target is the `host` header if there
/// is none) and the headers, including credentials. It has no body. Nothing except the request is sent before the 101, and a
/// redirect is not followed.
///
/// # Errors
///
/// [`UpgradeError::Refused`] with status, headers and body for any other response; the body may be truncated by the limits,
/// including the timeout. Other variants if the transport or the peer's HTTP fails.
pub async fn connect<T>(
    mut io: T,
    request: &Request<()>,
    protocols: &[&str],
    limits: Limits,
    runtime: &SharedRuntime,
) -> Result<Upgraded<T>, UpgradeError>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let head = encode(request, protocols)?;
    let late = runtime.sleep_until(runtime.now() + limits.timeout);
    let mut buffer = BytesMut::new();
    let (status, headers) = within(runtime, limits.timeout, async {
        io.write_all(&head).await?;
        io.flush().await?;
        let mut room = limits.head_bytes;
        loop {
            let head = read_head(&mut io, &mut buffer, room).await?;
            let (status, headers) = decode(&head, &limits)?;
            if status == StatusCode::SWITCHING_PROTOCOLS || !status.is_informational() {
                return Ok((status, headers));
            }
            room -= head.len(); // 100 or 103: the final response follows
        }
    })
    .await?;
    if status != StatusCode::SWITCHING_PROTOCOLS {
        let body = match status {
            // these have no body, and so no length (RFC 9112 §6.3)
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => Bytes::new(),
            _ => refusal(&mut io, buffer, &headers, limits.refusal_bytes, late).await,
        };
        let headers = Box::new(headers);
        return Err(UpgradeError::Refused {
            status,
            headers,
            body,
        });
    }
    let protocol = check_switch(&headers, protocols)?;
    Ok(Upgraded {
        io: Rewind::new(buffer.freeze(), io),
        headers,
        protocol,
    })
}

/// Encodes the head of the request.
fn encode(request: &Request<()>, protocols: &[&str]) -> Result<Vec<u8>, UpgradeError> {
    let refuse = |reason| Err(UpgradeError::Request { reason });
    let method = request.method();
    if *method == Method::CONNECT || *method == Method::HEAD {
        return refuse("the method of an upgrade must be GET or POST");
    }
    let uri = request.uri();
    let mut headers = HeaderMap::new();
    let host = match (request.headers().get(header::HOST), uri.authority()) {
        (Some(host), _) => host.clone(),
        (None, Some(authority)) => {
            // without the userinfo (RFC 9110 §4.2.4)
            let host = authority.as_str().rsplit('@').next().unwrap_or_default();
            match HeaderValue::from_str(host) {
                Ok(host) => host,
                Err(_) => return refuse("its host is not a valid header value"),
            }
        }
        (None, None) => return refuse("it has no host"),
    };
    headers.insert(header::HOST, host);
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
    if *method != Method::GET {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    for (name, value) in request.headers() {
        let ours = [
            header::HOST,
            header::CONNECTION,
            header::UPGRADE,
            header::CONTENT_LENGTH,
            header::TRANSFER_ENCODING,
            STREAM_PROTOCOL_VERSION,
        ];
        if !ours.contains(name) {
            headers.append(name.clone(), value.clone());
        }
    }
    for protocol in protocols {
        match HeaderValue::from_str(protocol) {
            Ok(value) if !protocol.contains([',', ' ']) && !protocol.is_empty() => {
                headers.append(STREAM_PROTOCOL_VERSION, value);
            }
            _ => return refuse("a sub-protocol name is not a token"),
        }
    }
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let mut out = format!("{method} {target} HTTP/1.1\r\n").into_bytes();
    write_headers(&headers, &mut out);
    Ok(out)
}

/// Decodes status and headers of a response.
fn decode(head: &[u8], limits: &Limits) -> Result<(StatusCode, HeaderMap), UpgradeError> {
    let mut lines = lines(limits);
    let mut parsed = httparse::Response::new(&mut lines);
    match parsed.parse(head).map_err(UpgradeError::Head)? {
        httparse::Status::Complete(_) => {}
        // an empty line before the head, which httparse does not take for an end
        httparse::Status::Partial => return Err(UpgradeError::Head(httparse::Error::Status)),
    }
    let status = StatusCode::from_u16(parsed.code.unwrap_or_default())
        .map_err(|_| UpgradeError::Head(httparse::Error::Status))?;
    Ok((status, header_map(parsed.headers)?))
}

/// Checks a 101; returns the sub-protocol.
fn check_switch(headers: &HeaderMap, offered: &[&str]) -> Result<Option<String>, UpgradeError> {
    let wrong = |reason| Err(UpgradeError::UnexpectedSwitch { reason });
    if !has_token(headers, &header::CONNECTION, "upgrade") {
        return wrong("its connection header has no upgrade token");
    }
    if !has_token(headers, &header::UPGRADE, PROTOCOL) {
        return wrong("its upgrade header names another protocol");
    }
    let mut chosen = members(headers, &STREAM_PROTOCOL_VERSION);
    match (chosen.next(), chosen.next()) {
        (None, _) => Ok(None),
        (Some(chosen), None) if offered.contains(&chosen) => Ok(Some(chosen.to_owned())),
        (Some(_), None) => wrong("it chose a sub-protocol that was not offered"),
        (Some(_), Some(_)) => wrong("it chose more than one sub-protocol"),
    }
}

/// Reads the body of a refusal, at most `limit` bytes, until `late` is ready. A truncated body is sufficient: it is only shown to
/// people.
async fn refusal<T: AsyncRead + Unpin>(
    io: &mut T,
    mut buffer: BytesMut,
    headers: &HeaderMap,
    limit: usize,
    mut late: BoxFuture<'static, ()>,
) -> Bytes {
    let chunked = has_token(headers, &header::TRANSFER_ENCODING, "chunked");
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let max_len = match length {
        Some(length) if !chunked => length.min(limit),
        _ => limit,
    };
    loop {
        let body = match chunked {
            // not past the limit: the size of one read must make no difference
            true => unchunk(&buffer[..buffer.len().min(limit)]),
            false => (buffer.clone().freeze(), buffer.len() >= max_len),
        };
        let enough = body.1 || buffer.len() >= limit;
        let more = !enough
            && match select(pin!(io.read_buf(&mut buffer)), &mut late).await {
                Either::Left((read, _)) => read.is_ok_and(|bytes| bytes > 0),
                Either::Right(((), _)) => false,
            };
        if !more {
            let mut body = body.0;
            body.truncate(max_len);
            return body;
        }
    }
}

/// Decodes the chunks in `coded`; returns the body, and whether the last chunk was found (RFC 9112 §7.1).
fn unchunk(mut coded: &[u8]) -> (Bytes, bool) {
    let mut body = BytesMut::new();
    while let Ok(httparse::Status::Complete((at, size))) = httparse::parse_chunk_size(coded) {
        if size == 0 {
            return (body.freeze(), true);
        }
        coded.advance(at);
        let here = usize::try_from(size).unwrap_or(usize::MAX).min(coded.len());
        body.extend_from_slice(&coded[..here]);
        coded.advance(here);
        coded = coded.strip_prefix(b"\r\n").unwrap_or(coded);
    }
    (body.freeze(), false)
}
