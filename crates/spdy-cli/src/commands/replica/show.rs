//! `spdy replica show`: prints what is in a recorded page, as text or JSON.

use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;
use spdy_page::graph::{Node, PageGraph, Trigger, WaitsFor};
use spdy_page::observation::{Failure, Observation};
use spdy_page::open::ImportOptions;
use spdy_page::replica::{Exchange, Replica};
use spdy_page::summary::{HostSummary, Summary};

use crate::args::open_replica;
use crate::outcome::Outcome;
use crate::output::{BOLD, Cell, DIM, Printer, Table, WARN, bar, escape};

/// Columns of the bars.
const BAR: usize = 20;
/// Characters of a URL in a table.
const URL_CHARS: usize = 100;

/// Arguments of `spdy replica show`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A shipped page (such as flags, portal, mineki), a replica, a .har or a .warc file
    #[arg(value_name = "REPLICA")]
    replica: String,

    /// List every resource, and what makes a browser request it
    #[arg(long)]
    resources: bool,

    /// Print everything as one JSON object
    #[arg(long)]
    json: bool,
}

/// A recorded page.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ReplicaReport {
    /// Name of the replica.
    name: String,
    /// Its origin and licence.
    source: String,
    /// The URL of the page.
    url: String,
    /// When it was recorded (RFC 3339); `null` if it is unknown.
    recorded: Option<String>,
    /// Time of DOMContentLoaded in the recorded load.
    dom_content_loaded_ms: Option<f64>,
    /// Time of the load event in the recorded load.
    load_ms: Option<f64>,
    /// Number of exchanges.
    exchanges: usize,
    /// Bytes of all bodies, as transferred.
    body_bytes: u64,
    /// Number of bodies that were not recorded, and are filler of the recorded size.
    filler_bodies: usize,
    /// Bytes of filler.
    filler_bytes: u64,
    /// Bytes of all request heads as HTTP/1.1 text.
    request_head_bytes: u64,
    /// Bytes of all response heads as HTTP/1.1 text.
    response_head_bytes: u64,
    /// The hosts of the page.
    hosts: Vec<Host>,
    /// Counts of each kind of resource.
    kinds: Vec<KindCount>,
    /// Each exchange, in the order of recording.
    resources: Vec<Resource>,
    /// Requests of the recorded load without a response.
    failures: Vec<FailedRequest>,
}

/// A request without a response.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FailedRequest {
    /// The method of the request.
    method: String,
    /// The URL of the request.
    url: String,
    /// The error.
    error: String,
}

/// A host of the page.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Host {
    /// The host, with the port if it is not the default of the scheme.
    host: String,
    /// The recorded addresses.
    addresses: Vec<IpAddr>,
    /// Number of its exchanges.
    exchanges: usize,
    /// Bytes of their bodies, as transferred.
    body_bytes: u64,
}

/// Counts of one kind of resource.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct KindCount {
    /// The kind of resource.
    kind: &'static str,
    /// Number of its exchanges.
    exchanges: usize,
    /// Bytes of their bodies, as transferred.
    body_bytes: u64,
}

/// An exchange.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Resource {
    /// The method of the request.
    method: String,
    /// The URL.
    url: String,
    /// The status of the response; `null` without a response.
    status: Option<u16>,
    /// The kind of resource.
    kind: &'static str,
    /// Bytes of its body, as transferred.
    body_bytes: usize,
    /// True if the body is as recorded, false if it is filler.
    body_is_real: bool,
    /// When a browser requests it, in words; `null` if the page load does not need it.
    requested: Option<String>,
    /// The protocol that the browser reported; `null` if the page was not recorded live.
    protocol: Option<String>,
    /// The name that the browser gives the priority, such as `VeryHigh`.
    priority: Option<String>,
    /// Number of its connection, from 0 in the order of first use.
    connection: Option<u32>,
    /// Total time that the browser took to evaluate the script or to parse the style sheet.
    compute_ms: Option<f64>,
    /// Why the page did not get the response; `null` if it did.
    refused: Option<String>,
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let opened = open_replica(&args.replica, &ImportOptions::default())?;
    let shown = ReplicaReport::of(&opened.replica);
    if args.json {
        printer.json(&shown)?;
    } else {
        print(&shown, args.resources, printer)?;
    }
    Ok(Outcome::Done)
}

impl ReplicaReport {
    fn of(replica: &Replica) -> Self {
        let summary = Summary::of(replica);
        let in_ms = |time: Duration| time.as_secs_f64() * 1e3;
        let hosts = summary.hosts.into_iter().map(|host| {
            let HostSummary {
                host,
                addresses,
                exchanges,
                body_bytes,
            } = host;
            Host {
                host,
                addresses,
                exchanges,
                body_bytes,
            }
        });
        let kinds = summary
            .kinds
            .into_iter()
            .map(|(kind, exchanges, body_bytes)| KindCount {
                kind: kind.name(),
                exchanges,
                body_bytes,
            });
        let mut triggers = vec![None; replica.exchanges.len()];
        let graph = PageGraph::of(replica);
        for node in &graph.nodes {
            triggers[node.exchange] =
                Some(trigger_text(node, |parent| graph.nodes[parent].exchange));
        }
        let resources = replica
            .exchanges
            .iter()
            .zip(triggers)
            .map(|(exchange, trigger)| Resource::of(exchange, trigger));
        Self {
            name: summary.name,
            source: summary.source,
            url: summary.url,
            recorded: summary.recorded.map(|time| time.to_string()),
            dom_content_loaded_ms: summary.dom_content_loaded.map(in_ms),
            load_ms: summary.load.map(in_ms),
            exchanges: summary.exchanges,
            body_bytes: summary.body_bytes,
            filler_bodies: summary.filler.0,
            filler_bytes: summary.filler.1,
            request_head_bytes: summary.head_bytes.0,
            response_head_bytes: summary.head_bytes.1,
            hosts: hosts.collect(),
            kinds: kinds.collect(),
            resources: resources.collect(),
            failures: replica.failures.iter().map(FailedRequest::of).collect(),
        }
    }
}

impl FailedRequest {
    fn of(failure: &Failure) -> Self {
        let Failure {
            method, url, error, ..
        } = failure.clone();
        Self { method, url, error }
    }
}

impl Resource {
    fn of(exchange: &Exchange, requested: Option<String>) -> Self {
        let Observation {
            protocol,
            priority,
            connection,
            compute,
            refused,
            ..
        } = exchange.observed.clone();
        Self {
            method: exchange.method.to_string(),
            url: exchange.url.to_string(),
            status: exchange.status(),
            kind: exchange.kind.name(),
            body_bytes: exchange.body.len(),
            body_is_real: exchange.body_is_real,
            requested,
            protocol,
            priority,
            connection,
            compute_ms: compute.map(|time| time.as_secs_f64() * 1e3),
            refused,
        }
    }
}

/// When a resource is discovered, as text; `number` maps a node to its exchange.
fn trigger_text(node: &Node, number: impl Fn(usize) -> usize) -> String {
    let trigger = match &node.trigger {
        Trigger::Start => "at the start".to_owned(),
        Trigger::Bytes { parent, at_byte } => format!("at byte {at_byte} of {}", number(*parent)),
        Trigger::Done { parent } => format!("after {}", number(*parent)),
    };
    match node.waits_for {
        Some(WaitsFor::Parser { .. }) => format!("{trigger}, by an inline module"),
        Some(WaitsFor::Layout { .. }) => format!("{trigger}, by layout or an inline script"),
        Some(WaitsFor::InlineScript { .. }) => format!("{trigger}, by an inline script"),
        Some(WaitsFor::DomContentLoaded) => format!("{trigger}, after DOMContentLoaded"),
        Some(WaitsFor::Load) => format!("{trigger}, after load"),
        None => trigger,
    }
}

fn print(shown: &ReplicaReport, resources: bool, printer: &Printer) -> anyhow::Result<()> {
    printer.line(format_args!(
        "{BOLD}{}{BOLD:#}  {}",
        escape(&shown.name),
        escape(&shown.source)
    ))?;
    let facts = [
        shown
            .recorded
            .as_ref()
            .map(|time| format!("recorded {time}")),
        shown
            .dom_content_loaded_ms
            .map(|ms| format!("DOMContentLoaded {ms:.0} ms")),
        shown.load_ms.map(|ms| format!("load {ms:.0} ms")),
    ];
    let facts: Vec<_> = facts.into_iter().flatten().collect();
    if !facts.is_empty() {
        printer.line(facts.join(", "))?;
    }
    printer.line(format_args!(
        "{} exchanges with {} hosts; {} bytes of bodies ({} of them filler, {} bytes), {} of request heads, {} of response heads\n",
        shown.exchanges,
        shown.hosts.len(),
        shown.body_bytes,
        shown.filler_bodies,
        shown.filler_bytes,
        shown.request_head_bytes,
        shown.response_head_bytes
    ))?;

    let part = |bytes: u64| bar(bytes as f64 / shown.body_bytes.max(1) as f64, BAR);
    let mut hosts = Table::new(head_of(["host", "address"], ["exchanges", "bytes"]));
    for host in &shown.hosts {
        let addresses: Vec<_> = host.addresses.iter().map(IpAddr::to_string).collect();
        let numbers = [host.exchanges as u64, host.body_bytes].map(Cell::number);
        let words = [
            Cell::word(&host.host),
            Cell::word(addresses.join(" ")).styled(DIM),
        ];
        hosts.row(
            words
                .into_iter()
                .chain(numbers)
                .chain([Cell::word(part(host.body_bytes))]),
        );
    }
    printer.line(format_args!("{hosts}\n"))?;

    let mut kinds = Table::new(head_of(["kind"], ["exchanges", "bytes"]));
    for of_kind in &shown.kinds {
        let numbers = [of_kind.exchanges as u64, of_kind.body_bytes].map(Cell::number);
        let word = [Cell::word(of_kind.kind)];
        kinds.row(
            word.into_iter()
                .chain(numbers)
                .chain([Cell::word(part(of_kind.body_bytes))]),
        );
    }
    printer.line(kinds)?;
    for FailedRequest { method, url, error } in &shown.failures {
        let [url, error] = [url, error].map(|text| escape(text));
        printer.line(format_args!(
            "{WARN}no response{WARN:#}: {method} {url}: {error}"
        ))?;
    }
    if resources {
        printer.line(format_args!("\n{}", resource_table(shown)))?;
    }
    Ok(())
}

fn resource_table(shown: &ReplicaReport) -> Table {
    let head = [
        Cell::number("#"),
        Cell::number("status"),
        Cell::word("kind"),
        Cell::number("bytes"),
    ];
    let mut table = Table::new(
        head.into_iter()
            .chain([Cell::word("requested"), Cell::word("URL")]),
    );
    for (number, resource) in shown.resources.iter().enumerate() {
        let filler = if resource.body_is_real { "" } else { "~" };
        table.row([
            Cell::number(number).styled(DIM),
            Cell::number(
                resource
                    .status
                    .map_or_else(|| "–".to_owned(), |status| status.to_string()),
            ),
            Cell::word(resource.kind),
            Cell::number(format_args!("{filler}{}", resource.body_bytes)),
            Cell::word(resource.requested.as_deref().unwrap_or("not by the page")).styled(DIM),
            Cell::word(short(&resource.url)),
        ]);
    }
    table
}

fn head_of<const W: usize, const N: usize>(
    words: [&str; W],
    numbers: [&str; N],
) -> impl Iterator<Item = Cell> {
    let (words, numbers) = (words.map(Cell::word), numbers.map(Cell::number));
    words.into_iter().chain(numbers)
}

/// `url`, or its first characters and an ellipsis.
fn short(url: &str) -> String {
    let cut = url.char_indices().nth(URL_CHARS).map(|(at, _)| at);
    cut.map_or_else(|| url.to_owned(), |at| format!("{}…", &url[..at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_portal_is_shown_completely() {
        let shown = ReplicaReport::of(&spdy_page::builtin::portal());
        assert_eq!((shown.exchanges, shown.hosts.len()), (44, 7));
        assert_eq!(
            shown.hosts.iter().map(|host| host.exchanges).sum::<usize>(),
            44
        );
        let bytes: u64 = shown.kinds.iter().map(|of_kind| of_kind.body_bytes).sum();
        assert_eq!(bytes, shown.body_bytes);
        assert_eq!(
            shown.resources[0].requested.as_deref(),
            Some("at the start")
        );
        assert!(
            shown
                .resources
                .iter()
                .all(|resource| resource.requested.is_some())
        );
    }

    #[test]
    fn long_urls_are_cut_between_characters() {
        assert_eq!(short("http://a/"), "http://a/");
        assert_eq!(short(&"ä".repeat(101)), format!("{}…", "ä".repeat(100)));
    }
}
