//! Imports a folder of mahimahi's `mm-webrecord` as a replica: a file for each exchange, with a random name.
//!
//! ```text
//! RequestResponse   1 ip  2 port  3 scheme (1 http, 2 https)  4 request  5 response      protobuf
//! HTTPMessage       1 first line  2 header, repeated  3 body                               ▲
//! HTTPHeader        1 key  2 value                                 tag = number << 3 | wire type
//! ```
//!
//! Messages are parsed directly into heads: a message of two bytes may represent a header, so a list of them would need forty times
//! the memory of its file. The recording has neither an order nor times nor the URL of the page; the document in most Referers is
//! used as the page.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use bytes::{Bytes, BytesMut};
use url::Url;

use crate::error::OpenError;
use crate::graph::builder::location;
use crate::graph::from_replica::references_of;
use crate::head::Head;
use crate::import::assemble::{document, kinds_of_redirects};
use crate::import::notes::ImportNotes;
use crate::import::result::{ImportOptions, OpenedReplica};
use crate::import::warc;
use crate::limits::Limits;
use crate::replica::observation::Observation;
use crate::replica::{Exchange, Initiator, Kind, Replica, without_fragment};

/// Maximum number of redirects before the page.
const REDIRECTS: usize = 8;

/// Imports the page in `files`, each with its name.
pub(crate) fn import(
    mut files: Vec<(String, Bytes)>,
    name: &str,
    options: &ImportOptions,
) -> Result<OpenedReplica, OpenError> {
    files.sort();
    let mut notes = ImportNotes::new("mahimahi");
    let count = files.len();
    let mut exchanges = Vec::new();
    for (_, file) in files {
        match exchange(&file, &mut notes, &options.limits)? {
            Ok(exchange) => exchanges.push(exchange),
            Err(reason) => notes.skip(reason),
        }
    }
    // File names are random, but the same recording must give the same replica.
    exchanges.sort_by_cached_key(|exchange| {
        let Exchange {
            url,
            method,
            request_head,
            response_head,
            body,
            address,
            ..
        } = exchange.clone();
        let request = (url.to_string(), method.to_string(), request_head);
        (
            request,
            response_head,
            body,
            exchange.observed.request_body.clone(),
            address,
        )
    });
    kinds_of_redirects(&mut exchanges);
    let no_page = || OpenError::NoPageLoad {
        reason: format!("none of {count} files is a mahimahi exchange with a document"),
    };
    let page = document(&exchanges, most_referenced(&exchanges).as_deref()).ok_or_else(no_page)?;
    if let Some(page) = options.page.filter(|&page| page != 1) {
        return Err(OpenError::NoSuchPage { page, pages: 1 });
    }
    let order = order(&exchanges, page);
    let mut slots: Vec<_> = exchanges.into_iter().map(Some).collect();
    let mut exchanges: Vec<Exchange> = order
        .into_iter()
        .filter_map(|index| slots[index].take())
        .collect();
    exchanges[0].initiator = Initiator::Navigation;
    notes.remark("heads were rebuilt from names and values; there are no times");
    notes.count(&exchanges);
    let replica = Replica {
        name: name.to_owned(),
        source: format!("mahimahi, page {}; licence not recorded", exchanges[0].url),
        start: 0,
        exchanges,
        recorded: None,
        dom_content_loaded: None,
        load: None,
        paints: crate::replica::Paints::default(),
        failures: Vec::new(),
    };
    Ok(OpenedReplica { replica, notes })
}

/// The document in most Referers.
fn most_referenced(exchanges: &[Exchange]) -> Option<String> {
    let mut named = HashMap::<&str, usize>::new();
    for exchange in exchanges {
        let referer = Head::parse(&exchange.request_head).and_then(|head| head.value("referer"));
        if let Some(referer) = referer {
            *named.entry(without_fragment(referer)).or_default() += 1;
        }
    }
    let documents = exchanges
        .iter()
        .filter(|exchange| exchange.kind == Kind::Document);
    let counted = documents.filter_map(|exchange| Some((*named.get(exchange.key())?, exchange)));
    // If several are as frequent, the first in the order of URLs.
    let most = counted.rev().max_by_key(|(count, _)| *count);
    most.map(|(_, exchange)| exchange.key().to_owned())
}

/// The order of the exchanges: the page, the redirects that led to it, references of its texts, and the rest.
fn order(exchanges: &[Exchange], page: usize) -> Vec<usize> {
    let mut order = vec![page];
    let mut target = exchanges[page].key().to_owned();
    let mut ordered = HashSet::from([page]);
    for _ in 0..REDIRECTS {
        let leads = |&index: &usize| location(&exchanges[index]).is_some_and(|to| to == target);
        let before = (0..exchanges.len())
            .filter(|index| !ordered.contains(index))
            .find(leads);
        let Some(before) = before else { break };
        ordered.insert(before);
        order.insert(1, before);
        target = exchanges[before].key().to_owned();
    }
    let named = references_of(exchanges, page);
    order.extend(
        named
            .into_iter()
            .chain(0..exchanges.len())
            .filter(|&index| ordered.insert(index)),
    );
    order
}

/// The exchange in a file; the inner error is the reason for skipping it.
fn exchange(
    file: &Bytes,
    notes: &mut ImportNotes,
    limits: &Limits,
) -> Result<Result<Exchange, &'static str>, OpenError> {
    const NO_EXCHANGE: &str = "files that are not exchanges";
    let (mut ip, mut port, mut is_secure) = (None, None, false);
    let (mut request, mut response) = (None, None);
    let mut fields = ProtobufFields(file.clone());
    while let Some(field) = fields.next() {
        match field {
            Some((1, Value::Bytes(text))) => ip = Some(text),
            Some((2, Value::Number(number))) => port = u16::try_from(number).ok(),
            Some((3, Value::Number(scheme))) => is_secure = scheme == 2,
            Some((4, Value::Bytes(bytes))) => request = message(&bytes, limits)?,
            Some((5, Value::Bytes(bytes))) => response = message(&bytes, limits)?,
            Some(_) => {}
            None => return Ok(Err(NO_EXCHANGE)),
        }
    }
    let (Some((request_head, request_body)), Some((response_head, wire))) = (request, response)
    else {
        return Ok(Err(NO_EXCHANGE));
    };
    let address = ip.and_then(|ip| std::str::from_utf8(&ip).ok()?.parse::<IpAddr>().ok());
    let parsed_head = Head::parse(&request_head);
    let status = Head::parse(&response_head).and_then(|head| head.status());
    let (Some(parsed_head), Some(status)) = (parsed_head, status) else {
        return Ok(Err(NO_EXCHANGE));
    };
    let line = String::from_utf8_lossy(parsed_head.line());
    let mut parts = line.split(' ');
    let method = parts
        .next()
        .and_then(|word| http::Method::from_bytes(word.as_bytes()).ok());
    let (Some(method), Some(target)) = (method, parts.next()) else {
        return Ok(Err(NO_EXCHANGE));
    };
    let Some(url) = url(target, parsed_head.value("host"), address, port, is_secure) else {
        return Ok(Err("with an invalid URL"));
    };
    let content_type = |head: &Bytes| {
        let head = Head::parse(head)?;
        head.value("content-type").map(str::to_owned)
    };
    let (response_head, body) = warc::body(&method, status, response_head, wire, notes);
    if body.len().max(request_body.len()) > limits.body_bytes {
        let what = "bytes in a body";
        return Err(OpenError::Limit {
            what,
            limit: limits.body_bytes,
        });
    }
    Ok(Ok(Exchange {
        kind: Kind::of(content_type(&response_head).as_deref(), &url, None),
        url,
        method,
        address,
        request_head,
        response_head,
        body,
        body_is_real: true,
        initiator: Initiator::Unknown,
        started: None,
        queued: None,
        wait: None,
        receive: None,
        observed: Observation {
            request_body,
            ..Observation::default()
        },
    }))
}

fn url(
    target: &str,
    host: Option<&str>,
    address: Option<IpAddr>,
    port: Option<u16>,
    is_secure: bool,
) -> Option<Url> {
    let scheme = if is_secure { "https" } else { "http" };
    let url = match (target.starts_with('/'), host, address) {
        (true, Some(host), _) => format!("{scheme}://{host}{target}"),
        (true, None, Some(address)) => {
            let port = port.unwrap_or(if is_secure { 443 } else { 80 });
            format!(
                "{scheme}://{}{target}",
                std::net::SocketAddr::new(address, port)
            )
        }
        // The target of a request to a proxy.
        _ => target.to_owned(),
    };
    let url = Url::parse(&url).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

/// A message as literal head and body; `None` if it is invalid.
fn message(bytes: &Bytes, limits: &Limits) -> Result<Option<(Bytes, Bytes)>, OpenError> {
    let (mut line, mut headers, mut body) = (Bytes::new(), BytesMut::new(), Bytes::new());
    let mut fields = ProtobufFields(bytes.clone());
    while let Some(field) = fields.next() {
        match field {
            Some((1, Value::Bytes(text))) => line = text,
            Some((2, Value::Bytes(header))) => {
                let Some((key, value)) = header_of(&header) else {
                    return Ok(None);
                };
                push_clean(&mut headers, &key);
                headers.extend_from_slice(b": ");
                push_clean(&mut headers, &value);
                headers.extend_from_slice(b"\r\n");
            }
            Some((3, Value::Bytes(bytes))) => body = bytes,
            Some(_) => {}
            None => return Ok(None),
        }
        if line.len() + headers.len() + 4 > limits.head_bytes {
            return Err(OpenError::Limit {
                what: "bytes in a literal head",
                limit: limits.head_bytes,
            });
        }
    }
    let mut head = BytesMut::with_capacity(line.len() + headers.len() + 4);
    push_clean(&mut head, &line);
    head.extend_from_slice(b"\r\n");
    head.extend_from_slice(&headers);
    head.extend_from_slice(b"\r\n");
    Ok(Some((head.freeze(), body)))
}

fn header_of(bytes: &Bytes) -> Option<(Bytes, Bytes)> {
    let (mut key, mut value) = (Bytes::new(), Bytes::new());
    let mut fields = ProtobufFields(bytes.clone());
    while let Some(field) = fields.next() {
        match field? {
            (1, Value::Bytes(bytes)) => key = bytes,
            (2, Value::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    // A line that is empty or has no name would end the head or be invalid.
    (!key.is_empty()).then_some((key, value))
}

/// Appends bytes without line ends.
fn push_clean(head: &mut BytesMut, text: &[u8]) {
    head.extend(text.iter().map(|&byte| match byte {
        b'\r' | b'\n' | 0 => b' ',
        byte => byte,
    }));
}

/// The value of a message's field.
enum Value {
    Number(u64),
    Bytes(Bytes),
}

/// The fields of a message in their order; invalid bytes end them.
struct ProtobufFields(Bytes);

impl ProtobufFields {
    /// The next field; `Some(None)` for invalid bytes.
    fn next(&mut self) -> Option<Option<(u64, Value)>> {
        (!self.0.is_empty()).then(|| self.field())
    }

    fn field(&mut self) -> Option<(u64, Value)> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Bytes(self.take(8)?),
            2 => {
                let len = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(len)?)
            }
            5 => Value::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, value))
    }

    fn take(&mut self, len: usize) -> Option<Bytes> {
        (len <= self.0.len()).then(|| self.0.split_to(len))
    }

    /// Seven bits for each byte, the lowest first, at most ten bytes.
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for place in 0..10 {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << (7 * place).min(63);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut len = bytes.len();
        while len > 0x7f {
            out.push(len as u8 | 0x80);
            len >>= 7;
        }
        out.push(len as u8);
        out.extend_from_slice(bytes);
        out
    }

    fn message_of(line: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let mut message = field(1, line.as_bytes());
        for (key, value) in headers {
            let header = [field(1, key.as_bytes()), field(2, value.as_bytes())].concat();
            message.extend(field(2, &header));
        }
        message.extend(field(3, body));
        message
    }

    fn file(path: &str, referer: &str, headers: &[(&str, &str)], body: &[u8]) -> (String, Bytes) {
        let request = [("Host", "a.test"), ("Referer", referer)];
        let request = message_of(&format!("GET {path} HTTP/1.1"), &request, b"");
        let response = message_of("HTTP/1.1 200 OK", headers, body);
        let parts = [
            field(1, b"192.0.2.7"),
            vec![2 << 3, 0xbb, 0x03], // port 443
            vec![3 << 3, 2],          // https
            field(4, &request),
            field(5, &response),
        ];
        (format!("save.{path}"), parts.concat().into())
    }

    fn import_all(
        files: Vec<(String, Bytes)>,
        options: &ImportOptions,
    ) -> Result<OpenedReplica, OpenError> {
        import(files, "folder", options)
    }

    #[test]
    fn a_folder_becomes_a_page_with_any_file_names() {
        let html = [
            ("Content-Type", "text/html"),
            ("Transfer-Encoding", "chunked"),
        ];
        let page = "https://a.test/z";
        let long = "x".repeat(200);
        let mut files = vec![
            file("/a.png", page, &[("X-Long", &long)], b"png"),
            file("/frame", page, &[("Content-Type", "text/html")], b"<p>"),
            file("/z", "", &html, b"12\r\n<img src=/b.png>  \r\n0\r\n\r\n"),
            file("/b.png", page, &[], b"other"),
            (
                "notes.txt".to_owned(),
                Bytes::from_static(b"not an exchange"),
            ),
        ];
        let opened = import_all(files.clone(), &ImportOptions::default()).unwrap();
        let paths: Vec<_> = opened
            .replica
            .exchanges
            .iter()
            .map(|e| e.url.as_str().to_owned())
            .collect();
        let of = |path: &str| format!("https://a.test{path}");
        assert_eq!(paths, [of("/z"), of("/b.png"), of("/a.png"), of("/frame")]);
        let document = opened.replica.document();
        assert_eq!(&document.body[..], b"<img src=/b.png>  ");
        assert_eq!(document.address, Some([192, 0, 2, 7].into()));
        assert_eq!(
            &document.request_head[..],
            b"GET /z HTTP/1.1\r\nHost: a.test\r\nReferer: \r\n\r\n"
        );
        assert_eq!(opened.notes.skipped["files that are not exchanges"], 1);
        files
            .iter_mut()
            .zip(0..)
            .for_each(|(file, number)| file.0 = format!("save.{}", 9 - number));
        let again = import_all(files, &ImportOptions::default()).unwrap();
        assert_eq!(again.replica, opened.replica);
    }

    #[test]
    fn a_value_cannot_smuggle_a_line() {
        let (_, bytes) = file("/", "x\r\nCookie: 1", &[], b"");
        let mut notes = ImportNotes::new("");
        let exchange = exchange(&bytes, &mut notes, &Limits::default())
            .unwrap()
            .unwrap();
        assert!(
            Head::parse(&exchange.request_head)
                .unwrap()
                .value("cookie")
                .is_none()
        );
    }

    #[test]
    fn a_missing_page_is_an_error() {
        let import_error = |files, page| {
            let options = ImportOptions {
                page,
                ..ImportOptions::default()
            };
            import_all(files, &options).unwrap_err().to_string()
        };
        let none =
            "no page load in the recording: none of 1 files is a mahimahi exchange with a document";
        assert_eq!(import_error(vec![file("/a.png", "", &[], b"")], None), none);
        let html = [("Content-Type", "text/html")];
        assert_eq!(
            import_error(vec![file("/", "", &html, b"")], Some(2)),
            "no page 2 in the recording, expected 1 to 1"
        );
    }

    #[test]
    fn one_byte_past_a_limit_is_refused() {
        let html = [("Content-Type", "text/html")];
        let with = |limits| {
            let options = ImportOptions { page: None, limits };
            import_all(vec![file("/", "", &html, b"body")], &options).map(|opened| opened.replica)
        };
        let head_bytes = with(Limits::default())
            .unwrap()
            .document()
            .response_head
            .len();
        let usual = Limits {
            head_bytes,
            ..Limits::default()
        };
        assert!(
            with(Limits {
                body_bytes: 4,
                ..usual
            })
            .is_ok()
        );
        for past in [
            Limits {
                body_bytes: 3,
                ..usual
            },
            Limits {
                head_bytes: head_bytes - 1,
                ..usual
            },
        ] {
            assert!(
                matches!(with(past), Err(OpenError::Limit { .. })),
                "{past:?}"
            );
        }
    }
}
