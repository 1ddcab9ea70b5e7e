//! The tables of the report: ratios, traffic, and the saving by header compression.

use std::fmt::{self, Write};

use spdy_lab::doctor::examination::{Examination, SavedTime};
use spdy_sim::load::Load;
use spdy_sim::race_results::{PageRace, RaceResults};

use crate::text::{Bytes, Count, Millis, Ratio, Text};
use crate::times::class_of;

/// Opens a table that may be wider than the screen, and then scrolls.
pub(crate) fn open(out: &mut String, label: &str, head: &[&str]) -> fmt::Result {
    write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table><thead><tr>",
        label = Text(label)
    )?;
    for name in head {
        write!(out, "<th scope=\"col\">{}</th>", Text(name))?;
    }
    write!(out, "</tr></thead><tbody>")
}

pub(crate) fn close(out: &mut String) -> fmt::Result {
    write!(out, "</tbody></table></div>")
}

/// Maximum number of remedies that are listed for each examination.
const MAX_REMEDIES: usize = 5;

/// Writes the most effective remedies for each page and network, with their savings.
pub(crate) fn remedies(out: &mut String, examinations: &[Examination]) -> fmt::Result {
    let head = [
        "page",
        "network",
        "protocol",
        "load ms",
        "saves ms",
        "95 % interval",
        "of load",
        "saves DCL ms",
        "95 % interval",
        "by (resources)",
    ];
    let certain = |saved: &SavedTime| match saved.certain_ms() {
        Some(ms) => format!("{ms:.0}"),
        None => "–".to_owned(),
    };
    let interval = |saved: &SavedTime| saved.interval().unwrap_or_else(|| "exact".to_owned());
    open(out, "What would help", &head)?;
    for examination in examinations {
        let Examination {
            replica,
            network,
            protocol,
            now,
            ..
        } = examination;
        let named = format!(
            "<tr class=\"first\"><th scope=\"row\">{}</th><td class=\"word\">{}</td><td class=\"word {}\">{}</td><td>{}</td>",
            Text(replica),
            Text(network),
            class_of(protocol),
            Text(protocol),
            Millis(now.load_ms),
        );
        let helping = examination.helpful();
        for (number, finding) in helping.iter().take(MAX_REMEDIES).enumerate() {
            let again = "<tr><th scope=\"row\"></th><td></td><td></td><td></td>";
            write!(
                out,
                "{}<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"word\">{}</td></tr>",
                if number == 0 { &named[..] } else { again },
                certain(&finding.load),
                interval(&finding.load),
                finding.load.certain_ms().map_or_else(
                    || "–".to_owned(),
                    |ms| format!("{:.0}\u{202f}%", ms / now.load_ms * 100.0)
                ),
                certain(&finding.dom_content_loaded),
                interval(&finding.dom_content_loaded),
                Text(&examination.describe(finding)),
            )?;
        }
        if helping.is_empty() {
            let nothing = "<td></td><td></td><td></td><td></td><td></td><td class=\"word\">no tested change saves 1\u{202f}%</td></tr>";
            write!(out, "{named}{nothing}")?;
        }
    }
    close(out)
}

/// Writes a row for each page and network: load times, and ratios to the first protocol.
pub(crate) fn summary(out: &mut String, standings: &RaceResults<'_>) -> fmt::Result {
    let protocols = standings.protocols();
    let head: Vec<_> = ["page", "network"]
        .into_iter()
        .chain(protocols.iter().copied())
        .collect();
    open(out, "Load times and ratios", &head)?;
    for page in &standings.pages {
        for (number, over) in page.networks.iter().enumerate() {
            let first = if number == 0 { " class=\"first\"" } else { "" };
            write!(
                out,
                "<tr{first}><th scope=\"row\">{}</th><td class=\"word\">{}</td>",
                Text(page.replica),
                Text(over.network)
            )?;
            for protocol in &protocols {
                let Some(entrant) = over.protocol(protocol) else {
                    write!(out, "<td>–</td>")?;
                    continue;
                };
                let ms = entrant.typical().load_ms;
                let (best, mark) = match entrant.is_whole() {
                    true if ms <= over.best_ms() => (" class=\"best\"", ""),
                    true => ("", ""),
                    false => ("", "!"),
                };
                write!(
                    out,
                    "<td{best}>{mark}{}\u{202f}ms <span class=\"ratio\">{}</span></td>",
                    Millis(ms),
                    Ratio(over.ratio(entrant))
                )?;
            }
            write!(out, "</tr>")?;
        }
    }
    close(out)
}

/// Writes a row for each shown load: events, connections, packets, bytes.
pub(crate) fn wire(out: &mut String, page: &PageRace<'_>) -> fmt::Result {
    let head = [
        "network",
        "protocol",
        "runs",
        "FCP ms",
        "LCP ms",
        "DOMContentLoaded ms",
        "load ms",
        "time on wire ms",
        "connections",
        "requests",
        "packets up",
        "packets down",
        "up",
        "down",
        "failures",
    ];
    open(out, &format!("On the wire: {}", page.replica), &head)?;
    for over in &page.networks {
        for (number, entrant) in over.protocols.iter().enumerate() {
            let load = entrant.typical();
            let first = if number == 0 { " class=\"first\"" } else { "" };
            write!(
                out,
                "<tr{first}><th scope=\"row\">{}</th><td class=\"word {}\">{}</td><td>{}</td>",
                Text(over.network),
                class_of(entrant.protocol),
                Text(entrant.protocol),
                entrant.loads.len()
            )?;
            for ms in [
                load.fcp_ms,
                load.lcp_ms,
                Some(load.dom_content_loaded_ms),
                Some(load.load_ms),
                Some(load.time_on_wire_ms),
            ] {
                match ms {
                    Some(ms) => write!(out, "<td>{}</td>", Millis(ms))?,
                    None => write!(out, "<td>–</td>")?,
                }
            }
            for count in [
                load.connections,
                load.requests,
                load.packets_up,
                load.packets_down,
            ] {
                write!(out, "<td>{}</td>", Count(count))?;
            }
            for bytes in [load.bytes_up, load.bytes_down] {
                write!(out, "<td>{}</td>", Bytes(bytes))?;
            }
            let failures: usize = entrant.loads.iter().map(|load| load.failures.len()).sum();
            write!(out, "<td>{failures}</td></tr>")?;
        }
    }
    close(out)
}

/// Writes header bytes before and after compression for each protocol. The network hardly matters, so it has no rows.
pub(crate) fn headers(out: &mut String, standings: &RaceResults<'_>) -> fmt::Result {
    let head = [
        "page",
        "protocol",
        "request headers",
        "on the wire",
        "saved",
        "response headers",
        "on the wire",
        "saved",
    ];
    open(out, "Header bytes", &head)?;
    for page in &standings.pages {
        let Some(over) = page.networks.first() else {
            continue;
        };
        for (number, entrant) in over.protocols.iter().enumerate() {
            let load = entrant.typical();
            let first = if number == 0 { " class=\"first\"" } else { "" };
            write!(
                out,
                "<tr{first}><th scope=\"row\">{}</th><td class=\"word {}\">{}</td>",
                Text(page.replica),
                class_of(entrant.protocol),
                Text(entrant.protocol)
            )?;
            let pairs = [
                (load.request_header_bytes, load.request_header_bytes_wire),
                (load.response_header_bytes, load.response_header_bytes_wire),
            ];
            for (text, wire) in pairs {
                write!(
                    out,
                    "<td>{}</td><td>{}</td><td>{}</td>",
                    Bytes(text),
                    Bytes(wire),
                    SavedPart { text, wire }
                )?;
            }
            write!(out, "</tr>")?;
        }
    }
    close(out)
}

/// The part of `text` that header compression saved, with a bar.
struct SavedPart {
    text: u64,
    wire: u64,
}

impl fmt::Display for SavedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text == 0 {
            return f.write_str("–");
        }
        let saved = 100.0 * (1.0 - self.wire as f64 / self.text as f64);
        write!(
            f,
            "{saved:.1}\u{202f}% <meter min=\"0\" max=\"100\" value=\"{:.1}\"></meter>",
            saved.clamp(0.0, 100.0)
        )
    }
}

/// Writes the failures, a line for each exchange.
pub(crate) fn failures<'a>(
    out: &mut String,
    failed: impl Iterator<Item = &'a Load>,
) -> fmt::Result {
    open(
        out,
        "Failures",
        &["page", "network", "protocol", "seed", "exchange"],
    )?;
    for load in failed {
        for failure in &load.failures {
            write!(
                out,
                "<tr><th scope=\"row\">{}</th><td class=\"word\">{}</td><td class=\"word\">{}</td><td>{}</td><td \
                 class=\"word\">{}</td></tr>",
                Text(&load.replica),
                Text(&load.network),
                Text(&load.protocol),
                load.seed,
                Text(failure)
            )?;
        }
    }
    close(out)
}
