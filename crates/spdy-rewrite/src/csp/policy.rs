//! Content-Security-Policy (CSP Level 3): parses what it allows, and adds sources so that everything that it allows of a proxied
//! host is also allowed under the proxied URL.
//!
//! ```text
//!  img-src 'self' https://cdn.test/a/
//!  img-src 'self' https://cdn.test/a/ https://www.site.test/.spdy/1/-/s/cdn.test/a/
//! ```
//!
//! A host with an alias gets its alias as a source, for all loads and requests of its pages. In the host's own page `'self'` is
//! also written in full, because there it means the alias.
//!
//! A host's own source stays, for redirects and for unproxied resources. Nothing is widened: the path of the added source is that
//! of the source, or of the rules' entry, whichever is narrower. A source for many hosts (`*.cdn.test`) can have a path only for
//! the hosts that the rules list; resources that are then not allowed are not rewritten.

use http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY_REPORT_ONLY, HeaderMap, HeaderValue,
};
use url::Url;

use crate::csp::page_location::PageLocation;
use crate::csp::source::{Source, additions};
use crate::kind::{Kind, Kinds};
use crate::rules::Rules;

/// Attributes of an element that a policy may check.
#[derive(Clone, Copy, Debug, Default)]
pub struct CspCredentials<'a> {
    /// Its `nonce`.
    pub nonce: Option<&'a str>,
    /// Its `integrity`.
    pub integrity: Option<&'a str>,
    /// True if another script imports it, which `'strict-dynamic'` trusts.
    pub imported: bool,
}

/// One policy: directives in order; the first with a name is used.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    directives: Vec<(String, Vec<String>)>,
}

impl Policy {
    pub(crate) fn parse(text: &str) -> Self {
        let mut directives: Vec<(String, Vec<String>)> = Vec::new();
        for directive in text.split(';') {
            let mut words = directive.split_ascii_whitespace().map(str::to_owned);
            if let Some(name) = words.next().map(|name| name.to_ascii_lowercase())
                && !directives
                    .iter()
                    .any(|(directive_name, _)| *directive_name == name)
            {
                directives.push((name, words.collect()));
            }
        }
        Self { directives }
    }

    /// The sources for `kind`; `None` if there are no restrictions.
    pub(crate) fn sources(&self, kind: Kind) -> Option<&[String]> {
        self.first_of(governing_directives(kind))
    }

    /// The sources of the first of these directives that is present.
    pub(crate) fn first_of(&self, names: &[&str]) -> Option<&[String]> {
        names.iter().find_map(|name| {
            let directive = self
                .directives
                .iter()
                .find(|(directive_name, _)| directive_name == name);
            directive.map(|(_, words)| words.as_slice())
        })
    }

    fn allows(&self, page: &Url, url: &Url, kind: Kind, credentials: CspCredentials<'_>) -> bool {
        let Some(sources) = self.sources(kind) else {
            return true;
        };
        if matches!(kind, Kind::Script | Kind::Style) && has_nonce(sources, credentials.nonce) {
            return true;
        }
        if kind == Kind::Script {
            if has_hashes(sources, credentials.integrity) {
                return true;
            }
            if has(sources, "'strict-dynamic'") {
                return credentials.imported;
            }
        }
        sources
            .iter()
            .filter_map(|source| Source::parse(source))
            .any(|source| source.matches(page, url))
    }
}

/// The directives that apply to a kind; the first that is present is used.
fn governing_directives(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Image => &["img-src", "default-src"],
        Kind::Style => &["style-src-elem", "style-src", "default-src"],
        Kind::Font => &["font-src", "default-src"],
        Kind::Media => &["media-src", "default-src"],
        Kind::Script => &["script-src-elem", "script-src", "default-src"],
        Kind::Document => &["frame-src", "child-src", "default-src"],
        Kind::Worker => &["worker-src", "child-src", "script-src", "default-src"],
    }
}

/// Directives in which named hosts also have a source: for requests of scripts, and for plug-ins.
const ALIAS_DIRECTIVES: [&str; 2] = ["connect-src", "object-src"];

/// The same for a page of a host with an alias: its forms may be sent to the alias, or to its host.
const ALIAS_PAGE_DIRECTIVES: [&str; 1] = ["form-action"];

/// The kinds to which a directive of the page at `at` applies; empty if the directive is not relevant here.
fn governed_kinds(at: &PageLocation, directive: &str) -> Kinds {
    let is_of = |names: &[&str]| {
        let mut names = names.iter();
        names.any(|name| directive.eq_ignore_ascii_case(name))
    };
    if is_of(&ALIAS_DIRECTIVES) || at.is_named() && is_of(&ALIAS_PAGE_DIRECTIVES) {
        return Kinds::NONE.with(Kind::Document);
    }
    let kinds = Kind::ALL.into_iter();
    kinds
        .filter(|kind| is_of(governing_directives(*kind)))
        .collect()
}

pub(crate) fn has(sources: &[String], keyword: &str) -> bool {
    sources
        .iter()
        .any(|source| source.eq_ignore_ascii_case(keyword))
}

pub(crate) fn has_nonce(sources: &[String], nonce: Option<&str>) -> bool {
    let is_it = |source: &String| {
        let named = after(source, "'nonce-").and_then(|rest| rest.strip_suffix('\''));
        named.is_some() && named == nonce
    };
    nonce.is_some_and(|nonce| !nonce.is_empty()) && sources.iter().any(is_it)
}

pub(crate) fn is_nonce(source: &str) -> bool {
    after(source, "'nonce-").is_some()
}

pub(crate) fn is_hash(source: &str) -> bool {
    ["'sha256-", "'sha384-", "'sha512-"]
        .iter()
        .any(|start| after(source, start).is_some())
}

/// The rest of `source` after `start`, compared without case.
fn after<'s>(source: &'s str, start: &str) -> Option<&'s str> {
    let (begun, rest) = source.split_at_checked(start.len())?;
    begun.eq_ignore_ascii_case(start).then_some(rest)
}

/// True if every hash of `integrity` is a source (CSP §6.7.2.3).
fn has_hashes(sources: &[String], integrity: Option<&str>) -> bool {
    let Some(integrity) = integrity else {
        return false;
    };
    let mut hashes = integrity
        .split_ascii_whitespace()
        .map(|hash| format!("'{}'", hash.split('?').next().unwrap_or_default()))
        .filter(|hash| is_hash(hash))
        .peekable();
    hashes.peek().is_some() && hashes.all(|hash| sources.contains(&hash))
}

/// The policies of one page, as received and as sent on.
#[derive(Clone, Debug)]
pub struct Policies {
    pub(crate) at: PageLocation,
    pub(crate) original: Vec<Policy>,
    rewritten: Vec<Policy>,
    /// The report-only policies, as received.
    pub(crate) reported: Vec<Policy>,
}

impl Policies {
    /// No policies, for `page`.
    pub fn none(page: &Url) -> Self {
        Self::none_at(PageLocation::of_site(page))
    }

    /// No policies, for the page at `at`.
    pub(crate) fn none_at(at: PageLocation) -> Self {
        Self {
            at,
            original: Vec::new(),
            rewritten: Vec::new(),
            reported: Vec::new(),
        }
    }

    /// True if there are no policies.
    pub fn is_empty(&self) -> bool {
        self.original.is_empty()
    }

    /// Rewrites the policies of the head of `page` in place, including report-only ones, and stores them.
    ///
    /// The page's URL is the one in the browser, under any of the site's names and schemes: the browser requests proxied URLs from
    /// there, so the policy must contain it.
    pub fn rewrite_head(rules: &Rules, page: &Url, headers: &mut HeaderMap) -> Self {
        Self::rewrite_head_at(PageLocation::of_site(page), rules, headers)
    }

    /// The same for the page at `at`.
    pub(crate) fn rewrite_head_at(
        at: PageLocation,
        rules: &Rules,
        headers: &mut HeaderMap,
    ) -> Self {
        let mut policies = Self::none_at(at);
        for (name, is_enforced) in [
            (CONTENT_SECURITY_POLICY, true),
            (CONTENT_SECURITY_POLICY_REPORT_ONLY, false),
        ] {
            let mut values = Vec::new();
            let mut changed = false;
            for value in headers.get_all(&name) {
                // Browsers parse a policy that is not text; this code does not, so nothing is rewritten under it.
                let Ok(text) = value.to_str() else {
                    if is_enforced {
                        policies.add_unreadable();
                    }
                    values.push(value.clone());
                    continue;
                };
                let rewritten = if is_enforced {
                    policies.add(rules, text)
                } else {
                    policies.reported.extend(parse_all(text));
                    rewrite_at(rules, &policies.at, text)
                };
                let rewritten = rewritten.and_then(|text| HeaderValue::from_str(&text).ok());
                changed |= rewritten.is_some();
                values.push(rewritten.unwrap_or_else(|| value.clone()));
            }
            if changed {
                headers.remove(&name);
                for value in values {
                    headers.append(name.clone(), value);
                }
            }
        }
        policies
    }

    /// Adds the policy of a field or a `meta`; returns the rewritten text, if it changed.
    pub fn add(&mut self, rules: &Rules, text: &str) -> Option<String> {
        let rewritten = rewrite_at(rules, &self.at, text);
        let now = rewritten.as_deref().unwrap_or(text);
        self.original.extend(parse_all(text));
        self.rewritten.extend(parse_all(now));
        rewritten
    }

    /// Adds a policy that browsers parse but this code does not: nothing is rewritten under it.
    pub fn add_unreadable(&mut self) {
        let none = Policy::parse("default-src 'none'");
        self.original.push(none.clone());
        self.rewritten.push(none);
    }

    /// True if the policies as received allow `url` as `kind`.
    pub fn allow(&self, url: &Url, kind: Kind, credentials: CspCredentials<'_>) -> bool {
        self.original
            .iter()
            .all(|policy| policy.allows(&self.at.original, url, kind, credentials))
    }

    /// True if the policies as sent on allow `url` as `kind`.
    pub fn allow_rewritten(&self, url: &Url, kind: Kind, credentials: CspCredentials<'_>) -> bool {
        self.rewritten
            .iter()
            .all(|policy| policy.allows(&self.at.seen, url, kind, credentials))
    }
}

/// Parses the policies of a field's value, which are separated by commas.
pub(crate) fn parse_all(text: &str) -> impl Iterator<Item = Policy> {
    text.split(',').map(Policy::parse)
}

/// Adds the sources of proxied hosts to `text`, one or more policies of `page` separated by commas; `None` if nothing changes.
pub fn rewrite(rules: &Rules, page: &Url, text: &str) -> Option<String> {
    rewrite_at(rules, &PageLocation::of_site(page), text)
}

fn rewrite_at(rules: &Rules, at: &PageLocation, text: &str) -> Option<String> {
    let mut changed = false;
    let policies: Vec<_> = text
        .split(',')
        .map(|policy| {
            let directives: Vec<_> = policy
                .split(';')
                .map(
                    |directive| match rewritten_directive(rules, at, directive) {
                        Some(added) => {
                            changed = true;
                            format!("{}{added}", directive.trim_end())
                        }
                        None => directive.to_owned(),
                    },
                )
                .collect();
            directives.join(";")
        })
        .collect();
    changed.then(|| policies.join(","))
}

fn rewritten_directive(rules: &Rules, at: &PageLocation, directive: &str) -> Option<String> {
    let mut words = directive.split_ascii_whitespace();
    let kinds = governed_kinds(at, words.next()?);
    if kinds.is_empty() {
        return None;
    }
    let words: Vec<&str> = words.collect();
    let sources: Vec<Source> = words.iter().copied().filter_map(Source::parse).collect();
    let mut out = String::new();
    let mut added = Vec::new();
    for source in &sources {
        for addition in additions(rules, at, source, kinds) {
            // Some paths cannot occur in a URL (`/../`), so the source may be present although it matches nothing.
            let is_there = words.contains(&addition.as_str())
                || Url::parse(&addition)
                    .is_ok_and(|url| sources.iter().any(|source| source.matches(&at.seen, &url)));
            if !is_there && !added.contains(&addition) {
                out.push(' ');
                out.push_str(&addition);
                added.push(addition);
            }
        }
    }
    (!out.is_empty()).then_some(out)
}
