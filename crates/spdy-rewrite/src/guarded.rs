//! Hosts whose scripts a page of the site does not allow, and would get under the site's name: those are not served there.
//!
//! `script-src 'self'` blocks `https://cdn.test/old.js` wherever somebody injects it. Moved, the same script is the site's own to the
//! browser, and no source says "the site, but for this path". So, once one page is seen under such a policy, all pages of the site get
//! the scripts of that entry from the host itself: one that allows the host loads them as it would without us, and the one that does
//! not is refused by its browser, which asks its policy again where a request is sent on (CSP §6.7.2.8). To serve them to some pages
//! alone would not do: what one page loaded under the site's name, a browser's cache has for the others.

use std::collections::BTreeSet;

use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue};
use url::Url;

use crate::config::Scheme;
use crate::csp::{Credentials, Policies};
use crate::entry::Entry;
use crate::form::LISTED;
use crate::host::Pattern;
use crate::kind::Kind;
use crate::rules::{Rules, Standing};

/// Entries of rules whose scripts are not served under the site's name; at most all of them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Guarded(BTreeSet<usize>);

impl Guarded {
    /// What the head of `page`, one of the site's own answers, asks to be guarded, as it is sent to the client; nothing if it is no
    /// document.
    pub fn by_head(rules: &Rules, page: &Url, headers: &HeaderMap) -> Self {
        if !rules.entries.iter().any(has_scripts) || !is_document(headers) {
            return Self::default();
        }
        let mut policies = Policies::none(page);
        for value in headers.get_all(CONTENT_SECURITY_POLICY) {
            policies.add(rules, &String::from_utf8_lossy(value.as_bytes()));
        }
        Self::by_policies(rules, &policies)
    }

    /// The same by all that is known of a page.
    pub(crate) fn by_policies(rules: &Rules, policies: &Policies) -> Self {
        let entries = rules.entries.iter().enumerate();
        let scripts = entries.filter(|(_, entry)| has_scripts(entry));
        let guarded = scripts.filter(|(_, entry)| lets_in(rules, policies, entry));
        Self(guarded.map(|(at, _)| at).collect())
    }

    /// These and `more`.
    pub fn extend(&mut self, more: Self) {
        self.0.extend(more.0);
    }

    /// Where they stand in the rules, to be written down and [read](Self::from_iter) again: by rules of another [tag](Rules::tag) they
    /// would be others.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether scripts at `url`, in its own place, are among them.
    pub fn has(&self, rules: &Rules, url: &Url) -> bool {
        if self.is_empty() {
            return false;
        }
        let Some(entry) = rules.listed(url) else {
            return false;
        };
        let mut all = rules.entries.iter();
        let at = all.position(|one| std::ptr::eq(one, entry));
        at.is_some_and(|at| self.0.contains(&at))
    }
}

impl FromIterator<usize> for Guarded {
    fn from_iter<I: IntoIterator<Item = usize>>(places: I) -> Self {
        Self(places.into_iter().collect())
    }
}

/// Whether scripts of `entry` are under the site's name; those of a host with a name of its own are not.
fn has_scripts(entry: &Entry) -> bool {
    entry.kinds.has(Kind::Script) && !entry.is_named()
}

/// Whether a browser may run scripts of this answer if it opens it: what has no type may turn out to be a page.
pub fn is_document(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let text = String::from_utf8_lossy(kind.unwrap_or_default()).to_ascii_lowercase();
    let essence = text.split(';').next().unwrap_or_default().trim();
    essence.is_empty() || essence == "text/html" || essence.ends_with("xml")
}

/// Whether `policies` let scripts of `entry` run where they are moved to, and not where they are.
fn lets_in(rules: &Rules, policies: &Policies, entry: &Entry) -> bool {
    let host = match &entry.pattern {
        Pattern::Exact(host) => host.clone(),
        Pattern::Under(zone) => format!("any.{zone}"),
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
    let bare = Credentials::default();
    policies.allow_moved(&moved, Kind::Script, bare) && !policies.allow(&own, Kind::Script, bare)
}

impl Rules {
    /// The entry that governs `url`, if it is listed.
    fn listed(&self, url: &Url) -> Option<&Entry> {
        let scheme = Scheme::of_name(url.scheme())?;
        let port = url.port().unwrap_or(scheme.default_port());
        match self.standing(scheme, url.host_str()?, port, url.path()) {
            Ok(Standing::Listed(entry)) => Some(entry),
            _ => None,
        }
    }
}
