//! A proxied URL that was opened: what is fetched, as what it may be served, and where its redirects may lead.

use url::Url;

use crate::kind::{Kind, Kinds};
use crate::load::Load;
use crate::rules::config::Scheme;
use crate::rules::host_name;
use crate::rules::refusal::Refusal;
use crate::rules::verdict::ReferenceSource;
use crate::rules::{RuleMatch, Rules};
use crate::urls::target_check::{check_length, check_target};

/// On what ground a moved URL was opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Grant {
    /// Its host is listed.
    Listed,
    /// It bears a capability for its origin.
    Origin,
    /// It bears a capability for itself.
    Url,
    /// Its host has a name of its own, and was requested by that.
    Alias,
}

/// A moved URL that was opened: what is to be fetched, and as what it may be served.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProxiedUrl {
    pub(crate) grant: Grant,
    pub(crate) scheme: Scheme,
    pub(crate) kinds: Kinds,
    pub(crate) is_listed: bool,
    pub(crate) url: Url,
    /// What stands before the path in the moved URL.
    pub(crate) head: String,
}

impl ProxiedUrl {
    /// On what ground it was opened.
    pub fn grant(&self) -> Grant {
        self.grant
    }

    /// Whether its host is listed, on whatever ground it was opened.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Whether it is under a name of its host's own, and not under the site's.
    pub fn is_alias(&self) -> bool {
        self.grant == Grant::Alias
    }

    /// The scheme of requests to it.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host's name, in lower case.
    pub fn host(&self) -> &str {
        self.url.host_str().expect("a proxied URL has a host")
    }

    /// The port, also where it is the scheme's own.
    pub fn port(&self) -> u16 {
        self.url.port().unwrap_or(self.scheme.default_port())
    }

    /// The value of the Host field: the name, and the port if it is not the scheme's own.
    pub fn authority(&self) -> &str {
        self.url.authority()
    }

    /// Path and query, the very bytes that came.
    pub fn target(&self) -> &str {
        &self.url[url::Position::BeforePath..]
    }

    /// The URL in its own place.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// As what it may be served.
    pub fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// The same, but as none of `kinds`.
    #[must_use]
    pub fn without(self, kinds: Kinds) -> Self {
        let kinds = self.kinds.less(kinds);
        Self { kinds, ..self }
    }

    /// The same, as no more than `other` may be loaded as.
    fn restrict_to(self, other: &Self) -> Self {
        let kinds = self.kinds.and(other.kinds);
        Self { kinds, ..self }
    }

    /// The same, if redirects through `hops` led to what is there, which `load` is to get: as no more than each of them may be loaded as.
    /// `guarded` gives the kinds that are not served from a URL; see [`CspGuard`](crate::csp::guard::CspGuard). `None` if the browser must
    /// follow such redirects itself; see [`RedirectState::decide`](crate::response::redirect::RedirectState::decide).
    pub fn after_redirects(
        &self,
        rules: &Rules,
        load: Load,
        hops: &[Url],
        guarded: impl Fn(&Url) -> Kinds,
    ) -> Option<Self> {
        let mut last = self.clone();
        for hop in hops {
            let next = last.redirect_target(rules, hop).ok()?;
            let kinds = guarded(next.url());
            let next = next.without(kinds);
            if !may_follow(load, &last, &next) {
                return None;
            }
            last = next;
        }
        Some(self.clone().restrict_to(&last))
    }

    /// The author of the references in it, if it is a sheet.
    pub fn reference_source(&self) -> ReferenceSource {
        if self.is_alias() {
            ReferenceSource::Alias
        } else if self.is_listed {
            ReferenceSource::Listed
        } else {
            ReferenceSource::Discovered
        }
    }

    /// What is fetched when the host sends us on to `next`: more of the same origin, or what is listed; and never as
    /// more than this was opened as.
    ///
    /// # Errors
    ///
    /// Why that is not fetched here.
    pub(crate) fn redirect_target(&self, rules: &Rules, next: &Url) -> Result<Self, Refusal> {
        let mut url = next.clone();
        url.set_fragment(None);
        let host = url.host_str().unwrap_or_default();
        let scheme = Scheme::of_name(url.scheme()).ok_or(Refusal::Location)?;
        let port = url.port().unwrap_or(scheme.default_port());
        host_name::check(host)?;
        check_length(&url[url::Position::BeforePath..])?;
        check_target(rules, &url[url::Position::BeforePath..])?;
        let is_same_origin = url.origin() == self.url.origin();
        let (is_listed, kinds) = match rules.match_host(scheme, host, port, url.path())? {
            RuleMatch::Listed(entry) if entry.is_alias() => {
                let (host, place) = (host.to_owned(), next.to_string());
                return Err(Refusal::HasAlias { host, place });
            }
            RuleMatch::Listed(entry) if is_same_origin || !entry.shared => (true, entry.kinds),
            // A whole host that many share is no more trusted with scripts when another host names it.
            RuleMatch::Listed(entry) => (true, entry.kinds.without(Kind::Script)),
            RuleMatch::Discovered if is_same_origin => (false, Kinds::PASSIVE),
            RuleMatch::Discovered => {
                let host = host.to_owned();
                return Err(Refusal::NotListed { host });
            }
        };
        let kinds = kinds.and(self.kinds);
        if kinds.is_empty() {
            let host = host.to_owned();
            return Err(Refusal::KindNotListed {
                kind: Kind::Script,
                host,
            });
        }
        Ok(Self {
            grant: self.grant,
            scheme,
            kinds,
            is_listed,
            url,
            head: self.head.clone(),
        })
    }

    /// Where `target` (path and query) of the same origin is under the same capability.
    pub(crate) fn sibling_path(&self, target: &str) -> String {
        format!("{}{target}", self.head)
    }

    /// Its path and query under the site's name; in full where its host has one of its own.
    pub fn path(&self) -> String {
        self.sibling_path(self.target())
    }
}

/// Whether a redirect of `moved` to `next` is followed here for `load`: what a module imports is named relative to where it came from, and
/// the browser would not know.
pub(crate) fn may_follow(load: Load, moved: &ProxiedUrl, next: &ProxiedUrl) -> bool {
    load.expected != Some(Kind::Script) || has_same_directory(moved, next)
}

/// Whether relative references mean the same from both.
fn has_same_directory(one: &ProxiedUrl, other: &ProxiedUrl) -> bool {
    let folder = |moved: &ProxiedUrl| moved.url().join(".").ok();
    folder(one) == folder(other)
}
