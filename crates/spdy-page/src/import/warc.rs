//! Imports any WARC as a replica, and corrects the faults of crawlers and recording proxies.
//!
//! | found | done |
//! | --- | --- |
//! | head has `chunked`, body is not | the body is used unchanged |
//! | head has a content coding, body is text | coded again, with the recorded length if possible |
//! | body longer than its Content-Length | cut (some writers include the record's own end) |
//! | body shorter than its Content-Length | Content-Length corrected |
//! | `revisit` | the body of the same URL, if it is in the file |
//! | no request | one as short as HTTP/1.1 allows |
//! | several documents | one page each, beginning at a document that no other frames |
//!
//! The dates of a crawl are those of the crawler, not of a browser, so they are not used as times.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use jiff::Timestamp;
use url::Url;

use crate::coding;
use crate::error::OpenError;
use crate::graph::builder::{frames_in, location};
use crate::graph::from_replica::references_of;
use crate::head::{self, Head};
use crate::import::assemble::kinds_of_redirects;
use crate::import::notes::ImportNotes;
use crate::import::result::{ImportOptions, OpenedReplica};
use crate::limits::{DECODED_BODY_BYTES, Limits};
use crate::replica::observation::Observation;
use crate::replica::warc_record::{self, WarcRecord};
use crate::replica::{Exchange, Initiator, Kind, Replica, archive};

/// Imports the page in `records`.
pub(crate) fn import(
    records: &[WarcRecord],
    name: &str,
    options: &ImportOptions,
) -> Result<OpenedReplica, OpenError> {
    let mut notes = ImportNotes::default();
    let version = records
        .first()
        .and_then(|first| Head::parse(&first.header))
        .map(|head| head.line().to_vec());
    let software = records
        .iter()
        .find(|record| record.kind() == "warcinfo")
        .and_then(software);
    let version = String::from_utf8_lossy(&version.unwrap_or_default()).replacen('/', " ", 1);
    notes.format = match software {
        Some(software) => format!("{version} by {software}"),
        None => version,
    };
    let (mut exchanges, dates) = exchanges(records, &mut notes, &options.limits)?;
    kinds_of_redirects(&mut exchanges);
    let pages = pages(&exchanges);
    if pages.is_empty() {
        return Err(OpenError::NoPageLoad {
            reason: format!("none of {} responses is a document", exchanges.len()),
        });
    }
    notes.pages = pages.len();
    let page_number = options.page.unwrap_or(1);
    if page_number == 0 || page_number > pages.len() {
        return Err(OpenError::NoSuchPage {
            page: page_number,
            pages: pages.len(),
        });
    }
    if pages.len() > 1 {
        notes.remark(format!(
            "the WARC has {} pages, split where documents begin: page {page_number} imported",
            pages.len()
        ));
    }
    let chosen = choose(&exchanges, &pages, page_number - 1, &mut notes);
    let recorded = dates[chosen[0]];
    let document = chosen[0];
    let mut slots: Vec<_> = exchanges.into_iter().map(Some).collect();
    let mut exchanges = Vec::with_capacity(chosen.len());
    for index in chosen {
        exchanges.extend(slots[index].take());
    }
    exchanges[0].initiator = Initiator::Navigation;
    notes.remark("a crawl has no times of a page load");
    notes.count(&exchanges);
    let url = &exchanges[0].url;
    debug_assert_eq!(
        exchanges[0].kind,
        Kind::Document,
        "the page starts at exchange {document}"
    );
    let replica = Replica {
        name: if page_number == 1 {
            name.to_owned()
        } else {
            format!("{name}-{page_number}")
        },
        source: format!("{}, page {url}; licence not recorded", notes.format),
        start: 0,
        exchanges,
        recorded,
        dom_content_loaded: None,
        load: None,
        paints: crate::replica::Paints::default(),
        failures: Vec::new(),
    };
    Ok(OpenedReplica { replica, notes })
}

fn software(record: &WarcRecord) -> Option<String> {
    let block = String::from_utf8_lossy(&record.block);
    let line = block
        .lines()
        .find_map(|line| line.strip_prefix("software:"))?;
    Some(line.trim().to_owned())
}

/// All exchanges in the order of their responses, with their dates.
fn exchanges(
    records: &[WarcRecord],
    notes: &mut ImportNotes,
    limits: &Limits,
) -> Result<(Vec<Exchange>, Vec<Option<Timestamp>>), OpenError> {
    let mut requests = Requests::of(records);
    let mut body_of = HashMap::<&str, &WarcRecord>::new();
    for record in records.iter().filter(|record| record.kind() == "response") {
        body_of
            .entry(record.field("WARC-Target-URI").unwrap_or_default())
            .or_insert(record);
    }
    let (mut exchanges, mut dates) = (Vec::new(), Vec::new());
    for record in records {
        let kind = record.kind();
        let original = match kind.as_str() {
            "response" => record,
            "revisit" => {
                let of = record
                    .field("WARC-Refers-To-Target-URI")
                    .or(record.field("WARC-Target-URI"))
                    .unwrap_or_default();
                match body_of.get(of) {
                    Some(original) => original,
                    None => {
                        notes.skip("revisits of records that are not in the file");
                        continue;
                    }
                }
            }
            "request" | "warcinfo" => continue,
            _ => {
                notes.skip("records that are not exchanges");
                continue;
            }
        };
        match exchange(record, original, &mut requests, notes, limits)? {
            Ok(exchange) => {
                exchanges.push(exchange);
                dates.push(record.field("WARC-Date").and_then(|date| date.parse().ok()));
            }
            Err(reason) => notes.skip(reason),
        }
    }
    Ok((exchanges, dates))
}

/// Requests by their records, or else by their URLs.
struct Requests<'a> {
    by_response: HashMap<&'a str, &'a WarcRecord>,
    by_id: HashMap<&'a str, &'a WarcRecord>,
    by_url: HashMap<&'a str, std::collections::VecDeque<&'a WarcRecord>>,
}

impl<'a> Requests<'a> {
    fn of(records: &'a [WarcRecord]) -> Self {
        let mut requests = Self {
            by_response: HashMap::new(),
            by_id: HashMap::new(),
            by_url: HashMap::new(),
        };
        for record in records.iter().filter(|record| record.kind() == "request") {
            if let Some(response) = record.field("WARC-Concurrent-To") {
                requests.by_response.insert(response, record);
            }
            if let Some(id) = record.field("WARC-Record-ID") {
                requests.by_id.insert(id, record);
            }
            if let Some(url) = record.field("WARC-Target-URI") {
                requests.by_url.entry(url).or_default().push_back(record);
            }
        }
        requests
    }

    fn take(&mut self, response: &WarcRecord) -> Option<&'a WarcRecord> {
        let own = response
            .field("WARC-Record-ID")
            .and_then(|id| self.by_response.get(id));
        let named = || {
            response
                .field("WARC-Concurrent-To")
                .and_then(|id| self.by_id.get(id))
        };
        if let Some(request) = own.or_else(named) {
            return Some(request);
        }
        self.by_url
            .get_mut(response.field("WARC-Target-URI")?)?
            .pop_front()
    }
}

/// The exchange of a response; the inner error is the reason for skipping it.
fn exchange(
    record: &WarcRecord,
    original: &WarcRecord,
    requests: &mut Requests<'_>,
    notes: &mut ImportNotes,
    limits: &Limits,
) -> Result<Result<Exchange, &'static str>, OpenError> {
    let Some(url) = record
        .field("WARC-Target-URI")
        .and_then(|url| Url::parse(url).ok())
    else {
        return Ok(Err("with an invalid URL"));
    };
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Ok(Err("records that are not exchanges"));
    }
    let Some((response_head, wire)) = split(&original.block, limits)? else {
        return Ok(Err("without a complete head"));
    };
    // A revisit has its own head, unless its writer omitted it.
    let own_head = split(&record.block, limits)?.map(|(head, _)| head);
    let response_head = own_head
        .filter(|head| Head::parse(head).is_some_and(|head| head.status().is_some()))
        .unwrap_or(response_head);
    let Some(status) = Head::parse(&response_head).and_then(|head| head.status()) else {
        return Ok(Err("without a status"));
    };
    // Some writers omit the blank line.
    let request = requests
        .take(record)
        .map(|request| archive::complete(&request.block))
        .filter(|head| head.len() > 4);
    let request_head = request.unwrap_or_else(|| {
        notes.remark("some requests were not recorded: synthetic requests were added");
        head::synthesize(
            &format!("GET {} HTTP/1.1", head::target(&url)),
            [("Host", head::authority(&url))],
        )
    });
    let method = Head::parse(&request_head).and_then(|head| {
        let word = head.line().split(|&byte| byte == b' ').next()?;
        http::Method::from_bytes(word).ok()
    });
    let method = method.unwrap_or(http::Method::GET);
    if method == http::Method::CONNECT {
        return Ok(Err("CONNECT tunnels"));
    }
    if record.field("WARC-Truncated").is_some() {
        notes.remark("some bodies were truncated by the recorder");
    }
    let (response_head, body) = body(&method, status, response_head, wire, notes);
    if body.len() > limits.body_bytes {
        return Err(OpenError::Limit {
            what: "bytes in a body",
            limit: limits.body_bytes,
        });
    }
    let content_type =
        Head::parse(&response_head).and_then(|head| head.value("content-type").map(str::to_owned));
    Ok(Ok(Exchange {
        kind: Kind::of(content_type.as_deref(), &url, None),
        url,
        method,
        address: record
            .field("WARC-IP-Address")
            .and_then(|address| address.parse().ok()),
        request_head,
        response_head,
        body,
        body_is_real: true,
        initiator: Initiator::Unknown,
        started: None,
        queued: None,
        wait: None,
        receive: None,
        observed: Observation::default(),
    }))
}

fn split(block: &Bytes, limits: &Limits) -> Result<Option<(Bytes, Bytes)>, OpenError> {
    match head::head_len(block) {
        Some(len) if len > limits.head_bytes => Err(OpenError::Limit {
            what: "bytes in a literal head",
            limit: limits.head_bytes,
        }),
        Some(len) => Ok(Some((block.slice(..len), block.slice(len..)))),
        None => Ok(None),
    }
}

/// The body as on the wire but without chunks, and the head, corrected where it does not describe the body.
pub(crate) fn body(
    method: &http::Method,
    status: u16,
    response_head: Bytes,
    wire: Bytes,
    notes: &mut ImportNotes,
) -> (Bytes, Bytes) {
    if !head::has_body(method, status) {
        return (response_head, Bytes::new());
    }
    let Some(head) = Head::parse(&response_head) else {
        return (response_head, wire);
    };
    let (chunked, codings) = (head.is_chunked(), head.content_codings());
    let announced = head.content_length();
    let is_odd = announced.is_none() && head.value("content-length").is_some();
    let mut body = match chunked.then(|| warc_record::unchunk(&wire)) {
        Some(Some(body)) => body,
        Some(None) => {
            notes.remark("some bodies were stored without the chunks that their heads declare");
            wire
        }
        None => wire,
    };
    let mut response_head = response_head.clone();
    if is_odd {
        notes.remark("some Content-Length fields were not numbers and were removed");
        response_head = head::with_field(&response_head, "Content-Length", None);
    }
    // With chunks, Content-Length is ignored (RFC 9112 §6.3).
    let announced = announced
        .filter(|_| !chunked)
        .and_then(|length| usize::try_from(length).ok());
    if let Some(length) = announced.filter(|&length| length < body.len()) {
        let cut = body.slice(..length);
        // A coded body that only matches uncut was decoded by its recorder, which is handled below.
        if codings.is_empty() || coding::decode(&cut, &codings, DECODED_BODY_BYTES).is_ok() {
            notes.remark("some bodies were longer than their Content-Length and were truncated");
            body = cut;
        }
    }
    let is_text = !codings.is_empty()
        && !body.is_empty()
        && coding::decode(&body, &codings, DECODED_BODY_BYTES).is_err();
    if is_text
        && let [coding] = &codings[..]
        && let Ok(coded) = coding::encode(&body, coding, announced)
    {
        notes.remark(
            "some bodies were stored decoded and were encoded again as their heads declare",
        );
        body = coded.into();
    }
    if announced.is_some_and(|length| length != body.len()) {
        notes.remark("some Content-Length fields did not match and were changed");
        response_head = head::with_field(
            &response_head,
            "Content-Length",
            Some(&body.len().to_string()),
        );
    }
    (response_head, body)
}

/// The documents that are pages: successful, and not framed by another.
fn pages(exchanges: &[Exchange]) -> Vec<usize> {
    let framed: HashSet<String> = exchanges.iter().flat_map(frames_in).collect();
    let is_page = |exchange: &Exchange| {
        exchange.kind == Kind::Document
            && exchange
                .status()
                .is_some_and(|status| (200..300).contains(&status))
    };
    let mut seen = HashSet::new();
    let documents = exchanges
        .iter()
        .enumerate()
        .filter(|(_, exchange)| is_page(exchange));
    let mut pages: Vec<_> = documents
        .clone()
        .filter(|(_, exchange)| !framed.contains(exchange.key()) && seen.insert(exchange.key()))
        .map(|(index, _)| index)
        .collect();
    if pages.is_empty() {
        pages.extend(documents.map(|(index, _)| index).take(1));
    }
    pages
}

/// The exchanges of a page, its document first: those after it in the file (and, for the first page, before it), the redirects that
/// led to it, and other exchanges of the file that its texts name.
fn choose(
    exchanges: &[Exchange],
    pages: &[usize],
    page: usize,
    notes: &mut ImportNotes,
) -> Vec<usize> {
    let from = if page == 0 { 0 } else { pages[page] };
    let to = pages.get(page + 1).copied().unwrap_or(exchanges.len());
    let document = pages[page];
    let mut is_page = vec![false; exchanges.len()];
    pages.iter().for_each(|&page| is_page[page] = true);
    let mut leading = Vec::new();
    let mut target = exchanges[document].key();
    for before in (0..document).rev().take(8) {
        if location(&exchanges[before]).is_some_and(|location| location == target) {
            leading.push(before);
            target = exchanges[before].key();
        }
    }
    let own = std::iter::once(document)
        .chain(leading.into_iter().rev())
        .chain(from..to);
    let (mut chosen, mut seen, mut visited) = (Vec::new(), HashSet::new(), HashSet::new());
    for index in own.chain(references_of(exchanges, document)) {
        if visited.insert(index) && !(index != document && is_page[index]) {
            if seen.insert((exchanges[index].method.clone(), exchanges[index].key())) {
                chosen.push(index);
            } else if (from..to).contains(&index) {
                notes.skip("recorded again");
            }
        }
    }
    let omitted = exchanges.len() - visited.len();
    (0..omitted).for_each(|_| notes.skip("of other pages"));
    chosen
}
