//! Imports a HAR as a replica, with its headers and bodies, and filler for missing bodies.
//!
//! ```text
//! text ─► har_model ─► pages: marked, or cut at navigations ─► one page's entries ─► assemble.rs
//! ```
//!
//! A HAR has decoded bodies (`content.text`), sizes in five fields that contradict each other, and entries that were never on the
//! wire. The notes state the result of each entry, or why it was omitted.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use url::Url;

use crate::error::OpenError;
use crate::import::assemble::{RecordedExchange, RecordedPage, assemble};
use crate::import::har::model::{
    Entry, Fields, Har, HarInitiator, Header, Log, Number, Page, Shape,
};
use crate::import::notes::{ImportNotes, WEBSOCKETS};
use crate::import::result::{ImportOptions, OpenedReplica};
use crate::replica::without_fragment;

/// Minimum number of requests with a document as their Referer for it to be a navigation; frames have fewer.
const REFERRERS: usize = 5;

/// Minimum time between two navigations of a user.
const BETWEEN_NAVIGATIONS: Duration = Duration::from_secs(2);

/// A document of another site that is requested sooner is a frame of this page.
const BETWEEN_SITES: Duration = Duration::from_secs(4);

/// Imports the page in the HAR `text`.
pub(crate) fn import(
    text: &[u8],
    name: &str,
    options: &ImportOptions,
) -> Result<OpenedReplica, OpenError> {
    let mut notes = ImportNotes::default();
    let log = parse(text, options.limits.records, &mut notes)?.log;
    notes.format = format!(
        "HAR {} by {} {}",
        log.version.0, log.creator.name.0, log.creator.version.0
    )
    .trim()
    .to_owned();
    if log.entries.is_empty() {
        return Err(OpenError::NoPageLoad {
            reason: "the HAR has no entries".to_owned(),
        });
    }
    let groups = groups(&log, &mut notes);
    notes.pages = groups.len();
    let sizes = run_on_sizes(&log, &mut notes);
    let group_range = match options.page {
        None => 0..groups.len(),
        Some(page) => {
            let fault = OpenError::NoSuchPage {
                page,
                pages: groups.len(),
            };
            let index = page
                .checked_sub(1)
                .filter(|&index| index < groups.len())
                .ok_or(fault)?;
            index..index + 1
        }
    };
    let mut first = None;
    for index in group_range {
        let mut notes = notes.clone();
        if groups.len() > 1 {
            notes.remark(format!("page {} of {} imported", index + 1, groups.len()));
        }
        match import_group(&log, &groups[index], index, &sizes, name, notes, options) {
            Err(fault @ OpenError::NoPageLoad { .. }) => _ = first.get_or_insert(fault),
            outcome => return outcome,
        }
    }
    Err(first.unwrap_or_else(|| unreachable!("{} groups, none tried", groups.len())))
}

fn parse(text: &[u8], limit: usize, notes: &mut ImportNotes) -> Result<Har, OpenError> {
    match parse_bounded(text, limit, notes) {
        Err(OpenError::Json { .. }) if std::str::from_utf8(text).is_err() => {
            notes.remark("the file is not valid UTF-8: the invalid bytes were replaced");
            parse_bounded(String::from_utf8_lossy(text).as_bytes(), limit, notes)
        }
        outcome => outcome,
    }
}

fn parse_bounded(text: &[u8], limit: usize, notes: &mut ImportNotes) -> Result<Har, OpenError> {
    // Counted before anything is parsed: each page and entry needs far more memory than its minimum of two characters.
    let Shape { log } = first_value(text)?.0;
    for (what, count) in [("entries", log.entries.0), ("pages", log.pages.0)] {
        if count > limit {
            return Err(OpenError::Limit { what, limit });
        }
    }
    let (har, rest) = first_value(text)?;
    if !rest.trim_ascii().is_empty() {
        notes.remark("the text after the JSON was ignored");
    }
    Ok(har)
}

/// The JSON value at the start of `text`, and the rest.
fn first_value<T: DeserializeOwned>(text: &[u8]) -> Result<(T, &[u8]), OpenError> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter();
    match values.next() {
        Some(Ok(value)) => Ok((value, &text[values.byte_offset()..])),
        Some(Err(error)) => Err(fault(error.to_string())),
        None => Err(fault("empty".to_owned())),
    }
}

fn fault(what: String) -> OpenError {
    OpenError::Json { form: "HAR", what }
}

/// One page's entries, in the order of the file.
struct Group<'a> {
    page: Option<&'a Page>,
    entries: Vec<usize>,
}

fn groups<'a>(log: &'a Log, notes: &mut ImportNotes) -> Vec<Group<'a>> {
    let pages = log.pages.as_deref().unwrap_or_default();
    if pages.is_empty() {
        return cut_at_navigations(log, notes);
    }
    let mut groups: Vec<_> = pages
        .iter()
        .map(|page| Group {
            page: Some(page),
            entries: Vec::new(),
        })
        .collect();
    let mut index_of = HashMap::new();
    for (index, page) in pages.iter().enumerate() {
        index_of.entry(page.id.0.as_str()).or_insert(index);
    }
    for (index, entry) in log.entries.iter().enumerate() {
        match index_of.get(entry.pageref.0.as_str()) {
            Some(&page) => groups[page].entries.push(index),
            None if groups.len() == 1 => groups[0].entries.push(index),
            None => notes.skip("that belong to no page"),
        }
    }
    groups
}

/// Pages of a browsing session without page marks.
///
/// A page begins with a document that was requested as one, long enough after the last, and that enough requests have as their
/// Referer. An entry belongs to the page in its Referer, or to the last that began.
fn cut_at_navigations<'a>(log: &'a Log, notes: &mut ImportNotes) -> Vec<Group<'a>> {
    let entries = &log.entries;
    let mut order: Vec<usize> = (0..entries.len()).collect();
    let starts: Vec<_> = entries
        .iter()
        .map(|entry| timestamp(&entry.started_date_time.0))
        .collect();
    order.sort_by_key(|&index| starts[index]);
    let mut referrers = HashMap::<&str, usize>::new();
    for entry in entries {
        if let Some(referer) = header(&entry.request.headers, "referer") {
            *referrers.entry(without_fragment(referer)).or_default() += 1;
        }
    }
    let mut pages: Vec<(usize, &str)> = Vec::new();
    let mut page_of = HashMap::<&str, usize>::new();
    let mut group_of = vec![0; entries.len()];
    for (place, &index) in order.iter().enumerate() {
        let entry = &entries[index];
        let url = without_fragment(&entry.request.url.0);
        let referer = header(&entry.request.headers, "referer").map(without_fragment);
        if is_document(entry) {
            let since = pages.last().and_then(|&(last, _)| {
                Some(starts[index]?.duration_since(starts[last]?).unsigned_abs())
            });
            let same_site = pages
                .first()
                .is_none_or(|(_, first)| site(first) == site(url));
            let wait = if same_site {
                BETWEEN_NAVIGATIONS
            } else {
                BETWEEN_SITES
            };
            let from_page = referer.is_none_or(|referer| page_of.contains_key(referer));
            let enough = referrers.get(url).is_some_and(|&count| count >= REFERRERS);
            if pages.is_empty()
                || since.is_some_and(|since| since >= wait) && (from_page || same_site) && enough
            {
                page_of.insert(url, pages.len());
                pages.push((index, url));
                // The redirects that led to it, directly before.
                let mut target = url.to_owned();
                for &before in order[..place].iter().rev().take(8) {
                    let leads = redirect(&entries[before])
                        .is_some_and(|location| without_fragment(&location) == target);
                    if leads {
                        group_of[before] = pages.len() - 1;
                        target = without_fragment(&entries[before].request.url.0).to_owned();
                    }
                }
            }
        }
        let named = referer
            .and_then(|referer| page_of.get(referer))
            .filter(|_| !page_of.contains_key(url));
        group_of[index] = match named {
            Some(&page) => page,
            None => pages.len().saturating_sub(1),
        };
    }
    let count = pages.len().max(1);
    if count > 1 {
        notes.remark(format!(
            "the HAR marks no pages: split at navigations into {count}"
        ));
    }
    let mut groups: Vec<_> = (0..count)
        .map(|_| Group {
            page: None,
            entries: Vec::new(),
        })
        .collect();
    for (index, &group) in group_of.iter().enumerate() {
        groups[group].entries.push(index);
    }
    groups
}

/// True if requested as a document, with a document as the response.
fn is_document(entry: &Entry) -> bool {
    let accepted =
        header(&entry.request.headers, "accept").is_none_or(|accept| accept.contains("text/html"));
    let is_html = entry
        .response
        .content
        .mime_type
        .0
        .to_ascii_lowercase()
        .contains("html");
    accepted
        && is_html
        && entry
            .response
            .status
            .count()
            .is_some_and(|status| (200..300).contains(&status))
}

fn redirect(entry: &Entry) -> Option<String> {
    let status = entry.response.status.count()?;
    let location =
        header(&entry.response.headers, "location").or(entry.response.redirect_url.some())?;
    let base = Url::parse(&entry.request.url.0).ok()?;
    (300..400)
        .contains(&status)
        .then(|| base.join(location).ok().map(String::from))?
}

/// The last two labels of the host, an approximation of its owner.
fn site(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let mut labels: Vec<_> = url.host_str()?.rsplit('.').take(2).collect();
    labels.reverse();
    Some(labels.join("."))
}

/// Corrects the sizes of hdrgrab, which writes the bytes of the connection so far as a body's size.
fn run_on_sizes(log: &Log, notes: &mut ImportNotes) -> HashMap<usize, u64> {
    let mut sizes = HashMap::new();
    if log.creator.name.0 != "hdrgrab" {
        return sizes;
    }
    notes.remark(
        "hdrgrab's body sizes accumulate over a connection: the size of each body was computed",
    );
    let mut carried = HashMap::<&str, u64>::new();
    for (index, entry) in log.entries.iter().enumerate() {
        if let (Some(connection), Some(size)) =
            (entry.connection.some(), entry.response.body_size.count())
        {
            let before = carried.insert(connection, size).unwrap_or(0);
            sizes.insert(index, size.checked_sub(before).unwrap_or(size));
        }
    }
    sizes
}

fn import_group(
    log: &Log,
    group: &Group<'_>,
    index: usize,
    sizes: &HashMap<usize, u64>,
    name: &str,
    mut notes: ImportNotes,
    options: &ImportOptions,
) -> Result<OpenedReplica, OpenError> {
    let page_started = group
        .page
        .and_then(|page| timestamp(&page.started_date_time.0));
    let mut recorded = Vec::new();
    for &index in &group.entries {
        match parse_entry(
            &log.entries[index],
            page_started,
            sizes.get(&index).copied(),
            &mut notes,
        ) {
            Ok(exchange) => recorded.push(exchange),
            Err(reason) => notes.skip(reason),
        }
    }
    if recorded.is_empty() {
        return Err(OpenError::NoPageLoad {
            reason: format!("none of {} entries was on the wire", group.entries.len()),
        });
    }
    let title = group
        .page
        .map(|page| page.title.0.as_str())
        .unwrap_or_default();
    let timing = |number: Option<Number>| {
        number
            .and_then(|number| millis(number.0?))
            .filter(|duration| !duration.is_zero())
    };
    let timings = group.page.map(|page| &page.page_timings);
    let page = RecordedPage {
        name: if index == 0 {
            name.to_owned()
        } else {
            format!("{name}-{}", index + 1)
        },
        source: format!(
            "{}{}{title}; licence not recorded",
            notes.format,
            if title.is_empty() { "" } else { ", page " }
        ),
        url: Some(title.to_owned()),
        started: page_started,
        dom_content_loaded: timing(timings.map(|timings| timings.on_content_load)),
        load: timing(timings.map(|timings| timings.on_load)),
    };
    assemble(page, recorded, notes, &options.limits)
}

/// Parses an entry; the error is the reason for skipping it.
fn parse_entry(
    entry: &Entry,
    page_started: Option<Timestamp>,
    own_size: Option<u64>,
    notes: &mut ImportNotes,
) -> Result<RecordedExchange, &'static str> {
    let url = Url::parse(&entry.request.url.0).map_err(|_| "with an invalid URL")?;
    match url.scheme() {
        "http" | "https" if url.has_host() => {}
        "data" => return Err("data: URLs"),
        "blob" => return Err("blob: URLs"),
        "ws" | "wss" => return Err(WEBSOCKETS),
        _ => return Err("URLs that are not http or https"),
    }
    let (request, response) = (&entry.request, &entry.response);
    let method = http::Method::from_bytes(request.method.0.to_ascii_uppercase().as_bytes())
        .unwrap_or(http::Method::GET);
    let status = response
        .status
        .count()
        .and_then(|status| u16::try_from(status).ok());
    let status = match status {
        Some(101) => return Err(WEBSOCKETS),
        Some(status @ 100..=999) => status,
        _ => return Err("without a response (blocked, failed or aborted)"),
    };
    if entry.web_socket_messages.is_some() {
        return Err(WEBSOCKETS);
    }
    if method == http::Method::CONNECT {
        return Err("CONNECT tunnels");
    }
    if is_from_cache(entry) {
        return Err("from the browser's cache");
    }
    if response.error.some().is_some() {
        return Err("without a response (blocked, failed or aborted)");
    }
    let version = response.http_version.0.to_ascii_lowercase();
    let is_http_1 = version.starts_with("http/1") || version.starts_with("1.");
    let own =
        |header: &&Header| is_http_1 || !matches!(header.name.0.as_str(), "status" | "version");
    let fields = |headers: &Fields| {
        let headers = headers.0.iter();
        let pairs = headers
            .filter(own)
            .map(|header| (header.name.0.clone(), header.value.0.clone()));
        pairs.collect::<Vec<_>>()
    };
    let timings = &entry.timings;
    let phase = |parts: &[Number]| {
        let durations: Vec<_> = parts.iter().filter_map(|part| millis(part.0?)).collect();
        (!durations.is_empty()).then(|| durations.into_iter().sum())
    };
    let started = timestamp(&entry.started_date_time.0);
    // WebPageTest's own start is the time of sending; `_all_start` is the start of the whole exchange.
    let began = entry
        .all_start
        .0
        .and_then(millis)
        .and_then(|offset| page_started?.checked_add(offset).ok());
    Ok(RecordedExchange {
        method,
        is_http_10: version.ends_with("1.0"),
        status,
        reason: response.status_text.0.clone(),
        request_fields: fields(&request.headers),
        response_fields: fields(&response.headers),
        started: began
            .filter(|&began| started.is_none_or(|started| began < started))
            .or(started),
        queued: phase(&[timings.blocked, timings.dns, timings.connect]),
        wait: phase(&[timings.send, timings.wait]),
        receive: phase(&[timings.receive]),
        address: entry
            .server_ip_address
            .some()
            .or(entry.ip_addr.some())
            .and_then(|address| address.trim_matches(['[', ']']).parse().ok()),
        transferred: own_size.or_else(|| transferred(entry)),
        text: text(entry, notes),
        content_type: response
            .content
            .mime_type
            .some()
            .or(entry.content_type.some())
            .unwrap_or_default()
            .to_owned(),
        hint: entry.resource_type.some().map(str::to_owned),
        initiator_url: initiator_url(entry),
        url,
    })
}

/// Chrome has a field for it. Without the field: a body size below -1, or of 0 bytes without send and wait times.
fn is_from_cache(entry: &Entry) -> bool {
    let (body, content) = (
        entry.response.body_size.0.unwrap_or(-1.0),
        entry.response.content.size.0.unwrap_or(-1.0),
    );
    let absent = |number: Number| number.0.is_none_or(|number| number < 0.0);
    let unsent = absent(entry.timings.send) && absent(entry.timings.wait);
    entry.from_cache.some().is_some() || body < -1.0 || body == 0.0 && content >= 0.0 && unsent
}

/// The size of the body on the wire, from the most reliable field.
fn transferred(entry: &Entry) -> Option<u64> {
    let response = &entry.response;
    let decoded = response.content.size.count();
    let saved = response
        .content
        .compression
        .count()
        .filter(|&saved| saved > 0);
    let whole = response.transfer_size.count().filter(|&size| size > 0);
    let of_whole =
        whole.map(|size| size.saturating_sub(response.headers_size.count().unwrap_or(0)));
    // For some time Chrome wrote the decoded size here, except for HTTP/1.1.
    let body = response
        .body_size
        .count()
        .filter(|&size| size > 0 && !(saved.is_some() && Some(size) == decoded));
    let object = entry.object_size.count().filter(|&size| size > 0);
    let packed = decoded.map(|size| size.saturating_sub(saved.unwrap_or(0)));
    body.or(of_whole).or(object).or(packed)
}

/// The decoded body, if it is complete.
fn text(entry: &Entry, notes: &mut ImportNotes) -> Option<Vec<u8>> {
    let content = &entry.response.content;
    let text = content.text.some()?;
    let bytes = if content.encoding.0.eq_ignore_ascii_case("base64") {
        let clean: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        data_encoding::BASE64.decode(clean.as_bytes()).ok()
    } else {
        Some(in_charset(text, &content.mime_type.0))
    };
    let Some(bytes) = bytes else {
        notes.remark("some bodies were marked as base64 and were not");
        return None;
    };
    let size = content
        .size
        .count()
        .filter(|&size| size > 0)
        .map_or(bytes.len(), |size| size as usize);
    if bytes.len() < size / 2 || bytes.len() / 2 > size {
        notes.remark("some bodies do not match their recorded sizes and are filler");
        return None;
    }
    Some(bytes)
}

/// HAR texts are Unicode, and the wire had them in their own charset, of which only Latin-1 is supported.
fn in_charset(text: &str, mime_type: &str) -> Vec<u8> {
    let mime_type = mime_type.to_ascii_lowercase();
    let is_latin = ["iso-8859-1", "latin1", "windows-1252", "us-ascii"]
        .iter()
        .any(|name| mime_type.contains(name));
    let latin = || {
        text.chars()
            .map(|c| u8::try_from(u32::from(c)).ok())
            .collect::<Option<Vec<u8>>>()
    };
    is_latin
        .then(latin)
        .flatten()
        .unwrap_or_else(|| text.as_bytes().to_vec())
}

/// The URL of the request's initiator: in the recorder's object, or that object as a string.
fn initiator_url(entry: &Entry) -> Option<String> {
    let detail = || {
        serde_json::from_str::<HarInitiator>(entry.initiator_detail.some()?)
            .ok()?
            .0
    };
    entry.initiator.0.clone().or_else(detail)
}

fn header<'a>(headers: &'a Fields, name: &str) -> Option<&'a str> {
    let mut headers = headers.0.iter();
    headers
        .find(|header| header.name.0.eq_ignore_ascii_case(name))
        .map(|header| header.value.0.as_str())
}

/// A date and time with its offset; without one, UTC is assumed.
pub(crate) fn timestamp(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse()
        .ok()
        .or_else(|| format!("{text}Z").parse().ok())
}

/// A duration of milliseconds with microseconds; `None` if it is negative or not a number.
pub(crate) fn millis(number: f64) -> Option<Duration> {
    (0.0..1e12)
        .contains(&number)
        .then(|| Duration::from_micros((number * 1000.0).round() as u64))
}
