//! Exports a replica as HAR 1.2, for other tools.
//!
//! HAR has no fields for filler, literal heads and coded bodies, so these are lost: the export is a view of a replica, not another
//! format of it.
//!
//! ```text
//!          started          sent        first byte      last byte
//!             |─── queued ───|─── wait ───|── receive ───|
//! timings     |blocked|dns|connect|
//!                         |ssl in it|          time = blocked + dns + connect + send + wait + receive
//! ```

use std::time::Duration;

use data_encoding::BASE64;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::coding;
use crate::head::Head;
use crate::import::har::cookies;
use crate::limits::DECODED_BODY_BYTES;
use crate::replica::{Exchange, Initiator, Kind, Replica};

/// The one page of the log.
const PAGE: &str = "page_1";

/// Formats `replica` as a HAR 1.2 log, indented.
///
/// `ssl` is part of `connect`, as in HAR 1.2, and not counted twice. Times that were not recorded are -1, or 0 where the format
/// requires a time. Fields that begin with `_` are Chrome's.
#[must_use]
pub fn export(replica: &Replica) -> Vec<u8> {
    let began = replica.recorded.unwrap_or(Timestamp::UNIX_EPOCH);
    let timing = |time: Option<Duration>| time.map_or(-1.0, millis);
    let entries: Vec<Value> = replica
        .exchanges
        .iter()
        .map(|exchange| entry(exchange, replica, began))
        .collect();
    let log = json!({"log": {
        "version": "1.2",
        "creator": {"name": "spdy", "version": env!("CARGO_PKG_VERSION")},
        "comment": replica.source,
        "pages": [{
            "startedDateTime": began.to_string(),
            "id": PAGE,
            "title": replica.document().url.as_str(),
            "pageTimings": {
                "onContentLoad": timing(replica.dom_content_loaded),
                "onLoad": timing(replica.load),
            },
        }],
        "entries": entries,
    }});
    let mut text = serde_json::to_vec_pretty(&log)
        .unwrap_or_else(|fault| panic!("the exported values are valid JSON: {fault}"));
    text.push(b'\n');
    text
}

fn entry(exchange: &Exchange, replica: &Replica, began: Timestamp) -> Value {
    let offset = exchange.started.unwrap_or_default();
    let offset = SignedDuration::try_from(offset).unwrap_or_default();
    let started = began.checked_add(offset).unwrap_or(began);
    let (timings, time) = timings(exchange);
    let mut entry = json!({
        "pageref": PAGE,
        "startedDateTime": started.to_string(),
        "time": time,
        "request": request(exchange),
        "response": response(exchange),
        "cache": {},
        "timings": timings,
        "_resourceType": kind(exchange.kind),
    });
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            entry[name] = value;
        }
    };
    let observed = &exchange.observed;
    let parent = match exchange.initiator {
        Initiator::Resource { index, .. } | Initiator::Redirect { index } => {
            replica.exchanges.get(index)
        }
        Initiator::Navigation | Initiator::Unknown => None,
    };
    let initiator = parent.map(|parent| {
        let kind = match (exchange.initiator, parent.kind) {
            (Initiator::Redirect { .. }, _) => "redirect",
            (_, Kind::Script) => "script",
            _ => "parser",
        };
        json!({"type": kind, "url": parent.url.as_str()})
    });
    add("_initiator", initiator);
    add("_priority", observed.priority.clone().map(Value::from));
    add("_error", observed.refused.clone().map(Value::from));
    add(
        "connection",
        observed.connection.map(|number| number.to_string().into()),
    );
    add(
        "serverIPAddress",
        exchange.address.map(|address| address.to_string().into()),
    );
    entry
}

/// The phases, and their sum.
fn timings(exchange: &Exchange) -> (Value, f64) {
    let observed = &exchange.observed;
    let queued = exchange.queued.unwrap_or_default();
    let (dns, connect) = (observed.dns, observed.connect);
    // Clocks are not exact: if the parts exceed the whole, nothing is left for `blocked`.
    let blocked = queued
        .saturating_sub(dns.unwrap_or_default())
        .saturating_sub(connect.unwrap_or_default());
    let part = |time: Option<Duration>| time.map_or(-1.0, millis);
    let (wait, receive) = (
        exchange.wait.unwrap_or_default(),
        exchange.receive.unwrap_or_default(),
    );
    let blocked = exchange.queued.map(|_| blocked);
    let parts = [blocked, dns, connect, Some(wait), Some(receive)];
    let time = parts.into_iter().flatten().map(millis).sum();
    let timings = json!({
        "blocked": part(blocked),
        "dns": part(dns),
        "connect": part(connect),
        "ssl": part(observed.tls),
        "send": 0.0,
        "wait": millis(wait),
        "receive": millis(receive),
    });
    (timings, time)
}

fn request(exchange: &Exchange) -> Value {
    let head = Head::parse(&exchange.request_head);
    let query: Vec<Value> = exchange
        .url
        .query_pairs()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let body = &exchange.observed.request_body;
    let mut request = json!({
        "method": exchange.method.as_str(),
        "url": exchange.url.as_str(),
        "httpVersion": version(exchange, head.as_ref()),
        "cookies": head.as_ref().map(cookies::sent).unwrap_or_default(),
        "headers": fields(head.as_ref()),
        "queryString": query,
        "headersSize": exchange.request_head.len(),
        "bodySize": body.len(),
    });
    if !body.is_empty() {
        let mime = head.as_ref().and_then(|head| head.value("content-type"));
        request["postData"] = json!({
            "mimeType": mime.unwrap_or_default(),
            "params": [],
            "text": String::from_utf8_lossy(body),
        });
    }
    request
}

fn response(exchange: &Exchange) -> Value {
    let head = Head::parse(&exchange.response_head);
    let value = |name| {
        head.as_ref()
            .and_then(|head| head.value(name))
            .unwrap_or_default()
    };
    let line = head
        .as_ref()
        .map(|head| String::from_utf8_lossy(head.line()));
    let reason = line.as_deref().and_then(|line| line.splitn(3, ' ').nth(2));
    json!({
        "status": exchange.status().unwrap_or(0),
        "statusText": reason.unwrap_or_default(),
        "httpVersion": version(exchange, head.as_ref()),
        "cookies": head.as_ref().map(cookies::set).unwrap_or_default(),
        "headers": fields(head.as_ref()),
        "content": content(exchange, head.as_ref(), value("content-type")),
        "redirectURL": value("location"),
        "headersSize": exchange.response_head.len(),
        "bodySize": exchange.body.len(),
        "_transferSize": exchange.response_head.len() + exchange.body.len(),
    })
}

/// The body without its coding; only its size if it is filler or cannot be decoded.
fn content(exchange: &Exchange, head: Option<&Head<'_>>, mime: &str) -> Value {
    let codings = head.map(Head::content_codings).unwrap_or_default();
    let decoded = match codings.is_empty() {
        true => Some(exchange.body.to_vec()),
        false => coding::decode(&exchange.body, &codings, DECODED_BODY_BYTES)
            .ok()
            .map(|decoded| decoded.text),
    };
    let Some(decoded) = decoded.filter(|_| exchange.body_is_real) else {
        return json!({"size": exchange.body.len(), "mimeType": mime});
    };
    let (size, transferred) = (decoded.len() as i64, exchange.body.len() as i64);
    let mut content = json!({"size": size, "compression": size - transferred, "mimeType": mime});
    match String::from_utf8(decoded) {
        Ok(text) => content["text"] = text.into(),
        Err(bytes) => {
            content["text"] = BASE64.encode(bytes.as_bytes()).into();
            content["encoding"] = "base64".into();
        }
    }
    content
}

fn fields(head: Option<&Head<'_>>) -> Vec<Value> {
    let fields = head.into_iter().flat_map(Head::fields);
    fields
        .map(|(name, value)| {
            let [name, value] = [name, value].map(String::from_utf8_lossy);
            json!({"name": name, "value": value})
        })
        .collect()
}

fn version(exchange: &Exchange, head: Option<&Head<'_>>) -> &'static str {
    let is_1_0 = head.is_some_and(|head| head.line().starts_with(b"HTTP/1.0"));
    match (exchange.observed.protocol.as_deref(), is_1_0) {
        (Some("h2"), _) => "HTTP/2",
        (Some("h3"), _) => "HTTP/3",
        (Some("spdy/3.1"), _) => "SPDY/3.1",
        (_, true) => "HTTP/1.0",
        (_, false) => "HTTP/1.1",
    }
}

/// Chrome's name of a kind.
fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Fetch => "fetch",
        other => other.name(),
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use crate::head::with_field;
    use crate::open::{ImportOptions, read};

    fn exported(replica: &Replica) -> Value {
        serde_json::from_slice(&export(replica)).unwrap()
    }

    #[test]
    fn tls_is_part_of_the_connect_and_counted_once() {
        let mut replica = builtin::portal();
        let ms = |ms| Some(Duration::from_millis(ms));
        let exchange = &mut replica.exchanges[1];
        (exchange.queued, exchange.wait, exchange.receive) = (ms(70), ms(20), ms(3));
        let observed = &mut exchange.observed;
        (observed.dns, observed.connect, observed.tls) = (ms(10), ms(50), ms(30));
        let entry = &exported(&replica)["log"]["entries"][1];
        assert_eq!(
            entry["timings"],
            json!({"blocked": 10.0, "dns": 10.0, "connect": 50.0, "ssl": 30.0, "send": 0.0, "wait": 20.0, "receive": 3.0})
        );
        assert_eq!(entry["time"], 93.0);
    }

    #[test]
    fn unrecorded_times_are_minus_one() {
        let mut replica = builtin::portal();
        replica.exchanges[1].queued = None;
        let entry = &exported(&replica)["log"]["entries"][1];
        for phase in ["blocked", "dns", "connect", "ssl"] {
            assert_eq!(entry["timings"][phase], -1.0, "{phase}");
        }
        assert_eq!(
            exported(&replica)["log"]["pages"][0]["pageTimings"]["onLoad"],
            -1.0
        );
    }

    #[test]
    fn cookies_are_exported_beside_their_header_fields() {
        let mut replica = builtin::portal();
        let exchange = &mut replica.exchanges[1];
        exchange.request_head = with_field(&exchange.request_head, "Cookie", Some("a=1"));
        exchange.response_head = with_field(&exchange.response_head, "Set-Cookie", Some("b=2"));
        let entry = &exported(&replica)["log"]["entries"][1];
        assert_eq!(
            entry["request"]["cookies"],
            json!([{"name": "a", "value": "1"}])
        );
        assert_eq!(entry["response"]["cookies"][0]["name"], "b");
    }

    #[test]
    fn an_exported_har_imports_with_the_same_texts_and_times() {
        for mut replica in [builtin::portal(), builtin::flags()] {
            for (exchange, nth) in replica.exchanges.iter_mut().zip(0..) {
                let nth = Some(Duration::from_millis(nth));
                (exchange.started, exchange.queued, exchange.wait) = (nth, nth, nth);
            }
            let back = read(export(&replica).into(), "x.har", &ImportOptions::default()).unwrap();
            assert!(back.notes.skipped.is_empty(), "{}", back.notes);
            assert_eq!(back.replica.start, replica.start);
            for (back, exchange) in back.replica.exchanges.iter().zip(&replica.exchanges) {
                let what = |exchange: &Exchange| {
                    let head = Head::parse(&exchange.response_head).unwrap();
                    let text = coding::decode(&exchange.body, &head.content_codings(), 1 << 24);
                    let times = (exchange.started, exchange.queued, exchange.wait);
                    (
                        exchange.url.clone(),
                        exchange.kind,
                        head.status(),
                        text.unwrap().text,
                        times,
                    )
                };
                assert_eq!(what(back), what(exchange), "{}", exchange.url);
            }
        }
    }
}
