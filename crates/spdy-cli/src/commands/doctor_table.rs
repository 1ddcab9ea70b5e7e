//! An examination as text: how the page loads, what would help, and what it costs elsewhere.

use std::fmt::Write as _;

use spdy_lab::doctor::examination::{Examination, Finding};
use spdy_lab::doctor::remedy::{Remedy, Worse};

use crate::printer::{BAD, BOLD, DIM, GOOD};
use crate::table::{Cell, Table};

/// A change that moves neither time by this part of it is not worth a line.
const WORTH: f64 = 0.01;

/// Characters of a URL that are shown.
const URL_CHARS: usize = 70;

/// All of it, with at most `most` of the remedies that help.
pub(crate) fn render(examination: &Examination, most: usize) -> String {
    let Examination {
        replica,
        network,
        protocol,
        now,
        ..
    } = examination;
    let mut text = format!(
        "{BOLD}{replica}{BOLD:#} over {network} by {protocol}: load {:.0} ms, DOMContentLoaded {:.0} ms, {:.0} connections\n",
        now.load_ms, now.dom_content_loaded_ms, now.connections
    );
    let (elsewhere, remedies): (Vec<_>, Vec<_>) =
        examination.findings.iter().partition(|finding| {
            matches!(
                finding.remedy,
                Remedy::Protocol { .. } | Remedy::Network { .. }
            )
        });
    let mut helps: Vec<_> = remedies
        .iter()
        .filter(|finding| part(examination, finding).is_some_and(|part| part >= WORTH))
        .collect();
    helps.sort_by(|a, b| {
        let key = |finding: &Finding| (finding.saved_load_ms, finding.saved_dom_content_loaded_ms);
        let ((a, more_a), (b, more_b)) = (key(a), key(b));
        b.total_cmp(&a).then(more_b.total_cmp(&more_a))
    });
    let mut table = Table::new([
        Cell::number("saves ms"),
        Cell::number("of load"),
        Cell::number("saves DCL ms"),
        Cell::word("by (resources)"),
    ]);
    for finding in helps.iter().take(most) {
        row(&mut table, examination, finding);
    }
    let tried = remedies.len();
    let broken = remedies.iter().filter(|finding| !finding.is_whole).count();
    if !helps.is_empty() {
        let _ = write!(text, "\n{table}\n");
    }
    let more = helps.len().saturating_sub(most);
    let left = if more > 0 {
        format!(", of which {more} are not shown")
    } else {
        String::new()
    };
    let lost = if broken > 0 {
        format!("; {broken} broke the page and count for nothing")
    } else {
        String::new()
    };
    let _ = write!(
        text,
        "{DIM}{tried} changes were tried, one at a time: {} save 1 % or more{left}{lost}. Savings do not add up.{DIM:#}\n\n",
        helps.len()
    );
    let mut table = Table::new([
        Cell::number("load ms"),
        Cell::number("more ms"),
        Cell::number("DCL ms"),
        Cell::word("elsewhere"),
    ]);
    for finding in elsewhere {
        table.row([
            Cell::number(format_args!("{:.0}", finding.then.load_ms)),
            signed(-finding.saved_load_ms, -finding.saved_load_ms),
            Cell::number(format_args!("{:.0}", finding.then.dom_content_loaded_ms)),
            Cell::word(describe(finding, examination)),
        ]);
    }
    let _ = write!(text, "{table}");
    text
}

fn row(table: &mut Table, examination: &Examination, finding: &Finding) {
    let share = finding.saved_load_ms / examination.now.load_ms;
    table.row([
        signed(finding.saved_load_ms, -finding.saved_load_ms),
        Cell::number(format_args!("{:.0} %", share * 100.0)),
        signed(
            finding.saved_dom_content_loaded_ms,
            -finding.saved_dom_content_loaded_ms,
        ),
        Cell::word(describe(finding, examination)),
    ]);
}

/// `ms` with its colour: good if `cost` is under nothing.
fn signed(ms: f64, cost: f64) -> Cell {
    let style = if cost <= -0.5 {
        GOOD
    } else if cost >= 0.5 {
        BAD
    } else {
        DIM
    };
    Cell::number(format_args!("{:.0}", if ms.abs() < 0.5 { 0.0 } else { ms })).styled(style)
}

/// The greater part of its time that load or DOMContentLoaded has earlier; `None` if the page broke.
fn part(examination: &Examination, finding: &Finding) -> Option<f64> {
    let load = finding.saved_load_ms / examination.now.load_ms;
    let parsed = finding.saved_dom_content_loaded_ms / examination.now.dom_content_loaded_ms;
    // What makes load later is no remedy, however early the page is parsed.
    (finding.is_whole && load > -WORTH).then(|| load.max(parsed))
}

fn describe(finding: &Finding, examination: &Examination) -> String {
    let own = &examination.host;
    match &finding.remedy {
        Remedy::Fold { hosts, resources } => match hosts.as_slice() {
            [host] => format!("fold {host} ({resources}) into {own}"),
            hosts => format!(
                "fold all {} other hosts ({resources}) into {own}",
                hosts.len()
            ),
        },
        Remedy::Push => format!("push what {own} has of the page"),
        Remedy::Hint { urls, .. } => match urls.as_slice() {
            [url] => format!("hint at {}", short(url)),
            urls => format!(
                "hint at all {} resources that the document does not name",
                urls.len()
            ),
        },
        Remedy::Later { url, .. } => format!("let nothing wait for {}", short(url)),
        Remedy::Without { host, resources } => format!("do without {host} ({resources})"),
        Remedy::Protocol { protocol } => format!("by {protocol}"),
        Remedy::Network { change } => match change {
            Worse::DoubleRtt => "twice the round-trip time",
            Worse::HalfRate => "half the rate",
            Worse::Loss => "1 % of packets lost",
        }
        .to_owned(),
    }
}

/// A URL without its scheme, its middle left out if it is long.
pub(super) fn short(url: &str) -> String {
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    let chars: Vec<char> = url.chars().collect();
    if chars.len() <= URL_CHARS {
        return url.to_owned();
    }
    let half = (URL_CHARS - 1) / 2;
    let (begin, end) = (&chars[..half], &chars[chars.len() - half..]);
    begin.iter().chain(&['…']).chain(end).collect()
}
