//! Finds properties that make a replica fail when it is served or loaded. No finding is an error of the file itself.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use crate::coding::{self, CodingError};
use crate::graph::from_replica::references_of;
use crate::head::{self, Head};
use crate::limits::DECODED_BODY_BYTES;
use crate::replica::partial_content::{ContentRange, Parts};
use crate::replica::{Exchange, Initiator, Kind, Replica, without_fragment};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// Information.
    Note,
    /// A load will differ from the recording.
    Warning,
    /// The replica cannot be loaded.
    Error,
}

/// A finding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// The index of the exchange; `None` for the whole replica.
    pub exchange: Option<usize>,
    /// The finding, one sentence without a full stop.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        match self.exchange {
            Some(index) => write!(f, "{severity}: exchange {index}: {}", self.what),
            None => write!(f, "{severity}: {}", self.what),
        }
    }
}

/// All findings for `replica`, in the order of its exchanges; findings for the whole replica are last.
pub fn check(replica: &Replica) -> Vec<Finding> {
    let mut findings = Vec::new();
    let count = replica.exchanges.len();
    if replica.start >= count {
        let what = format!("start is exchange {} of {count}", replica.start);
        findings.push(Finding {
            severity: Severity::Error,
            exchange: None,
            what,
        });
        return findings;
    }
    let mut seen = HashSet::new();
    for index in 0..count {
        check_exchange(replica, index, &mut seen, &mut findings);
    }
    check_parts(replica, &mut findings);
    let mut of_all = |severity, what| {
        findings.push(Finding {
            severity,
            exchange: None,
            what,
        });
    };
    let document = replica.document();
    if document.kind != Kind::Document {
        of_all(
            Severity::Error,
            format!(
                "kind of the page's document is {}, expected document",
                document.kind
            ),
        );
    }
    if !document
        .status()
        .is_some_and(|status| (200..300).contains(&status))
    {
        of_all(
            Severity::Warning,
            format!(
                "status of the page's document is {:?}, expected 200 to 299",
                document.status().unwrap_or_default()
            ),
        );
    }
    let guesses = count_guesses(replica);
    if guesses > 0 {
        of_all(
            Severity::Note,
            format!(
                "{guesses} exchanges have no text, initiator or Referer that names them; their position is a guess"
            ),
        );
    }
    if !replica.failures.is_empty() {
        let count = replica.failures.len();
        of_all(
            Severity::Note,
            format!(
                "{count} requests of the recorded load got no response, and get none in a replay"
            ),
        );
    }
    let refused = |exchange: &&Exchange| exchange.observed.refused.is_some();
    let refused = replica.exchanges.iter().filter(refused).count();
    if refused > 0 {
        of_all(
            Severity::Note,
            format!(
                "{refused} responses did not reach the page, or not completely, while it was recorded"
            ),
        );
    }
    let filler: Vec<_> = replica
        .exchanges
        .iter()
        .filter(|exchange| !exchange.body_is_real)
        .collect();
    if !filler.is_empty() {
        let bytes: usize = filler.iter().map(|exchange| exchange.body.len()).sum();
        of_all(
            Severity::Note,
            format!(
                "{} of {count} bodies ({bytes} bytes) are filler",
                filler.len()
            ),
        );
    }
    findings
}

/// Counts exchanges that no recorded text or initiator names: the graph guesses their position.
fn count_guesses(replica: &Replica) -> usize {
    let mut is_referenced = vec![false; replica.exchanges.len()];
    references_of(&replica.exchanges, replica.start)
        .into_iter()
        .for_each(|index| is_referenced[index] = true);
    let urls: HashSet<&str> = replica.exchanges.iter().map(Exchange::key).collect();
    let is_guess = |(index, exchange): (usize, &Exchange)| {
        let referer = Head::parse(&exchange.request_head).and_then(|head| head.value("referer"));
        let referred = referer.is_some_and(|referer| urls.contains(without_fragment(referer)));
        !is_referenced[index] && exchange.initiator == Initiator::Unknown && !referred
    };
    replica
        .exchanges
        .iter()
        .enumerate()
        .filter(|&each| is_guess(each))
        .count()
}

/// Finds representations of which a replica has only parts (206).
fn check_parts(replica: &Replica, findings: &mut Vec<Finding>) {
    let gets = replica.exchanges.iter().enumerate();
    let gets = gets.filter(|(_, exchange)| exchange.method == http::Method::GET);
    let of_status = |status| gets.clone().filter(move |it| it.1.status() == Some(status));
    let whole: HashSet<&str> = of_status(200).map(|(_, exchange)| exchange.key()).collect();
    let mut parts: BTreeMap<&str, (usize, Option<Parts>)> = BTreeMap::new();
    for (index, exchange) in of_status(206) {
        let part = Parts::of(exchange);
        let (_, merged) = parts
            .entry(exchange.key())
            .or_insert_with(|| (index, part.clone()));
        if let (Some(merged), Some(part)) = (merged, &part) {
            merged.add(part);
        }
    }
    for (url, (index, parts)) in parts {
        if whole.contains(url) {
            continue;
        }
        let what = match parts {
            None => {
                "invalid Content-Range of a 206: it is the response to requests with a Range only"
                    .to_owned()
            }
            Some(mut parts) => {
                parts.merge();
                if parts.whole().is_some() {
                    continue;
                }
                format!(
                    "only {parts} were recorded: a request for another range, or without a Range, gets 404"
                )
            }
        };
        findings.push(Finding {
            severity: Severity::Warning,
            exchange: Some(index),
            what,
        });
    }
}

/// The identity of a recorded request: method, URL, and the range of the response.
type RequestKey<'a> = (&'a http::Method, &'a str, Option<ContentRange>);

fn check_exchange<'a>(
    replica: &'a Replica,
    index: usize,
    seen: &mut HashSet<RequestKey<'a>>,
    findings: &mut Vec<Finding>,
) {
    let exchange = &replica.exchanges[index];
    let mut find = |severity, what| {
        findings.push(Finding {
            severity,
            exchange: Some(index),
            what,
        });
    };
    let url = &exchange.url;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        find(
            Severity::Error,
            format!("URL {url} is not http or https with a host"),
        );
    }
    if !seen.insert((&exchange.method, exchange.key(), ContentRange::of(exchange))) {
        find(
            Severity::Note,
            format!(
                "{} {url} is a duplicate; a server responds with the first",
                exchange.method
            ),
        );
    }
    for (which, head) in [
        ("request", &exchange.request_head),
        ("response", &exchange.response_head),
    ] {
        if head::head_len(head) != Some(head.len()) {
            find(
                Severity::Error,
                format!("the {which} head does not end with a blank line"),
            );
        }
    }
    let request_line = format!("{} {} ", exchange.method, head::target(url));
    if Head::parse(&exchange.request_head)
        .is_none_or(|head| !head.line().starts_with(request_line.as_bytes()))
    {
        find(
            Severity::Warning,
            format!("the request line does not match {url}"),
        );
    }
    let Some(head) = Head::parse(&exchange.response_head) else {
        return;
    };
    let Some(status) = head.status() else {
        find(Severity::Error, "the response has no status".to_owned());
        return;
    };
    let (length, has_body) = (
        exchange.body.len(),
        head::has_body(&exchange.method, status),
    );
    if !has_body && length > 0 {
        find(
            Severity::Warning,
            format!(
                "body has {length} bytes, expected none for {status} to {}",
                exchange.method
            ),
        );
    }
    if has_body
        && !head.is_chunked()
        && head.value("content-length").is_some()
        && head.content_length() != Some(length as u64)
    {
        let announced = head.value("content-length").unwrap_or_default();
        find(
            Severity::Warning,
            format!("body has {length} bytes, expected {announced} by Content-Length"),
        );
    }
    let codings = head.content_codings();
    if length > 0 && !codings.is_empty() {
        match coding::decode(&exchange.body, &codings, DECODED_BODY_BYTES) {
            Err(CodingError::Unknown(coding)) => find(
                Severity::Note,
                format!("unknown content coding {coding:?}: the body is not checked"),
            ),
            Err(fault) => find(Severity::Warning, fault.to_string()),
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use bytes::Bytes;

    fn findings(change: impl FnOnce(&mut Replica)) -> String {
        let mut replica = builtin::portal();
        change(&mut replica);
        check(&replica)
            .iter()
            .map(|finding| format!("{finding}\n"))
            .collect()
    }

    #[test]
    fn the_shipped_replicas_are_clean() {
        assert_eq!(check(&builtin::flags()), []);
        assert_eq!(check(&builtin::portal()), []);
    }

    #[test]
    fn partially_recorded_media_is_listed() {
        let part = |range: &str, body: &'static str| {
            let url = "http://a.test/film".parse().expect("the URL is valid");
            let mut exchange = Exchange::synthetic(url, Kind::Media, "video/mp4", body);
            let length = body.len().to_string();
            let fields = [
                ("Content-Range", range),
                ("ETag", "\"a\""),
                ("Content-Length", &length),
            ];
            exchange.response_head = head::synthesize("HTTP/1.1 206 Partial Content", fields);
            exchange
        };
        let with = |parts: Vec<Exchange>| findings(|replica| replica.exchanges.extend(parts));
        let whole = with(vec![
            part("bytes 5-9/10", "56789"),
            part("bytes 0-4/10", "01234"),
        ]);
        assert!(
            !whole.contains("film") && !whole.contains("were recorded"),
            "{whole}"
        );
        let partial = with(vec![part("bytes 5-9/10", "56789")]);
        assert!(
            partial.contains("warning: exchange 44: only bytes 5-9 of 10 were recorded"),
            "{partial}"
        );
        let unreadable = with(vec![part("bytes ?", "56789")]);
        assert!(
            unreadable.contains("warning: exchange 44: invalid Content-Range of a 206"),
            "{unreadable}"
        );
        let twice = with(vec![part("bytes 0-1/2", "01"), part("bytes 0-1/2", "01")]);
        assert!(
            twice.contains("exchange 45: GET http://a.test/film is a duplicate"),
            "{twice}"
        );
    }

    #[test]
    fn every_problem_is_reported() {
        let cut =
            findings(|replica| replica.exchanges[0].body = replica.exchanges[0].body.slice(..100));
        assert!(
            cut.contains("exchange 0: body has 100 bytes, expected 5427 by Content-Length"),
            "{cut}"
        );
        assert!(
            cut.contains("exchange 0: cannot decode body as gzip"),
            "{cut}"
        );
        assert!(
            findings(|replica| replica.start = 44).contains("error: start is exchange 44 of 44")
        );
        assert!(
            findings(|replica| replica.start = 2)
                .contains("error: kind of the page's document is image")
        );
        assert!(
            findings(|replica| replica.exchanges[3] = replica.exchanges[2].clone())
                .contains("exchange 3: GET http")
        );
        assert!(
            findings(|replica| replica.exchanges[3].body_is_real = false)
                .contains("note: 1 of 44 bodies")
        );
        let failed = findings(|replica| {
            let failure = crate::replica::observation::Failure {
                method: "GET".to_owned(),
                url: "http://a.test/".to_owned(),
                error: "net::ERR_FAILED".to_owned(),
                started: None,
            };
            replica.failures = vec![failure];
            replica.exchanges[3].observed.refused = Some("blocked".to_owned());
        });
        assert!(
            failed.contains("note: 1 requests of the recorded load got no response"),
            "{failed}"
        );
        assert!(
            failed.contains("note: 1 responses did not reach the page"),
            "{failed}"
        );
        assert!(
            findings(|replica| replica.exchanges[3].request_head =
                Bytes::from_static(b"GET /x HTTP/1.1\r\n"))
            .contains("blank line")
        );
        assert!(
            findings(|replica| replica.exchanges[3].method = http::Method::HEAD)
                .contains("expected none for 200 to HEAD")
        );
    }
}
