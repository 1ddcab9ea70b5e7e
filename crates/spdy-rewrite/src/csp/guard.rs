//! Hosts whose scripts or style sheets a page's policy blocks on the host, but would allow under the site's name: these are not
//! served under the site's name.
//!
//! `script-src 'self'` blocks an injected `https://cdn.test/old.js`. Under a proxied URL, the same script belongs to the site from
//! the browser's view, and no source expression means "the site, except this path". So, after one page with such a policy was seen,
//! all pages of the site get the scripts of that entry from the host itself. A page that allows the host loads them as without
//! rewriting. For a page that does not, the browser blocks them, because it checks the policy again at a redirect (CSP §6.7.2.8).
//! Serving them only to some pages would not help: the browser's cache shares a resource under the site's name between all pages.
//!
//! The same applies to style sheets, which can exfiltrate a page by the URLs that they load, unless the page allows every inline
//! style sheet: an attacker that can inject a link can then inject the style sheet itself. Discovered hosts have no entry, and a
//! page may allow some of them. So the page's policy is stored, and each host is checked against it when it is requested.

use std::collections::BTreeSet;

use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue};
use url::Url;

use crate::csp::inline::Inline;
use crate::csp::source::Source;
use crate::csp::{CspCredentials, Policies};
use crate::kind::{Kind, Kinds};
use crate::rules::config::Scheme;
use crate::rules::host_name::HostPattern;
use crate::rules::host_rule::HostRule;
use crate::rules::url_form::LISTED;
use crate::rules::{RuleMatch, Rules};

/// The guarded kinds: those that can act in a page, or read it. Images, fonts and media can do neither.
const KINDS: [Kind; 2] = [Kind::Script, Kind::Style];

/// Limit of distinct sources of style sheets; above it, no style sheet of a discovered host is allowed.
const MAX_SOURCES: usize = 64;
/// Maximum length of such a source, bytes.
const MAX_SOURCES_BYTES: usize = 1024;
/// The sources that allow nothing from other hosts.
const SELF_ONLY: &str = "'self'";

/// Suffix of the token of a guarded style sheet entry; the token of a script entry is only its number.
const STYLE_SUFFIX: &str = "-style";
/// Prefix of the token of sources.
const SOURCES: &str = "from:";

/// Resources that are not served under the site's name: of entries of the rules (at most all of them), and of discovered hosts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CspGuard {
    /// Index and kind of each guarded entry.
    listed: BTreeSet<(usize, Kind)>,
    /// The style sheet sources of pages that allow the site but not all hosts, separated by commas.
    discovered: BTreeSet<String>,
}

impl CspGuard {
    /// The guard required by the head of `page`, a response of the site's own, as sent to the client; empty if it is not a
    /// document.
    pub fn from_head(rules: &Rules, page: &Url, headers: &HeaderMap) -> Self {
        let mut entries = rules.entries.iter();
        let is_any = rules.discovers()
            || entries.any(|entry| KINDS.into_iter().any(|kind| is_proxied_path(entry, kind)));
        if !is_any || !may_run_scripts(headers) {
            return Self::default();
        }
        let mut policies = Policies::none(page);
        for value in headers.get_all(CONTENT_SECURITY_POLICY) {
            policies.add(rules, &String::from_utf8_lossy(value.as_bytes()));
        }
        Self::from_policies(rules, &policies)
    }

    /// The guard required by all policies of a page, from its head and its text.
    pub(crate) fn from_policies(rules: &Rules, policies: &Policies) -> Self {
        if policies.is_empty() {
            return Self::default(); // most pages
        }
        let entries = rules.entries.iter().enumerate();
        let pairs = entries.flat_map(|(at, entry)| KINDS.map(|kind| (at, entry, kind)));
        let listed = pairs.filter(|(_, entry, kind)| {
            is_proxied_path(entry, *kind)
                && allows_only_when_rewritten(rules, policies, entry, *kind)
        });
        Self {
            listed: listed.map(|(at, _, kind)| (at, kind)).collect(),
            discovered: sources_of_sheets(rules, policies),
        }
    }

    /// Adds the guard `more`.
    pub fn extend(&mut self, more: Self) {
        self.listed.extend(more.listed);
        self.discovered.extend(more.discovered);
        if self.discovered.len() > MAX_SOURCES {
            self.discovered = BTreeSet::from([SELF_ONLY.to_owned()]);
        }
    }

    /// The guard as tokens without spaces, to be stored and [parsed](Self::parse) again. They are only valid for rules with the
    /// same [tag](Rules::tag).
    pub fn tokens(&self) -> impl Iterator<Item = String> + '_ {
        let listed = self.listed.iter().map(|(at, kind)| match kind {
            Kind::Style => format!("{at}{STYLE_SUFFIX}"),
            _ => at.to_string(),
        });
        let discovered = self.discovered.iter();
        listed.chain(discovered.map(|sources| [SOURCES, sources].concat()))
    }

    /// Parses tokens; `None` if one is invalid.
    pub fn parse<'w>(words: impl Iterator<Item = &'w str>) -> Option<Self> {
        let mut read = Self::default();
        for word in words {
            if let Some(sources) = word.strip_prefix(SOURCES) {
                read.discovered.insert(sources.to_owned());
                continue;
            }
            let (at, kind) = match word.strip_suffix(STYLE_SUFFIX) {
                Some(at) => (at, Kind::Style),
                None => (word, Kind::Script),
            };
            read.listed.insert((at.parse().ok()?, kind));
        }
        Some(read)
    }

    /// True if nothing is guarded.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.discovered.is_empty()
    }

    /// The kinds as which the resource at `url`, on its own host, is guarded.
    pub fn guarded_kinds(&self, rules: &Rules, url: &Url) -> Kinds {
        if self.is_empty() {
            return Kinds::NONE;
        }
        let lets_in = |sources: &String| {
            let mut sources = sources.split(',').filter_map(Source::parse);
            sources.any(|source| source.matches_host(rules.site(), url))
        };
        match rules.match_url(url) {
            Some(RuleMatch::Listed(entry)) => {
                let mut all = rules.entries.iter();
                let at = all.position(|one| std::ptr::eq(one, entry));
                let is_it = |kind: &Kind| at.is_some_and(|at| self.listed.contains(&(at, *kind)));
                KINDS.into_iter().filter(is_it).collect()
            }
            Some(RuleMatch::Discovered) if !self.discovered.iter().all(lets_in) => {
                Kinds::NONE.with(Kind::Style)
            }
            _ => Kinds::NONE,
        }
    }
}

/// True if `kind` can be guarded.
pub(crate) fn can_be_guarded(kind: Kind) -> bool {
    KINDS.contains(&kind)
}

/// True if resources of `entry` are served under the site's name as `kind`; those of a host with an alias are not.
fn is_proxied_path(entry: &HostRule, kind: Kind) -> bool {
    entry.kinds.has(kind) && !entry.is_alias()
}

/// True if a browser may run scripts of this response when it opens it: without a type it could be a page.
pub fn may_run_scripts(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let text = String::from_utf8_lossy(kind.unwrap_or_default()).to_ascii_lowercase();
    let essence = text.split(';').next().unwrap_or_default().trim();
    essence.is_empty() || essence == "text/html" || essence.ends_with("xml")
}

/// True if `policies` allow `entry` as `kind` under its proxied URL, but not on its host.
fn allows_only_when_rewritten(
    rules: &Rules,
    policies: &Policies,
    entry: &HostRule,
    kind: Kind,
) -> bool {
    let host = match &entry.pattern {
        HostPattern::Exact(host) => host.clone(),
        HostPattern::Wildcard(zone) => format!("any.{zone}"),
    };
    let (scheme, path) = (entry.scheme, &entry.path);
    let own = Url::parse(&format!("{}://{host}:{}{path}", scheme.name(), entry.port));
    let Some(head) = rules.head(LISTED, scheme, &host, entry.port) else {
        return false;
    };
    let moved = policies.at.seen.join(&format!("{head}{path}"));
    let (Ok(own), Ok(moved)) = (own, moved) else {
        return false;
    };
    let lets_in_own = match kind {
        // A policy that lists folders of a host trusts that host for style sheets, so other style sheets of the host need no guard.
        Kind::Style => allow_host(policies, &own, kind),
        _ => policies.allow(&own, kind, CspCredentials::default()),
    };
    is_guard_needed(policies, &moved, kind) && !lets_in_own
}

/// True if `policies` allow any resource of the host of `url` as `kind`.
fn allow_host(policies: &Policies, url: &Url, kind: Kind) -> bool {
    let page = &policies.at.original;
    policies.original.iter().all(|policy| {
        let sources = policy.sources(kind);
        sources.is_none_or(|words| {
            let mut sources = words.iter().filter_map(|word| Source::parse(word));
            sources.any(|source| source.matches_host(page, url))
        })
    })
}

/// True if `policies` allow `moved`, a resource under the site's name, but not any inline content.
fn is_guard_needed(policies: &Policies, moved: &Url, kind: Kind) -> bool {
    let is_inline = kind == Kind::Style && policies.allows_effect(Inline::Style(None));
    policies.allow_rewritten(moved, kind, CspCredentials::default()) && !is_inline
}

/// The sources from which each of `policies` allows style sheets, if they allow discovered hosts under the proxied URL, but not all
/// of them on their hosts.
fn sources_of_sheets(rules: &Rules, policies: &Policies) -> BTreeSet<String> {
    let any = || Url::parse("https://any.invalid/").ok();
    let moved = || {
        let head = rules.head(LISTED, Scheme::Https, "any.invalid", 443)?;
        policies.at.seen.join(&format!("{head}/")).ok()
    };
    let (true, Some(any), Some(moved)) = (rules.discovers(), any(), moved()) else {
        return BTreeSet::new();
    };
    if !is_guard_needed(policies, &moved, Kind::Style) {
        return BTreeSet::new();
    }
    let mut out = BTreeSet::new();
    for words in policies
        .original
        .iter()
        .filter_map(|one| one.sources(Kind::Style))
    {
        let parsed = words
            .iter()
            .filter_map(|word| Some((word, Source::parse(word)?)));
        let sources: Vec<_> = parsed.collect();
        if sources
            .iter()
            .any(|(_, source)| source.matches(rules.site(), &any))
        {
            continue;
        }
        let words: Vec<_> = sources.into_iter().map(|(word, _)| word.as_str()).collect();
        let text = words.join(",");
        out.insert(match text.len() > MAX_SOURCES_BYTES {
            true => SELF_ONLY.to_owned(),
            false => text,
        });
    }
    out
}

impl Rules {
    /// The rule by which `url` may be proxied, if any.
    fn match_url(&self, url: &Url) -> Option<RuleMatch<'_>> {
        let scheme = Scheme::of_name(url.scheme())?;
        let port = url.port().unwrap_or(scheme.default_port());
        self.match_host(scheme, url.host_str()?, port, url.path())
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::capability::Keys;
    use crate::rules::config::{Config, HostConfig};

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn rules() -> Rules {
        let config = Config {
            discover: true,
            hosts: vec![HostConfig::all_kinds("cdn.test")],
            ..Config::default()
        };
        let keys = Keys::from_secrets(&[7; 32], None).unwrap();
        Rules::compile(&url("https://www.site.test"), &config, Some(keys)).unwrap()
    }

    fn by(rules: &Rules, policy: &str) -> CspGuard {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_str(policy).unwrap();
        headers.insert(CONTENT_SECURITY_POLICY, value);
        CspGuard::from_head(rules, &url("https://www.site.test/"), &headers)
    }

    #[test]
    fn resource_allowed_only_under_site_is_guarded() {
        let rules = rules();
        for (policy, of_cdn, of_open, of_other) in [
            ("style-src 'self'", "style", "style", "style"),
            ("default-src 'self'", "style script", "style", "style"),
            ("style-src 'self' https://open.test", "style", "", "style"),
            (
                "style-src 'self' cdn.test *.test, style-src 'self' open.test",
                "style",
                "",
                "style",
            ),
            (
                "style-src 'self' 'unsafe-inline' 'nonce-n'",
                "style",
                "style",
                "style",
            ),
            ("style-src 'self' cdn.test", "", "style", "style"),
            ("style-src 'self' cdn.test/css/", "", "style", "style"),
            ("style-src 'self' open.test/css/", "style", "", "style"),
            // A page that allows inline style sheets needs no link to one.
            ("style-src 'self' 'unsafe-inline'", "", "", ""),
            ("style-src 'self' https:", "", "", ""),
            ("default-src 'self'; style-src *", "script", "", ""),
            ("default-src 'none'", "", "", ""),
            ("style-src https://open.test", "", "", ""),
            ("img-src 'self'; font-src 'self'", "", "", ""),
        ] {
            let guarded = by(&rules, policy);
            for (at, expected) in [
                ("https://cdn.test/a", of_cdn),
                ("https://open.test/a", of_open),
                ("https://other.test/a", of_other),
            ] {
                let kinds = guarded.guarded_kinds(&rules, &url(at));
                let names: Vec<_> = kinds.iter().map(Kind::name).collect();
                assert_eq!(names.join(" "), expected, "{policy}: {at}");
            }
            let words: Vec<_> = guarded.tokens().collect();
            let read = CspGuard::parse(words.iter().map(String::as_str));
            assert_eq!(read.as_ref(), Some(&guarded), "{words:?}");
        }
    }

    #[test]
    fn csp_sources_are_limited_then_all_discovered_are_guarded() {
        let (rules, open) = (rules(), url("https://open.test/a.css"));
        let mut guarded = CspGuard::default();
        for at in 0..=MAX_SOURCES {
            assert!(guarded.guarded_kinds(&rules, &open).is_empty(), "{at}");
            let policy = format!("style-src 'self' cdn.test open.test a{at}.test");
            guarded.extend(by(&rules, &policy));
        }
        assert!(guarded.guarded_kinds(&rules, &open).has(Kind::Style));
        assert_eq!(guarded.tokens().count(), 1);
        let long = format!("style-src 'self' open.test {}.test", "a".repeat(1024));
        assert!(
            by(&rules, &long)
                .guarded_kinds(&rules, &open)
                .has(Kind::Style)
        );
    }
}
