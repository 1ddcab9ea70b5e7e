//! An audit as text: hosts, direct resources with reasons, the saving, and configuration lines that would proxy more.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use spdy_accelerator::origins::upstream_needs::UpstreamNeeds;
use spdy_lab::audit::case::{Audit, ProxiedLoads};
use spdy_lab::doctor::describe::short;
use spdy_rewrite::kind::Kind;

use super::host_entry::host_entry;
use super::page::PageSource;
use crate::output::{BAD, BOLD, Cell, DIM, GOOD, Table, WARN, escape, format_count};

/// A difference of load times that is neither good nor bad.
const EVEN: f64 = 0.01;

/// Formats the whole audit, with at most `most` of the resources that are not proxied. The lines of a configuration are left out if they
/// are in the file `written`.
pub(crate) fn render(
    audit: &Audit,
    source: PageSource,
    most: usize,
    needs: &UpstreamNeeds,
    written: Option<&Path>,
) -> String {
    let resources = &audit.survey.resources;
    let bytes: u64 = resources.iter().map(|resource| resource.bytes).sum();
    let how = match source {
        PageSource::Replica => "as recorded",
        PageSource::Browser => "as loaded by a browser now",
        PageSource::Fetched => "as found in its text, without a browser",
    };
    let (contacted, hosts) = audit.survey.hosts_contacted();
    let mut text = format!(
        "{BOLD}{}{BOLD:#}, {how}: {} of {}, {:.1} kB\n",
        escape(&audit.page),
        format_count(resources.len() as u64, "resource"),
        format_count(hosts as u64, "host"),
        kilobytes(bytes),
    );
    let count = |delivery| {
        let is_so = resources.iter().filter(|it| it.delivery == delivery);
        is_so.count()
    };
    let by = match (written, audit.is_configured) {
        (Some(path), _) => format!("With {}:", escape(&path.to_string_lossy())),
        (None, true) => "With this configuration:".to_owned(),
        (None, false) => "With the lines at the end:".to_owned(),
    };
    let (proxied, aliased) = (count("proxied"), count("aliased"));
    let under_names = match aliased {
        0 => String::new(),
        aliased => format!(" ({aliased} under a hostname of their own)"),
    };
    let _ = write!(
        text,
        "{by} {} proxied{under_names}, {} direct, {} are the site's own; a client then contacts {contacted} of {}.\n\n{}\n",
        proxied + aliased,
        count("direct"),
        count("own"),
        format_count(hosts as u64, "host"),
        hosts_table(audit),
    );
    if let Some(table) = reasons(audit) {
        let _ = write!(text, "\n{table}\n\n{}", direct(audit, most));
    }
    let _ = write!(text, "\n{}\n", savings(audit));
    let _ = writeln!(text, "{DIM}{}{DIM:#}", notes(audit));
    text.push_str(&own_hosts(audit));
    text.push_str(&left_out(audit));
    text.push_str(&match written {
        Some(_) => script_rights(audit),
        None => advice(audit) + &upstream(needs),
    });
    text.truncate(text.trim_end().len());
    text
}

fn kilobytes(bytes: u64) -> f64 {
    bytes as f64 / 1e3
}

fn hosts_table(audit: &Audit) -> Table {
    let mut table = Table::new([
        Cell::word("host"),
        Cell::number("resources"),
        Cell::number("kB"),
        Cell::number("proxied"),
        Cell::number("direct"),
        Cell::number("cacheable"),
        Cell::word(""),
    ]);
    for host in &audit.survey.hosts {
        let some = |count: usize| match count {
            0 => Cell::number("–").styled(DIM),
            count => Cell::number(count),
        };
        let what = match (host.is_own, host.is_of_site) {
            (true, _) => "the site's own",
            (false, true) => "same site",
            (false, false) if host.aliased > 0 => "own hostname",
            (false, false) => "",
        };
        let direct = some(host.direct);
        table.row([
            Cell::word(&host.host).styled(BOLD),
            Cell::number(host.resources),
            Cell::number(format_args!("{:.1}", kilobytes(host.bytes))),
            some(host.proxied + host.aliased),
            if host.direct > 0 {
                direct.styled(WARN)
            } else {
                direct
            },
            some(host.cacheable),
            Cell::word(what).styled(DIM),
        ]);
    }
    table
}

/// Reasons of the resources that are not proxied; `None` if all are.
fn reasons(audit: &Audit) -> Option<Table> {
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for resource in &audit.survey.resources {
        if let (Some(reason), Some(text)) = (resource.reason, &resource.reason_text) {
            // A text that differs by host is one example for its reason.
            let existing = reasons.keys().find(|(name, _)| *name == reason);
            let key = existing.copied().unwrap_or((reason, text.as_str()));
            *reasons.entry(key).or_default() += 1;
        }
    }
    let mut table = Table::new([
        Cell::number("direct"),
        Cell::word("reason"),
        Cell::word("example"),
    ]);
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for ((reason, text), count) in &reasons {
        table.row([
            Cell::number(count),
            Cell::word(reason).styled(BOLD),
            Cell::word(text),
        ]);
    }
    (!reasons.is_empty()).then_some(table)
}

/// The resources that are not proxied, the largest first.
fn direct(audit: &Audit, most: usize) -> String {
    let resources = audit.survey.resources.iter();
    let mut direct: Vec<_> = resources.filter(|it| it.delivery == "direct").collect();
    direct.sort_by_key(|resource| std::cmp::Reverse(resource.bytes));
    let mut table = Table::new([
        Cell::number("kB"),
        Cell::word("kind"),
        Cell::word("reason"),
        Cell::word("resource"),
    ]);
    for resource in direct.iter().take(most) {
        table.row([
            Cell::number(format_args!("{:.1}", kilobytes(resource.bytes))),
            Cell::word(resource.kind.name()),
            Cell::word(resource.reason.unwrap_or_default()),
            Cell::word(short(&resource.url)),
        ]);
    }
    let more = match direct.len().saturating_sub(most) {
        0 => String::new(),
        more => format!("{DIM}and {more} more{DIM:#}\n"),
    };
    format!("{table}\n{more}")
}

fn savings(audit: &Audit) -> Table {
    let has_advice = audit.savings.iter().any(|saving| saving.advised.is_some());
    let through = |name: &'static str| {
        [
            Cell::number(name),
            Cell::number("saves ms"),
            Cell::number("of load"),
        ]
    };
    let head = [
        Cell::word("load over"),
        Cell::number("direct ms"),
        Cell::number("connections"),
    ];
    let head = head.into_iter().chain(through("cold ms"));
    let head = head.chain(through("warm ms"));
    let head = head.chain([Cell::number("connections")]);
    let advised = through("as advised ms").into_iter().filter(|_| has_advice);
    let mut table = Table::new(head.chain(advised));
    for saving in &audit.savings {
        let row = [
            Cell::word(&saving.network),
            ms(saving.direct.load_ms),
            Cell::number(saving.direct.connections),
        ];
        let row = row.into_iter().chain(cells(&saving.cold));
        let row = row.chain(cells(&saving.warm));
        let row = row.chain([Cell::number(saving.warm.times.connections)]);
        table.row(row.chain(saving.advised.iter().flat_map(cells)));
    }
    table
}

fn ms(ms: f64) -> Cell {
    Cell::number(format_args!("{ms:.0}"))
}

fn cells(through: &ProxiedLoads) -> [Cell; 3] {
    let style = match through.saved_part {
        part if part > EVEN => GOOD,
        part if part < -EVEN => BAD,
        _ => DIM,
    };
    // No minus before a nothing.
    let saved = through.saved_load_ms.round() + 0.0;
    let part = (through.saved_part * 100.0).round() + 0.0;
    [
        ms(through.times.load_ms),
        Cell::number(saved).styled(style),
        Cell::number(format_args!("{part} %")).styled(style),
    ]
}

fn notes(audit: &Audit) -> String {
    let runs = match audit.runs {
        1 => "one load each",
        _ => "medians",
    };
    let advised = match audit.savings.iter().any(|saving| saving.advised.is_some()) {
        true => " As advised: warm, with the lines at the end.",
        false => "",
    };
    format!(
        "{} in virtual time, {runs}. Cold: the accelerator was just started. Warm: another client has loaded the page before. \
         Cacheable: responses that a shared cache may store and reuse.{advised}",
        audit.protocol
    )
}

/// Hosts of the same site, which need no entry if the site's own address and certificate serve them.
fn own_hosts(audit: &Audit) -> String {
    let own_hosts = &audit.advice.own_hosts;
    if own_hosts.is_empty() {
        return String::new();
    }
    let names: Vec<_> = own_hosts.iter().map(|name| escape(name)).collect();
    let (are, them) = match own_hosts.len() {
        1 => ("is", "it"),
        _ => ("are", "them"),
    };
    format!(
        "\n{BOLD}First:{BOLD:#} {} {are} on the same site. Serve {them} on the site's address and certificate, and list {them} in \
         own_hosts: clients then share the session, and no resource of {them} needs to be proxied.\n",
        names.join(", ")
    )
}

/// Hosts that are not listed because that would make the page slower.
fn left_out(audit: &Audit) -> String {
    let hosts: Vec<_> = audit
        .advice
        .left_out
        .iter()
        .map(|host| escape(host))
        .collect();
    if hosts.is_empty() {
        return String::new();
    }
    format!(
        "\n{BOLD}Left out:{BOLD:#} {}. Only a part of the resources there can be proxied, and the page would load slower or hardly faster.\n",
        hosts.join(", ")
    )
}

/// Lines of a configuration that would proxy more.
fn advice(audit: &Audit) -> String {
    let hosts = &audit.advice.hosts;
    if hosts.is_empty() {
        let resources = &audit.survey.resources;
        let is_lacking = resources.iter().any(|it| it.reason == Some("not-recorded"));
        return match is_lacking {
            true => "\nNo more hosts to list, as far as texts were recorded.\n",
            false => "\nNo more hosts to list.\n",
        }
        .to_owned();
    }
    let what = match audit.is_configured {
        true => "Add these lines under the site to proxy more resources:",
        false => "Add these lines under the site to proxy resources:",
    };
    let mut text = format!("\n{what}\n\n");
    for advised in hosts {
        let _ = writeln!(text, "{}", host_entry(advised, DIM));
    }
    text + &script_rights(audit)
}

/// What it means to list the scripts of a host.
fn script_rights(audit: &Audit) -> String {
    let mut hosts = audit.advice.hosts.iter();
    match hosts.any(|it| it.entry.kinds.contains(&Kind::Script)) {
        true => format!(
            "{DIM}A proxied script has the same rights as before, those of the site's own scripts. But any other script of its host could \
             then be loaded as one of the site's own. List scripts only of trusted hosts.{DIM:#}\n"
        ),
        false => String::new(),
    }
}

/// The lines of `[upstream]` that are needed to reach the hosts.
fn upstream(needs: &UpstreamNeeds) -> String {
    if needs.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{BOLD}Not public:{BOLD:#} the accelerator connects to these hosts only if the configuration has lines such as these, once (a \
         hostname that its resolver finds needs no address in them):\n\n"
    );
    text.push_str(&needs.toml());
    text
}
