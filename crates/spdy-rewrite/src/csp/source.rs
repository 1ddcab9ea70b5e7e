//! One source of a policy's directive: what it matches (CSP §6.7.2), and the sources to add if its host is proxied.

use url::Url;

use crate::csp::page_location::PageLocation;
use crate::kind::{Kind, Kinds};
use crate::rules::capability::Subject;
use crate::rules::config::Scheme;
use crate::rules::host_name::{self, HostPattern};
use crate::rules::host_rule::HostRule;
use crate::rules::path_normalization::is_in;
use crate::rules::url_form::LISTED;
use crate::rules::verdict::{ReferenceSource, Verdict};
use crate::rules::{RuleMatch, Rules};

/// A source that matches URLs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Source {
    /// `'self'`.
    SelfKeyword,
    /// `*`.
    Any,
    /// `https:`.
    Scheme(String),
    /// `[scheme://]host[:port][/path]`; the host `*` matches every host (CSP §6.7.2.9).
    Host {
        scheme: Option<String>,
        host: String,
        /// True if it matches every name below `host`.
        is_wild: bool,
        port: Port,
        path: String,
    },
}

/// The port of a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Port {
    Default,
    Any,
    Of(u16),
}

impl Source {
    /// Parses a source. Keywords other than `'self'`, nonces and hashes match no URL, and neither do texts with characters that are
    /// not allowed in a source (CSP §2.3.1).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        if text.eq_ignore_ascii_case("'self'") {
            return Some(Self::SelfKeyword);
        }
        if text.starts_with('\'') {
            return None;
        }
        if text == "*" {
            return Some(Self::Any);
        }
        let text_lower = text.to_ascii_lowercase();
        if let Some(scheme) = text_lower.strip_suffix(':')
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        {
            return Some(Self::Scheme(scheme.to_owned()));
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, text),
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = match authority.rsplit_once(':') {
            None => (authority, Port::Default),
            Some((host, "*")) => (host, Port::Any),
            Some((host, port)) => (host, Port::Of(port.parse().ok()?)),
        };
        let host = host.to_ascii_lowercase();
        let (is_wild, host) = match host.strip_prefix("*.") {
            Some(below) => (true, below.to_owned()),
            None => (false, host),
        };
        (!host.is_empty()).then(|| Self::Host {
            scheme,
            host,
            is_wild,
            port,
            path: path.to_owned(),
        })
    }

    /// True if it allows `page` to load `url`.
    pub(crate) fn matches(&self, page: &Url, url: &Url) -> bool {
        let is_path = match self {
            Self::Host { path, .. } => path_matches(path, url.path()),
            Self::SelfKeyword | Self::Any | Self::Scheme(_) => true,
        };
        is_path && self.matches_host(page, url)
    }

    /// True if it allows `page` to load anything from the host of `url`, with any path.
    pub(crate) fn matches_host(&self, page: &Url, url: &Url) -> bool {
        match self {
            Self::SelfKeyword => {
                let is_upgrade =
                    page.scheme() == "http" && url.scheme() == "https" && page.host() == url.host();
                page.origin() == url.origin()
                    || is_upgrade && page.port().is_none() && url.port().is_none()
            }
            Self::Any => matches!(url.scheme(), "http" | "https" | "ws" | "wss"),
            Self::Scheme(scheme) => scheme_matches(scheme, url.scheme()),
            Self::Host {
                scheme,
                host,
                is_wild,
                port,
                path: _,
            } => {
                let named = url.host_str().unwrap_or_default();
                let is_host = if *is_wild {
                    named != host && host_name::is_in_zone(named, host)
                } else {
                    host == "*" || named == host
                };
                let is_port = match port {
                    Port::Any => true,
                    Port::Default => url.port().is_none(),
                    Port::Of(port) => {
                        let url_port = url.port_or_known_default();
                        url_port == Some(*port) || *port == 80 && url_port == Some(443)
                    }
                };
                scheme_matches(scheme.as_deref().unwrap_or(page.scheme()), url.scheme())
                    && is_host
                    && is_port
            }
        }
    }
}

fn scheme_matches(source_scheme: &str, url_scheme: &str) -> bool {
    source_scheme == url_scheme || source_scheme == "http" && url_scheme == "https"
}

fn path_matches(source_path: &str, url_path: &str) -> bool {
    source_path.is_empty() || is_in(&percent_decoded(url_path), &percent_decoded(source_path))
}

/// Decodes percent-encoding, to bytes that are only compared.
fn percent_decoded(path: &str) -> String {
    let mut out = Vec::with_capacity(path.len());
    let bytes = path.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let hex = path
            .get(at + 1..at + 3)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The sources to add to a directive of the page at `at` for `kinds`, in addition to `source`: the proxied URLs, in full.
pub(crate) fn additions(
    rules: &Rules,
    at: &PageLocation,
    source: &Source,
    kinds: Kinds,
) -> Vec<String> {
    if *source == Source::SelfKeyword && at.is_named() {
        return vec![at.original.origin().ascii_serialization()];
    }
    let Source::Host {
        scheme,
        host,
        is_wild,
        port,
        path,
    } = source
    else {
        return Vec::new();
    };
    let source_scheme = scheme.as_deref().unwrap_or(at.original.scheme());
    let home = at.seen.origin().ascii_serialization();
    let mut out = Vec::new();
    for entry in &rules.entries {
        let is_port = match port {
            Port::Any => true,
            Port::Default => entry.port == entry.scheme.default_port(),
            Port::Of(port) => entry.port == *port,
        };
        let name = match &entry.pattern {
            HostPattern::Exact(name)
                if *is_wild && name != host && host_name::is_in_zone(name, host) =>
            {
                name
            }
            pattern if !is_wild && pattern.matches(host) => host,
            _ => continue,
        };
        if is_port && scheme_matches(source_scheme, entry.scheme.name()) {
            out.extend(match entry.is_alias() {
                true => alias_source(rules, entry, path),
                // In its pages nothing is proxied under the site's name.
                false if at.is_named() => None,
                false => host_rule_source(rules, &home, entry, name, path, kinds),
            });
        }
    }
    if at.is_named() {
        return out;
    }
    let is_plain = source_scheme == "https" && *port == Port::Default && !is_wild;
    let passive = kinds.and(Kinds::PASSIVE);
    if is_plain
        && !passive.is_empty()
        && host_name::check(host).is_ok()
        && let Ok(RuleMatch::Discovered) = rules.match_host(Scheme::Https, host, 443, "/")
        && let Some(keys) = &rules.keys
    {
        let capability = keys.sign(Subject {
            site: rules.site_origin(),
            scheme: 's',
            host,
            port: 443,
            target: None,
        });
        let path = if path.is_empty() { "/" } else { path };
        let head = rules.head(&capability, Scheme::Https, host, 443);
        out.extend(head.map(|head| written(format!("{home}{head}{path}"))));
    }
    out
}

/// The source of a host with an alias; for any kind, since the requests of its scripts depend on the alias.
fn alias_source(rules: &Rules, entry: &HostRule, path: &str) -> Option<String> {
    let path = narrower(&entry.path, path)?;
    let host = entry.pattern.name();
    rules
        .match_host(entry.scheme, host, entry.port, path)
        .ok()?;
    let own = format!("{}://{host}:{}", entry.scheme.name(), entry.port);
    let named = rules.alias_of(&Url::parse(&own).ok()?)?;
    Some(written(format!("{}{path}", named.origin())))
}

/// The same for one entry, under the page's origin, `home`.
fn host_rule_source(
    rules: &Rules,
    home: &str,
    entry: &HostRule,
    host: &str,
    path: &str,
    kinds: Kinds,
) -> Option<String> {
    let path = narrower(&entry.path, path)?;
    // Entries of a denied or merged host are not used.
    rules
        .match_host(entry.scheme, host, entry.port, path)
        .ok()?;
    if !kinds.and(kinds_without_capability(entry)).is_empty() {
        let head = rules.head(LISTED, entry.scheme, host, entry.port)?;
        return Some(written(format!("{home}{head}{path}")));
    }
    // Scripts of a shared host have a capability for each URL: a source can be written for one that is listed in full.
    let is_exact =
        kinds.has(Kind::Script) && entry.needs_url_capability(Kind::Script) && !path.ends_with('/');
    let url = Url::parse(&format!(
        "{}://{host}:{}{path}",
        entry.scheme.name(),
        entry.port
    ))
    .ok()?;
    match rules.verdict(&url, Kind::Script, ReferenceSource::Site) {
        Verdict::Rewrite(path) if is_exact => Some(written(format!("{home}{path}"))),
        _ => None,
    }
}

/// The kinds that are proxied without a capability for each URL.
fn kinds_without_capability(entry: &HostRule) -> Kinds {
    entry
        .kinds
        .iter()
        .filter(|kind| !entry.needs_url_capability(*kind))
        .collect()
}

/// The narrower of two paths of a host, if one contains the other; an empty path matches all.
fn narrower<'p>(listed: &'p str, source: &'p str) -> Option<&'p str> {
    if source.is_empty() || is_in(listed, source) {
        Some(listed)
    } else if is_in(source, listed) {
        Some(source)
    } else {
        None
    }
}

/// Encodes the characters that separate directives and policies.
fn written(source: String) -> String {
    if source.contains([';', ',']) {
        source.replace(';', "%3B").replace(',', "%2C")
    } else {
        source
    }
}
