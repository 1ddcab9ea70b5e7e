//! Hosts whose scripts or sheets a page of the site does not allow, but would allow under the site's name: they are not served there.
//!
//! `script-src 'self'` blocks an injected `https://cdn.test/old.js`. Moved, the same script is the site's own to the browser, and no
//! source expression means "the site, but for this path". So, once one page is seen under such a policy, all pages of the site get the
//! scripts of that entry from the host itself. A page that allows the host loads them as without us. For a page that does not, the
//! browser refuses them, as it checks the policy again at a redirect (CSP §6.7.2.8). Serving them only to some pages would not help: the
//! browser's cache shares what one page loaded under the site's name with the others.
//!
//! The same holds for sheets, which can read a page by what they load, unless the page allows every inline sheet: an attacker that can
//! inject a link can then inject the sheet itself. Discovered hosts have no entry, and a page may allow some of them. So its policy is
//! stored, and each host is checked against it when it is requested.

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

/// The kinds that are guarded: what acts in a page, or reads it. Pictures, fonts and films do neither.
const KINDS: [Kind; 2] = [Kind::Script, Kind::Style];

/// Different sources of sheets that are distinguished; with one more, no sheet of a discovered host is allowed.
const MAX_SOURCES: usize = 64;
/// The longest of them, bytes.
const MAX_SOURCES_BYTES: usize = 1024;
/// The sources that let in nothing of other hosts.
const SELF_ONLY: &str = "'self'";

/// The word of a guarded entry of sheets ends so; that of one of scripts is its number alone.
const STYLE_SUFFIX: &str = "-style";
/// The word of sources begins so.
const SOURCES: &str = "from:";

/// What is not served under the site's name: of entries of the rules, at most all of them, and of hosts that are discovered.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CspGuard {
    /// Which entry, and as what.
    listed: BTreeSet<(usize, Kind)>,
    /// From where pages let sheets in that have the site's own and not everybody's: sources, parted by commas.
    discovered: BTreeSet<String>,
}

impl CspGuard {
    /// What the head of `page`, one of the site's own answers, requires to be guarded, as it is sent to the client; nothing if it is no
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

    /// The guard that all policies of a page give, from its head and its text.
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

    /// These and `more`.
    pub fn extend(&mut self, more: Self) {
        self.listed.extend(more.listed);
        self.discovered.extend(more.discovered);
        if self.discovered.len() > MAX_SOURCES {
            self.discovered = BTreeSet::from([SELF_ONLY.to_owned()]);
        }
    }

    /// They as words without blanks, to be written down and [read](Self::parse) again: by rules of another [tag](Rules::tag) they would
    /// mean others.
    pub fn tokens(&self) -> impl Iterator<Item = String> + '_ {
        let listed = self.listed.iter().map(|(at, kind)| match kind {
            Kind::Style => format!("{at}{STYLE_SUFFIX}"),
            _ => at.to_string(),
        });
        let discovered = self.discovered.iter();
        listed.chain(discovered.map(|sources| [SOURCES, sources].concat()))
    }

    /// Reads words; `None` if one is none of these.
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

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.discovered.is_empty()
    }

    /// As what the thing at `url`, in its own place, is among them.
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

/// Whether anything is ever guarded as `kind`.
pub(crate) fn can_be_guarded(kind: Kind) -> bool {
    KINDS.contains(&kind)
}

/// Whether things of `entry` are under the site's name as `kind`; those of a host with a name of its own are not.
fn is_proxied_path(entry: &HostRule, kind: Kind) -> bool {
    entry.kinds.has(kind) && !entry.is_alias()
}

/// Whether a browser may run scripts of this answer if it opens it: what has no type may turn out to be a page.
pub fn may_run_scripts(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let text = String::from_utf8_lossy(kind.unwrap_or_default()).to_ascii_lowercase();
    let essence = text.split(';').next().unwrap_or_default().trim();
    essence.is_empty() || essence == "text/html" || essence.ends_with("xml")
}

/// Whether `policies` let in `entry` as `kind` where it is moved to, and not where it is.
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
        // A policy that names folders of a host trusts it with sheets; sheets beside them are no stranger's.
        Kind::Style => allow_host(policies, &own, kind),
        _ => policies.allow(&own, kind, CspCredentials::default()),
    };
    is_guard_needed(policies, &moved, kind) && !lets_in_own
}

/// Whether `policies` let in anything as `kind` from the host of `url`.
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

/// Whether `policies` let in `moved`, a thing under the site's name, and not whatever else stands in the page.
fn is_guard_needed(policies: &Policies, moved: &Url, kind: Kind) -> bool {
    let is_inline = kind == Kind::Style && policies.allows_effect(Inline::Style(None));
    policies.allow_rewritten(moved, kind, CspCredentials::default()) && !is_inline
}

/// The sources from which each of `policies` lets sheets in, if they let in those of hosts that are discovered where these are moved to,
/// and not all of them where they are.
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
    /// On what ground `url` may be moved, if at all.
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
            // A page that allows inline sheets needs no link to one.
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
