//! An entry of the list of hosts, in TOML: in the report of an audit, and in the configuration that it writes.

use std::fmt::Write as _;

use anstyle::Style;
use spdy_lab::audit::advice::HostAdvice;
use spdy_rewrite::rules::config::Scheme;

use crate::output::format_count;

/// The lines of `advised`. Its comment has the style `dim`.
pub(super) fn host_entry(advised: &HostAdvice, dim: Style) -> String {
    let HostAdvice {
        entry,
        replaces,
        resources,
        bytes,
    } = advised;
    let kinds: Vec<_> = entry
        .kinds
        .iter()
        .map(|kind| format!("{:?}", kind.name()))
        .collect();
    let instead = match replaces {
        true => ", replaces the existing entry",
        false => "",
    };
    let mut text = format!(
        "[[site.rewrite.hosts]]          {dim}# {}, {:.1} kB{instead}{dim:#}\nhost = {:?}\n",
        format_count(*resources as u64, "resource"),
        *bytes as f64 / 1e3,
        entry.host
    );
    if entry.scheme != Scheme::default() {
        let _ = writeln!(text, "scheme = {:?}", entry.scheme.name());
    }
    if entry.path != "/" {
        let _ = writeln!(text, "path = {:?}", entry.path);
    }
    if !entry.except.is_empty() {
        let _ = writeln!(text, "except = {:?}", entry.except);
    }
    let _ = writeln!(text, "kinds = [{}]", kinds.join(", "));
    let flags = [
        ("shared", entry.shared),
        ("accept_language", entry.accept_language),
        ("user_agent", entry.user_agent),
    ];
    for (name, _) in flags.iter().filter(|(_, is_so)| *is_so) {
        let _ = writeln!(text, "{name} = true");
    }
    if let Some(whole) = entry.whole {
        let _ = writeln!(text, "whole = {whole}");
    }
    text
}
