//! The file of a replica: a WARC 1.1 archive with one `metadata` record for each exchange.
//!
//! ```text
//! warcinfo   replica: spdy-replica/1, page: {JSON, one line}
//! request    literal head          ┐
//! response   literal head, body    ├ exchange 0
//! metadata   {JSON}                ┘
//! request    …                       exchange 1
//! ```
//!
//! Any WARC tool can read it, and the same replica is always the same bytes: record ids are derived from the record's content, and
//! dates come from the recording. A body whose head has `chunked` is written as one chunk, because a WARC has the bytes of the wire,
//! and parsed without it. `docs/reference/replica-format.md` lists every field.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::error::OpenError;
use crate::head::{self, Head};
use crate::limits::Limits;
use crate::replica::observation::{Failure, LargestPaint, Observation, Paints};
use crate::replica::warc_record::{self, WarcRecord, Writer};
use crate::replica::{Exchange, Initiator, Kind, Replica};

/// The value of the field `replica` of the first record.
pub const FORMAT: &str = "spdy-replica/1";

/// The field `page` of the first record.
#[derive(Debug, Deserialize, Serialize)]
struct PageFields {
    name: String,
    source: String,
    start: usize,
    start_url: String,
    exchanges: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recorded: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dom_content_loaded_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    load_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_contentful_paint_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    largest_contentful_paint_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    largest_contentful_paint_url: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    failures: Vec<FailureFields>,
}

/// One of the requests without a response.
#[derive(Debug, Deserialize, Serialize)]
struct FailureFields {
    method: String,
    url: String,
    error: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_ns: Option<u64>,
}

/// The block of a `metadata` record.
#[derive(Debug, Deserialize, Serialize)]
struct ExchangeFields {
    exchange: usize,
    method: String,
    kind: Kind,
    initiator: InitiatorFields,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queued_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wait_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    receive_ns: Option<u64>,
    body_is_real: bool,
    #[serde(default, skip_serializing_if = "ObservedFields::is_empty")]
    observed: ObservedFields,
}

/// The observations of a live browser; the body of the request is in its own record.
#[derive(Debug, Default, Deserialize, PartialEq, Serialize)]
struct ObservedFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raised_after_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connection: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dns_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connect_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tls_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compute_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    think_time_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl ObservedFields {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn of(observed: &Observation) -> Self {
        Self {
            protocol: observed.protocol.clone(),
            priority: observed.priority.clone(),
            raised_after_ns: observed.raised_after.map(nanoseconds),
            connection: observed.connection,
            dns_ns: observed.dns.map(nanoseconds),
            connect_ns: observed.connect.map(nanoseconds),
            tls_ns: observed.tls.map(nanoseconds),
            compute_ns: observed.compute.map(nanoseconds),
            think_time_ns: observed.think_time.map(nanoseconds),
            refused: observed.refused.clone(),
        }
    }

    fn with_request_body(self, request_body: Bytes) -> Observation {
        Observation {
            protocol: self.protocol,
            priority: self.priority,
            raised_after: self.raised_after_ns.map(Duration::from_nanos),
            connection: self.connection,
            dns: self.dns_ns.map(Duration::from_nanos),
            connect: self.connect_ns.map(Duration::from_nanos),
            tls: self.tls_ns.map(Duration::from_nanos),
            compute: self.compute_ns.map(Duration::from_nanos),
            think_time: self.think_time_ns.map(Duration::from_nanos),
            request_body,
            refused: self.refused,
        }
    }
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "by", rename_all = "lowercase")]
enum InitiatorFields {
    Navigation,
    Resource {
        exchange: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_byte: Option<u64>,
    },
    Redirect {
        exchange: usize,
    },
    Unknown,
}

/// True if `records` are a replica of any version.
pub(crate) fn is_replica(records: &[WarcRecord]) -> bool {
    records
        .first()
        .is_some_and(|first| first.kind() == "warcinfo" && info(first, "replica").is_some())
}

/// A field of the block of a `warcinfo` record.
fn info<'a>(record: &'a WarcRecord, name: &str) -> Option<&'a str> {
    let block = std::str::from_utf8(&record.block).ok()?;
    block
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(field, _)| field.trim() == name)
        .map(|(_, value)| value.trim())
}

// ---- writing

/// Encodes `replica`: as `.warc.gz` if `gzip`, else as `.warc`.
///
/// Durations are stored with nanoseconds (up to 584 years, which is also the limit of imports); everything else is stored unchanged.
pub fn encode(replica: &Replica, gzip: bool) -> Vec<u8> {
    let mut writer = Writer::new(gzip);
    let largest = replica.paints.largest_contentful.as_ref();
    let page = PageFields {
        name: replica.name.clone(),
        source: replica.source.clone(),
        start: replica.start,
        start_url: replica.document().url.to_string(),
        exchanges: replica.exchanges.len(),
        recorded: replica.recorded.map(|recorded| recorded.to_string()),
        dom_content_loaded_ns: replica.dom_content_loaded.map(nanoseconds),
        load_ns: replica.load.map(nanoseconds),
        first_contentful_paint_ns: replica.paints.first_contentful.map(nanoseconds),
        largest_contentful_paint_ns: largest.map(|largest| nanoseconds(largest.at)),
        largest_contentful_paint_url: largest.and_then(|largest| largest.url.clone()),
        failures: replica.failures.iter().map(failure_fields).collect(),
    };
    let conforms = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/";
    let block = format!(
        "software: spdy\r\nformat: WARC File Format 1.1\r\nconformsTo: {conforms}\r\nreplica: {FORMAT}\r\npage: {}\r\n",
        json(&page)
    );
    let info_id = record_id(&[b"warcinfo", block.as_bytes()]);
    let began = date(replica.recorded, None);
    writer.push(
        &[
            ("WARC-Type", "warcinfo"),
            ("WARC-Record-ID", &info_id),
            ("WARC-Date", &began),
            ("Content-Type", "application/warc-fields"),
        ],
        &[block.as_bytes()],
    );
    for (index, exchange) in replica.exchanges.iter().enumerate() {
        push_exchange(&mut writer, &info_id, replica.recorded, index, exchange);
    }
    writer.finish()
}

fn failure_fields(failure: &Failure) -> FailureFields {
    FailureFields {
        method: failure.method.clone(),
        url: failure.url.clone(),
        error: failure.error.clone(),
        started_ns: failure.started.map(nanoseconds),
    }
}

fn push_exchange(
    writer: &mut Writer,
    info_id: &str,
    recorded: Option<Timestamp>,
    index: usize,
    exchange: &Exchange,
) {
    let request = complete(&exchange.request_head);
    let response = complete(&exchange.response_head);
    let (before, after) = match Head::parse(&response) {
        Some(head) if unwraps(&exchange.method, &head) => {
            warc_record::chunk_frame(exchange.body.len())
        }
        _ => (String::new(), ""),
    };
    let metadata = json(&ExchangeFields {
        exchange: index,
        method: exchange.method.to_string(),
        kind: exchange.kind,
        initiator: match exchange.initiator {
            Initiator::Navigation => InitiatorFields::Navigation,
            Initiator::Resource { index, at_byte } => InitiatorFields::Resource {
                exchange: index,
                at_byte,
            },
            Initiator::Redirect { index } => InitiatorFields::Redirect { exchange: index },
            Initiator::Unknown => InitiatorFields::Unknown,
        },
        started_ns: exchange.started.map(nanoseconds),
        queued_ns: exchange.queued.map(nanoseconds),
        wait_ns: exchange.wait.map(nanoseconds),
        receive_ns: exchange.receive.map(nanoseconds),
        body_is_real: exchange.body_is_real,
        observed: ObservedFields::of(&exchange.observed),
    });
    let date = date(recorded, exchange.started);
    let number = index.to_string();
    let blocks: [(&str, &str, &[&[u8]]); 3] = [
        (
            "request",
            "application/http;msgtype=request",
            &[&request, &exchange.observed.request_body],
        ),
        (
            "response",
            "application/http;msgtype=response",
            &[
                &response,
                before.as_bytes(),
                &exchange.body,
                after.as_bytes(),
            ],
        ),
        ("metadata", "application/json", &[metadata.as_bytes()]),
    ];
    let address = exchange.address.map(|address| address.to_string());
    let response_id = record_id(&[
        info_id.as_bytes(),
        b"response",
        number.as_bytes(),
        exchange.url.as_str().as_bytes(),
    ]);
    for (kind, content_type, block) in blocks {
        let own_id = match kind {
            "response" => response_id.clone(),
            _ => record_id(&[
                info_id.as_bytes(),
                kind.as_bytes(),
                number.as_bytes(),
                exchange.url.as_str().as_bytes(),
            ]),
        };
        let mut fields = vec![
            ("WARC-Type", kind),
            ("WARC-Record-ID", &own_id),
            ("WARC-Date", &date),
            ("WARC-Target-URI", exchange.url.as_str()),
            ("WARC-Warcinfo-ID", info_id),
        ];
        match kind {
            "request" => fields.push(("WARC-Concurrent-To", &response_id)),
            "metadata" => fields.push(("WARC-Refers-To", &response_id)),
            _ => {}
        }
        if let Some(address) = address.as_deref().filter(|_| kind != "metadata") {
            fields.push(("WARC-IP-Address", address));
        }
        fields.push(("Content-Type", content_type));
        writer.push(&fields, block);
    }
}

/// True if the body of such a response is chunked in the file.
fn unwraps(method: &http::Method, head: &Head<'_>) -> bool {
    head.is_chunked()
        && head
            .status()
            .is_some_and(|status| head::has_body(method, status))
}

/// `head` including its blank line, which is added if it is missing.
pub(crate) fn complete(head: &Bytes) -> Bytes {
    match head::head_len(head) {
        Some(len) => head.slice(..len),
        None if head.is_empty() || head.ends_with(b"\n") => [head, &b"\r\n"[..]].concat().into(),
        None => [head, &b"\r\n\r\n"[..]].concat().into(),
    }
}

/// The maximum time in a file.
pub(crate) const LONGEST: Duration = Duration::from_nanos(u64::MAX);

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn date(recorded: Option<Timestamp>, offset: Option<Duration>) -> String {
    let offset = offset
        .and_then(|offset| SignedDuration::try_from(offset).ok())
        .unwrap_or_default();
    let recorded = recorded.unwrap_or(Timestamp::UNIX_EPOCH);
    // Beyond the calendar there is no date; the offset is in the metadata in any case.
    recorded.checked_add(offset).unwrap_or(recorded).to_string()
}

fn json<T: Serialize>(fields: &T) -> String {
    serde_json::to_string(fields)
        .unwrap_or_else(|error| panic!("the fields are valid JSON: {error}"))
}

/// An id by the content of the record: FNV-1a of 128 bits in the form of a UUID of version 8 (RFC 9562 §5.8).
fn record_id(parts: &[&[u8]]) -> String {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let step = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
    let hash = parts.iter().fold(BASIS, |hash, part| {
        step(part.iter().copied().fold(hash, step), 0xff)
    });
    let hash = hash & !(0xf << 76) | 8 << 76;
    let hash = hash & !(0b11 << 62) | 0b10 << 62;
    let hex = format!("{hash:032x}");
    format!(
        "<urn:uuid:{}-{}-{}-{}-{}>",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

// ---- reading

/// The records of each page: joined files make one with several pages.
pub(crate) fn pages(records: &[WarcRecord]) -> Vec<&[WarcRecord]> {
    let is_first = |record: &WarcRecord| record.kind() == "warcinfo";
    let starts = records.iter().enumerate();
    let starts = starts.filter(|(number, record)| *number == 0 || is_first(record));
    let starts: Vec<usize> = starts.map(|(number, _)| number).collect();
    let ends = starts.iter().skip(1).copied().chain([records.len()]);
    let pages = starts.iter().zip(ends);
    pages.map(|(&start, end)| &records[start..end]).collect()
}

/// Decodes the replica in the records of one page.
pub(crate) fn decode(records: &[WarcRecord], limits: &Limits) -> Result<Replica, OpenError> {
    let fault = |record: usize, what: String| OpenError::Replica {
        record: record + 1,
        what,
    };
    let Some((first, rest)) = records.split_first() else {
        return Err(fault(0, "the file has no records".to_owned()));
    };
    let version = info(first, "replica").unwrap_or_default();
    if version != FORMAT {
        return Err(fault(
            0,
            format!("unknown format {version:?}, expected {FORMAT:?}"),
        ));
    }
    let page = info(first, "page").ok_or_else(|| fault(0, "field page is missing".to_owned()))?;
    let page: PageFields =
        serde_json::from_str(page).map_err(|error| fault(0, format!("page: {error}")))?;
    if rest.len() != page.exchanges.saturating_mul(3) {
        return Err(fault(
            0,
            format!(
                "{} exchanges declared, expected 3 records each, found {} records",
                page.exchanges,
                rest.len()
            ),
        ));
    }
    let mut exchanges = Vec::with_capacity(page.exchanges);
    for (index, triple) in rest.chunks_exact(3).enumerate() {
        let exchange = decode_exchange(triple, index, page.exchanges, limits);
        exchanges.push(exchange.map_err(|what| fault(1 + index * 3, what))?);
    }
    if page.start >= exchanges.len() {
        return Err(fault(
            0,
            format!(
                "start is {}, expected an index below {}",
                page.start,
                exchanges.len()
            ),
        ));
    }
    let recorded = page.recorded.map(|text| {
        text.parse::<Timestamp>()
            .map_err(|error| fault(0, format!("recorded {text:?}: {error}")))
    });
    Ok(Replica {
        name: page.name,
        source: page.source,
        start: page.start,
        exchanges,
        recorded: recorded.transpose()?,
        dom_content_loaded: page.dom_content_loaded_ns.map(Duration::from_nanos),
        load: page.load_ns.map(Duration::from_nanos),
        paints: Paints {
            first_contentful: page.first_contentful_paint_ns.map(Duration::from_nanos),
            largest_contentful: page.largest_contentful_paint_ns.map(|at| LargestPaint {
                at: Duration::from_nanos(at),
                url: page.largest_contentful_paint_url,
            }),
        },
        failures: page.failures.into_iter().map(failure).collect(),
    })
}

fn failure(fields: FailureFields) -> Failure {
    Failure {
        method: fields.method,
        url: fields.url,
        error: fields.error,
        started: fields.started_ns.map(Duration::from_nanos),
    }
}

fn decode_exchange(
    triple: &[WarcRecord],
    index: usize,
    count: usize,
    limits: &Limits,
) -> Result<Exchange, String> {
    let kinds: Vec<_> = triple.iter().map(WarcRecord::kind).collect();
    let [request, response, metadata] = triple else {
        unreachable!("triple of {}", triple.len())
    };
    if kinds != ["request", "response", "metadata"] {
        return Err(format!(
            "records are {}, expected request, response, metadata",
            kinds.join(", ")
        ));
    }
    let fields: ExchangeFields =
        serde_json::from_slice(&metadata.block).map_err(|error| format!("metadata: {error}"))?;
    if fields.exchange != index {
        return Err(format!(
            "metadata is of exchange {}, expected {index}",
            fields.exchange
        ));
    }
    let url = response
        .field("WARC-Target-URI")
        .ok_or("WARC-Target-URI is missing")?;
    let url =
        Url::parse(url).map_err(|error| format!("invalid WARC-Target-URI {url:?}: {error}"))?;
    let method = http::Method::from_bytes(fields.method.as_bytes())
        .map_err(|_| format!("invalid method {:?}", fields.method))?;
    let address = response.field("WARC-IP-Address");
    let address = address.map(|address| {
        address
            .parse::<IpAddr>()
            .map_err(|_| format!("invalid WARC-IP-Address {address:?}"))
    });
    let (response_head, wire) = split(&response.block, limits)?;
    let parsed = Head::parse(&response_head).ok_or("response has no status line")?;
    let body = if unwraps(&method, &parsed) {
        warc_record::unchunk(&wire).ok_or("body is not chunked, but its head declares it")?
    } else {
        wire
    };
    if body.len() > limits.body_bytes {
        return Err(format!(
            "body has {} bytes, limit {}",
            body.len(),
            limits.body_bytes
        ));
    }
    let initiator = match fields.initiator {
        InitiatorFields::Navigation => Initiator::Navigation,
        InitiatorFields::Resource { exchange, at_byte } => Initiator::Resource {
            index: exchange,
            at_byte,
        },
        InitiatorFields::Redirect { exchange } => Initiator::Redirect { index: exchange },
        InitiatorFields::Unknown => Initiator::Unknown,
    };
    if let Initiator::Resource { index, .. } | Initiator::Redirect { index } = initiator
        && index >= count
    {
        return Err(format!(
            "initiator is {index}, expected an index below {count}"
        ));
    }
    let (request_head, request_body) = split(&request.block, limits)?;
    if request_body.len() > limits.body_bytes {
        return Err(format!(
            "request body has {} bytes, limit {}",
            request_body.len(),
            limits.body_bytes
        ));
    }
    Ok(Exchange {
        url,
        method,
        address: address.transpose()?,
        request_head,
        response_head,
        body,
        body_is_real: fields.body_is_real,
        kind: fields.kind,
        initiator,
        started: fields.started_ns.map(Duration::from_nanos),
        queued: fields.queued_ns.map(Duration::from_nanos),
        wait: fields.wait_ns.map(Duration::from_nanos),
        receive: fields.receive_ns.map(Duration::from_nanos),
        observed: fields.observed.with_request_body(request_body),
    })
}

/// Divides a block into the head and the rest.
fn split(block: &Bytes, limits: &Limits) -> Result<(Bytes, Bytes), String> {
    let len = head::head_len(block).ok_or("literal head has no blank line")?;
    if len > limits.head_bytes {
        return Err(format!(
            "literal head has {len} bytes, limit {}",
            limits.head_bytes
        ));
    }
    Ok((block.slice(..len), block.slice(len..)))
}
