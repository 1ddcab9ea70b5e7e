//! Assembles a replica from the exchanges of a JSON recording: heads, bodies, kinds, initiators.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use url::Url;

use crate::coding;
use crate::error::OpenError;
use crate::graph::builder::location;
use crate::head::{self, Head};
use crate::import::notes::ImportNotes;
use crate::import::result::OpenedReplica;
use crate::limits::Limits;
use crate::replica::archive::LONGEST;
use crate::replica::filler::filler;
use crate::replica::observation::Observation;
use crate::replica::{Exchange, Initiator, Kind, Replica, without_fragment};

/// One exchange as recorded, with header lists instead of heads.
#[derive(Clone, Debug)]
pub(crate) struct RecordedExchange {
    pub(crate) url: Url,
    pub(crate) method: http::Method,
    pub(crate) is_http_10: bool,
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) request_fields: Vec<(String, String)>,
    pub(crate) response_fields: Vec<(String, String)>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) queued: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) receive: Option<Duration>,
    pub(crate) address: Option<IpAddr>,
    /// Bytes of the body on the wire, used without a Content-Length.
    pub(crate) transferred: Option<u64>,
    /// The body without its content coding, if it was recorded.
    pub(crate) text: Option<Vec<u8>>,
    pub(crate) content_type: String,
    /// The recorder's name of the kind.
    pub(crate) hint: Option<String>,
    pub(crate) initiator_url: Option<String>,
}

/// The page as recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedPage {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) url: Option<String>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) dom_content_loaded: Option<Duration>,
    pub(crate) load: Option<Duration>,
}

/// Assembles the replica.
///
/// # Errors
///
/// [`OpenError::NoPageLoad`] if none of `recorded` is a document; [`OpenError::Limit`] past `limits`.
pub(crate) fn assemble(
    page: RecordedPage,
    mut recorded: Vec<RecordedExchange>,
    mut notes: ImportNotes,
    limits: &Limits,
) -> Result<OpenedReplica, OpenError> {
    if recorded.is_empty() {
        return Err(OpenError::NoPageLoad {
            reason: "no exchange remains after import".to_owned(),
        });
    }
    // Recorders list entries by their ends, or by connections; the page load model needs them by their starts.
    if recorded.iter().all(|recorded| recorded.started.is_some()) {
        recorded.sort_by_key(|recorded| recorded.started);
    }
    let origin = page
        .started
        .into_iter()
        .chain(recorded.iter().filter_map(|recorded| recorded.started))
        .min();
    let mut exchanges = Vec::with_capacity(recorded.len());
    let mut initiator_urls = Vec::with_capacity(recorded.len());
    let mut remaining_filler = limits.filler_bytes;
    for mut recorded in recorded {
        let initiator_url = recorded.initiator_url.take();
        let started = recorded
            .started
            .zip(origin)
            .and_then(|(at, origin)| Duration::try_from(at.duration_since(origin)).ok());
        let exchange = exchange(recorded, started, &mut remaining_filler, &mut notes, limits)?;
        if exchange
            .request_head
            .len()
            .max(exchange.response_head.len())
            > limits.head_bytes
        {
            return Err(OpenError::Limit {
                what: "bytes in a literal head",
                limit: limits.head_bytes,
            });
        }
        exchanges.push(exchange);
        initiator_urls.push(initiator_url);
    }
    kinds_of_redirects(&mut exchanges);
    let missing = missing_page(&exchanges);
    let start = document(&exchanges, page.url.as_deref()).ok_or_else(|| OpenError::NoPageLoad {
        reason: match &missing {
            Some(url) => format!(
                "the document {url}, which most requests name as their Referer, was not recorded"
            ),
            None => "no response is a document".to_owned(),
        },
    })?;
    // A frame of a page that was not recorded is not a page.
    let referer =
        Head::parse(&exchanges[start].request_head).and_then(|head| head.value("referer"));
    if let Some(url) =
        missing.filter(|url| referer.is_some_and(|referer| without_fragment(referer) == url))
    {
        let reason = format!(
            "the document {url}, which most requests name as their Referer, was not recorded"
        );
        return Err(OpenError::NoPageLoad { reason });
    }
    initiators(&mut exchanges, &initiator_urls, start);
    notes.count(&exchanges);
    let replica = Replica {
        name: page.name,
        source: page.source,
        start,
        exchanges,
        recorded: origin,
        dom_content_loaded: within_a_file(page.dom_content_loaded),
        load: within_a_file(page.load),
        paints: crate::replica::Paints::default(),
        failures: Vec::new(),
    };
    Ok(OpenedReplica { replica, notes })
}

fn exchange(
    recorded: RecordedExchange,
    started: Option<Duration>,
    remaining_filler: &mut usize,
    notes: &mut ImportNotes,
    limits: &Limits,
) -> Result<Exchange, OpenError> {
    let request_head = request_head(&recorded);
    let response_head = response_head(&recorded);
    let kind = kind(&recorded);
    let (response_head, body, body_is_real) = body(
        &recorded,
        kind,
        response_head,
        remaining_filler,
        notes,
        limits,
    )?;
    Ok(Exchange {
        url: recorded.url,
        method: recorded.method,
        address: recorded.address,
        request_head,
        response_head,
        body,
        body_is_real,
        kind,
        initiator: Initiator::Unknown,
        started: within_a_file(started),
        queued: within_a_file(recorded.queued),
        wait: within_a_file(recorded.wait),
        receive: within_a_file(recorded.receive),
        observed: Observation::default(),
    })
}

/// `seconds`, limited to the maximum in a file; negative values are zero.
pub(crate) fn seconds(seconds: f64) -> Duration {
    let nanos = seconds * 1e9;
    // With nanoseconds, as in files.
    Duration::from_nanos(nanos.round() as u64).min(LONGEST)
}

/// Limits a time to the maximum in a replica's file: clocks of recorders may jump by millennia.
fn within_a_file(time: Option<Duration>) -> Option<Duration> {
    time.map(|time| time.min(LONGEST))
}

fn request_head(recorded: &RecordedExchange) -> Bytes {
    let mut fields: Vec<(&str, &str)> = plain(&recorded.request_fields).collect();
    // SPDY and HTTP/2 have the host in another field.
    let authority = head::authority(&recorded.url);
    if !fields
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        fields.insert(0, ("Host", &authority));
    }
    head::synthesize(
        &format!(
            "{} {} HTTP/1.1",
            recorded.method,
            head::target(&recorded.url)
        ),
        fields,
    )
}

fn response_head(recorded: &RecordedExchange) -> Bytes {
    let version = if recorded.is_http_10 {
        "HTTP/1.0"
    } else {
        "HTTP/1.1"
    };
    let usual = || {
        http::StatusCode::from_u16(recorded.status)
            .ok()?
            .canonical_reason()
    };
    let reason = if recorded.reason.is_empty() {
        usual().unwrap_or_default()
    } else {
        &recorded.reason
    };
    head::synthesize(
        &format!("{version} {} {reason}", recorded.status),
        plain(&recorded.response_fields),
    )
}

/// The fields for HTTP/1.1: without pseudo-fields and invalid names; joined values are split again.
fn plain(fields: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    fields
        .iter()
        .filter(|(name, _)| http::HeaderName::from_bytes(name.as_bytes()).is_ok())
        // Chrome joins the values of a repeated field by line ends, older SPDY recordings by NULs.
        .flat_map(|(name, value)| {
            value
                .split(['\n', '\0'])
                .map(move |value| (name.as_str(), value.trim()))
        })
}

fn field<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields
        .iter()
        .find(|(field, _)| field.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

fn kind(recorded: &RecordedExchange) -> Kind {
    let accept = field(&recorded.request_fields, "accept").unwrap_or_default();
    let content_type =
        field(&recorded.response_fields, "content-type").unwrap_or(&recorded.content_type);
    let hint = if let Some(hint) = &recorded.hint {
        Some(hint.as_str())
    } else if field(&recorded.request_fields, "x-requested-with").is_some() {
        Some("xhr")
    } else if accept.starts_with("image/") {
        Some("image")
    } else if accept.starts_with("text/css") {
        Some("stylesheet")
    } else if !accept.is_empty()
        && !accept.contains("html")
        && Kind::from_content_type(content_type) == Some(Kind::Document)
    {
        // A browser that requests a document accepts HTML. This is a script's own request, or an error page instead of a script.
        Some(if recorded.url.path().ends_with(".js") {
            "script"
        } else {
            "xhr"
        })
    } else {
        None
    };
    Kind::of(Some(content_type), &recorded.url, hint)
}

/// The body as on the wire, recorded or filler, and the head. The head's length is corrected where filler cannot match it.
fn body(
    recorded: &RecordedExchange,
    kind: Kind,
    response_head: Bytes,
    remaining_filler: &mut usize,
    notes: &mut ImportNotes,
    limits: &Limits,
) -> Result<(Bytes, Bytes, bool), OpenError> {
    let Some(head) = Head::parse(&response_head) else {
        unreachable!("a synthesized head has a first line")
    };
    if !head::has_body(&recorded.method, recorded.status) {
        return Ok((response_head, Bytes::new(), true));
    }
    let codings = head.content_codings();
    let announced = head.content_length();
    let size = announced.or(recorded.transferred).unwrap_or(0);
    let size = usize::try_from(size)
        .ok()
        .filter(|&size| size <= limits.body_bytes);
    let size = size.ok_or(OpenError::Limit {
        what: "bytes in a body",
        limit: limits.body_bytes,
    })?;
    if let Some(text) = &recorded.text {
        let target = (announced.is_some() || recorded.transferred.is_some()).then_some(size);
        if let Some(body) = coded(text, &codings, target) {
            if body.len() > limits.body_bytes {
                return Err(OpenError::Limit {
                    what: "bytes in a body",
                    limit: limits.body_bytes,
                });
            }
            let length = body.len() as u64;
            if announced.is_none_or(|announced| announced == length) {
                return Ok((response_head, body, true));
            }
            notes.remark("some bodies could not be encoded to their recorded length again: their Content-Length was changed");
            let response_head =
                head::with_field(&response_head, "Content-Length", Some(&length.to_string()));
            return Ok((response_head, body, true));
        }
        notes.remark("bodies with unknown content codings are filler");
    }
    if size == 0 {
        return Ok((response_head, Bytes::new(), true));
    }
    *remaining_filler = remaining_filler.checked_sub(size).ok_or(OpenError::Limit {
        what: "bytes of filler",
        limit: limits.filler_bytes,
    })?;
    let body = filler(kind, &codings, size, recorded.url.as_str());
    Ok((response_head, body, false))
}

/// `text` with `codings`, with `target` bytes if possible; `None` if a coding is not supported.
fn coded(text: &[u8], codings: &[String], target: Option<usize>) -> Option<Bytes> {
    let mut body = text.to_vec();
    for (index, coding) in codings.iter().enumerate() {
        let target = target.filter(|_| index + 1 == codings.len());
        body = coding::encode(&body, coding, target).ok()?;
    }
    Some(body.into())
}

/// A redirect has the kind of its target, if that was recorded.
pub(crate) fn kinds_of_redirects(exchanges: &mut [Exchange]) {
    let mut kind_of = HashMap::<String, Kind>::new();
    for exchange in exchanges.iter_mut().rev() {
        if let Some(target) = location(exchange) {
            if let Some(&kind) = kind_of.get(&target) {
                exchange.kind = kind;
            } else if exchange.kind == Kind::Document {
                let accept =
                    Head::parse(&exchange.request_head).and_then(|head| head.value("accept"));
                let accepts_html = accept.is_none_or(|accept| accept.contains("html"));
                exchange.kind = if accepts_html {
                    Kind::Document
                } else {
                    Kind::Other
                };
            }
        }
        kind_of.insert(exchange.key().to_owned(), exchange.kind);
    }
}

/// The page's own document: the first successful response, at the page's URL if that was recorded and successful.
pub(crate) fn document(exchanges: &[Exchange], url: Option<&str>) -> Option<usize> {
    let answers = |exchange: &Exchange| {
        exchange
            .status()
            .is_some_and(|status| (200..300).contains(&status))
    };
    let is_document =
        |exchange: &Exchange| exchange.kind == Kind::Document && location(exchange).is_none();
    let position = |matches: &dyn Fn(&Exchange) -> bool| exchanges.iter().position(matches);
    url.and_then(|url| Url::parse(url).ok())
        .and_then(|url| {
            position(&|exchange| {
                exchange.key() == without_fragment(url.as_str())
                    && is_document(exchange)
                    && answers(exchange)
            })
        })
        .or_else(|| position(&|exchange| is_document(exchange) && answers(exchange)))
        .or_else(|| position(&is_document))
}

/// The URL in most Referers, if it has no exchange.
fn missing_page(exchanges: &[Exchange]) -> Option<String> {
    let mut counts = HashMap::<String, usize>::new();
    let mut most = (0, String::new());
    let mut total = 0;
    for exchange in exchanges {
        let Some(referer) =
            Head::parse(&exchange.request_head).and_then(|head| head.value("referer"))
        else {
            continue;
        };
        let referer = without_fragment(referer);
        total += 1;
        let count = counts.entry(referer.to_owned()).or_default();
        *count += 1;
        if *count > most.0 {
            most = (*count, referer.to_owned());
        }
    }
    let recorded = |url: &str| exchanges.iter().any(|exchange| exchange.key() == url);
    (most.0 * 2 > total && !recorded(&most.1)).then_some(most.1)
}

fn initiators(exchanges: &mut [Exchange], initiator_urls: &[Option<String>], start: usize) {
    let mut first_of = HashMap::<String, usize>::new();
    let mut redirected = HashMap::<String, usize>::new();
    for (index, exchange) in exchanges.iter_mut().enumerate() {
        let initiator = initiator_urls[index]
            .as_deref()
            .and_then(|url| first_of.get(without_fragment(url)));
        exchange.initiator = match (redirected.remove(exchange.key()), initiator) {
            (Some(index), _) => Initiator::Redirect { index },
            (None, _) if index == start => Initiator::Navigation,
            (None, Some(&index)) => Initiator::Resource {
                index,
                at_byte: None,
            },
            (None, None) => Initiator::Unknown,
        };
        if let Some(target) = location(exchange) {
            redirected.entry(target).or_insert(index);
        }
        first_of.entry(exchange.key().to_owned()).or_insert(index);
    }
}
