//! The HTML page of a race.

use std::fmt::{self, Write};

use spdy_lab::doctor::examination::Examination;
use spdy_sim::load::Load;
use spdy_sim::race_results::{ProtocolLoads, RaceResults};

use crate::text::{Count, Text};
use crate::{tables, times, waterfall};

const STYLE: &str = include_str!("style.css");

/// Renders `loads` as one HTML document without scripts and external resources.
///
/// `examinations` list possible remedies, if requested. `notes` are shown at the top as names and values: conditions, seed, version.
#[must_use]
pub fn render(loads: &[Load], examinations: &[Examination], notes: &[(String, String)]) -> String {
    let mut out = String::new();
    write_page(&mut out, loads, examinations, notes).expect("a String takes every write");
    out
}

fn write_page(
    out: &mut String,
    loads: &[Load],
    examinations: &[Examination],
    notes: &[(String, String)],
) -> fmt::Result {
    let standings = RaceResults::of(loads);
    let names: Vec<_> = standings.pages.iter().map(|page| page.replica).collect();
    let title = if names.is_empty() {
        "A race without loads".to_owned()
    } else {
        format!("Page race: {}", names.join(", "))
    };
    let about = format!(
        "{} page loads in virtual time. Every time is in milliseconds of the simulated network; \
         × is the ratio to plain HTTP where it took part, else to the first protocol: below 1 is faster.",
        Count(loads.len() as u64)
    );
    open_page(out, &title, &about, notes, "")?;
    if !loads.is_empty() {
        write_sections(out, loads, examinations, &standings)?;
    }
    writeln!(out, "</main></body></html>")
}

/// Writes everything up to the first section: the title, and `notes` on how the results were measured. `rules` are further rules of
/// the style sheet.
pub(crate) fn open_page(
    out: &mut String,
    title: &str,
    about: &str,
    notes: &[(String, String)],
    rules: &str,
) -> fmt::Result {
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <meta http-equiv=\"content-security-policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>{title}</title><style>{STYLE}{rules}</style></head><body><header><h1>{title}</h1><p>{about}</p><dl>",
        title = Text(title),
    )?;
    for (name, value) in notes {
        write!(
            out,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            Text(name),
            Text(value)
        )?;
    }
    write!(out, "</dl></header><main>")
}

fn write_sections(
    out: &mut String,
    loads: &[Load],
    examinations: &[Examination],
    standings: &RaceResults<'_>,
) -> fmt::Result {
    if loads.iter().any(|load| !load.failures.is_empty()) {
        write!(
            out,
            "<section class=\"failures\"><h2>Failures</h2><p>These exchanges failed; do not trust their loads.</p>"
        )?;
        tables::failures(out, loads.iter())?;
        write!(out, "</section>")?;
    }
    write!(
        out,
        "<section><h2>Summary</h2><p>Load time of the median run (of an even number, the faster of the two in the middle). The fastest \
         of each row is marked; ! stands where an exchange failed in any run.</p>"
    )?;
    tables::summary(out, standings)?;
    write!(
        out,
        "</section><section><h2>Load times</h2><p>Bars end at load, the notch is DOMContentLoaded, the line spans all runs. Each \
         network has its own scale.</p>"
    )?;
    for (number, page) in standings.pages.iter().enumerate() {
        write!(out, "<h3>{}</h3>", Text(page.replica))?;
        times::panels(out, &format!("times-{number}"), page)?;
    }
    if !examinations.is_empty() {
        write!(
            out,
            "</section><section><h2>What would help</h2><p>With the fastest protocol. Every change was tested alone: the page was \
             loaded with it over the same network with the same seeds; savings do not add up. A dash is a difference whose 95 % \
             interval includes 0: it may be chance.</p>"
        )?;
        tables::remedies(out, examinations)?;
    }
    write!(
        out,
        "</section><section><h2>Header bytes</h2><p>As HTTP/1.1 text, and as they crossed the wire, over the first network.</p>"
    )?;
    tables::headers(out, standings)?;
    write!(out, "</section><section><h2>On the wire</h2>")?;
    for page in &standings.pages {
        write!(out, "<h3>{}</h3>", Text(page.replica))?;
        tables::wire(out, page)?;
    }
    write!(
        out,
        "</section><section><h2>Waterfalls</h2><p>One row per resource, in request order; within a network all protocols share one \
         scale of time.</p>"
    )?;
    waterfall::legend(out)?;
    for (number, page) in standings.pages.iter().enumerate() {
        write!(out, "<h3>{}</h3>", Text(page.replica))?;
        for (place, over) in page.networks.iter().enumerate() {
            let open = if place == 0 { " open" } else { "" };
            write!(
                out,
                "<details class=\"network\"{open}><summary>{}</summary>",
                Text(over.network)
            )?;
            let loads: Vec<_> = over.protocols.iter().map(ProtocolLoads::typical).collect();
            waterfall::side_by_side(out, &format!("fall-{number}-{place}"), over.network, &loads)?;
            write!(out, "</details>")?;
        }
    }
    write!(out, "</section>")
}

#[cfg(test)]
pub(crate) mod tests {
    use spdy_clock::Instant;
    use spdy_page::replica::Kind;

    use super::*;
    use spdy_sim::load::WaterfallRow;

    /// A fictitious load.
    pub(crate) fn load(replica: &str, network: &str, protocol: &str, load_ms: f64) -> Load {
        Load {
            replica: replica.to_owned(),
            protocol: protocol.to_owned(),
            network: network.to_owned(),
            seed: 1,
            dom_content_loaded_ms: load_ms * 0.6,
            fcp_ms: None,
            lcp_ms: None,
            load_ms,
            time_on_wire_ms: load_ms + 1.0,
            connections: 6,
            requests: 2,
            packets_up: 120,
            packets_down: 1_200,
            bytes_up: 18_000,
            bytes_down: 331_000,
            request_header_bytes: 22_000,
            request_header_bytes_wire: 3_000,
            response_header_bytes: 15_000,
            response_header_bytes_wire: 2_500,
            failures: Vec::new(),
            waterfall: vec![row("https://www.example.org/", 0.0, load_ms)],
            ..Load::default()
        }
    }

    fn row(url: &str, start_ms: f64, done_ms: f64) -> WaterfallRow {
        let at = |part: f64| {
            Instant::from_micros(((start_ms + (done_ms - start_ms) * part) * 1e3) as u64)
        };
        WaterfallRow {
            url: url.to_owned(),
            kind: Kind::Document,
            status: 200,
            connection: 0,
            priority: 0,
            body_bytes: 5_000,
            needed: at(0.0),
            dns: Some((at(0.1), at(0.2))),
            connect: Some((at(0.2), at(0.3))),
            tls: None,
            sent: at(0.3),
            first_byte: at(0.5),
            done: at(1.0),
        }
    }

    #[test]
    fn the_same_loads_give_the_same_page() {
        let loads = [
            load("portal", "dsl", "http", 900.0),
            load("portal", "dsl", "spdy", 450.0),
        ];
        let notes = [("seed".to_owned(), "1".to_owned())];
        let page = render(&loads, &[], &notes);
        assert_eq!(page, render(&loads, &[], &notes));
        assert!(page.contains("×0.50"), "no ratio in {page}");
        assert!(page.contains("<dt>seed</dt><dd>1</dd>"));
    }

    #[test]
    fn hostile_names_and_urls_stay_text() {
        let hostile = "\"><script>alert(1)</script><svg onload='x'>";
        let mut load = load(hostile, hostile, hostile, 10.0);
        load.waterfall[0].url = format!("http://h/{hostile}");
        load.failures.push(hostile.to_owned());
        let page = render(&[load], &[], &[(hostile.to_owned(), hostile.to_owned())]);
        assert!(!page.contains("<script"), "a script was injected");
        assert!(!page.contains("onload='"), "an attribute was injected");
        assert!(page.contains("&lt;script&gt;"));
    }

    #[test]
    fn a_page_fetches_nothing_and_runs_no_script() {
        let page = render(&[load("portal", "dsl", "http", 900.0)], &[], &[]);
        for door in [
            "<link", "<img", "<script", "@import", "url(", " href=", " src=",
        ] {
            assert!(!page.contains(door), "{door} in the report");
        }
    }

    #[test]
    fn a_load_that_failed_at_once_is_drawn_too() {
        let mut load = load("portal", "dsl", "http", 0.0);
        load.waterfall.clear();
        load.failures.push("no route".to_owned());
        let page = render(&[load], &[], &[]);
        assert!(page.contains("no route"));
        assert!(
            !page.contains("NaN") && !page.contains(">inf") && !page.contains("\"inf"),
            "a number is none"
        );
    }

    /// A load is fast if most of the page is missing.
    #[test]
    fn a_load_that_failed_in_any_run_is_marked_and_never_the_best() {
        let mut broken = load("portal", "dsl", "spdy", 10.0);
        broken.failures.push("lost".to_owned());
        let loads = [
            load("portal", "dsl", "http", 900.0),
            load("portal", "dsl", "spdy", 9.0),
            broken,
        ];
        let page = render(&loads, &[], &[]);
        assert!(page.contains("<td class=\"best\">900"), "{page}");
        assert!(page.contains("<td>!9.0"), "{page}");
    }

    #[test]
    fn a_race_without_loads_is_a_page_too() {
        assert!(render(&[], &[], &[]).contains("A race without loads"));
    }

    #[test]
    fn every_picture_has_a_title_a_description_and_a_name_of_its_own() {
        let loads = ["http", "spdy"].map(|protocol| load("portal", "dsl", protocol, 900.0));
        let page = render(&loads, &[], &[]);
        let pictures = page.matches("<svg").count();
        assert_eq!(pictures, 3);
        assert_eq!(page.matches("role=\"img\"").count(), pictures);
        assert_eq!(page.matches("<desc id=").count(), pictures);
        let mut ids: Vec<_> = page
            .split(" id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "duplicate id");
    }
}
