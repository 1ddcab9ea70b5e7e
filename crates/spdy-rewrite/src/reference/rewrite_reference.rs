//! Rewrites one reference.
//!
//! The meaning of a reference follows from where it was written (`base`). The browser resolves it against `browser_base`, which
//! differs if the style sheet around it is proxied. So a rewritten reference is written only if the browser would not resolve it to
//! the proxied URL by itself, and an unchanged one is written in full if the browser would resolve it to another URL.

use url::Url;

use crate::csp::guard;
use crate::csp::{CspCredentials, Policies};
use crate::kind::Kind;
use crate::reference::origin_cache::OriginCache;
use crate::reference::site_facts::SiteFacts;
use crate::referrer::ReferrerScope;
use crate::rules::config::Scheme;
use crate::rules::refusal::Refusal;
use crate::rules::verdict::{ReferenceSource, SkipReason, Verdict};
use crate::rules::{RuleMatch, Rules};

/// A found reference.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reference {
    /// Its resolved URL; the text if that is not a URL.
    pub url: String,
    /// The kind as which it is used.
    pub kind: Kind,
    /// True if the page loads it by CORS, so that the page may read it: the request to its host then has the site's origin.
    pub by_cors: bool,
    /// True if the page loads it in a way that no hint can express: pinned, or by CORS with cookies. A browser does not use a preload for
    /// it (HTML, *consume a preloaded resource*).
    pub cannot_preload: bool,
    /// True if it is one of several candidates of which the browser loads one (`srcset`, `image-set()`).
    pub is_candidate: bool,
    /// Which hosts get a `Referer` when it is requested.
    pub referrer_scope: ReferrerScope,
    /// The path and query under the site's name if it is rewritten, or the full URL on an alias; otherwise the reason. A reference
    /// to the site over `http`, on a page over `https`, is rewritten to `https`.
    pub outcome: Result<String, SkipReason>,
}

impl Reference {
    /// True if it is rewritten to an alias of its host.
    #[must_use]
    pub fn is_alias(&self) -> bool {
        let host = |url: &str| Url::parse(url).ok()?.host_str().map(str::to_owned);
        match &self.outcome {
            Ok(place) if !place.starts_with('/') => host(place) != host(&self.url),
            _ => false,
        }
    }
}

/// The context of references, and the facts that decide how they are rewritten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReferenceContext<'a> {
    pub(crate) rules: &'a Rules,
    /// The URL of the page in the browser, against whose root a path from the root is resolved.
    pub(crate) page: &'a Url,
    pub(crate) base: &'a Url,
    /// The base against which the browser resolves references here, if it is not `base`.
    pub(crate) browser_base: Option<&'a Url>,
    /// True if a path from the root would be resolved to another host, because of `base`.
    pub(crate) absolute_urls: bool,
    pub(crate) source: ReferenceSource,
    /// True if only ASCII can be read with certainty here.
    pub(crate) ascii_only: bool,
    /// The page's policies; `None` for a style sheet, which does not know the pages that load it.
    pub(crate) policies: Option<&'a Policies>,
    /// Facts about the site, if a cache supplies them.
    pub(crate) seen: Option<&'a dyn SiteFacts>,
    /// Earlier decisions for the same base, if they are cached.
    pub(crate) origin_cache: Option<&'a OriginCache>,
}

/// The replacement for a reference, and its report.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ReferenceRewrite {
    /// The replacement; `None` leaves the text unchanged.
    pub(crate) written: Option<String>,
    /// For the report; `None` if nothing is fetched.
    pub(crate) reference: Option<Reference>,
}

impl ReferenceRewrite {
    fn nothing() -> Self {
        Self {
            written: None,
            reference: None,
        }
    }
}

impl ReferenceContext<'_> {
    /// Rewrites `text`, which is used as `kind`; `credentials` are those of the element.
    pub(crate) fn rewrite(
        &self,
        text: &str,
        kind: Kind,
        credentials: CspCredentials<'_>,
    ) -> ReferenceRewrite {
        let text = text.trim_matches(|c: char| c <= ' ');
        if text.is_empty() || text.starts_with('#') || is_data_url(text) {
            return ReferenceRewrite::nothing();
        }
        let by_origin = |origins: &OriginCache| origins.rewrite(self, text, kind);
        match self
            .origin_cache
            .filter(|_| self.can_use_origin_cache(kind))
            .and_then(by_origin)
        {
            Some(judged) => judged,
            None => self.rewrite_uncached(text, kind, credentials),
        }
    }

    /// True if the result only depends on the origin of the URL and the rules.
    fn can_use_origin_cache(&self, kind: Kind) -> bool {
        let is_guarded = guard::can_be_guarded(kind) && self.seen.is_some();
        let has_policies = self.policies.is_some_and(|policies| !policies.is_empty());
        self.browser_base.is_none() && !is_guarded && !has_policies
    }

    /// Rewrites `text`, which is neither blank nor a fragment, without the cache.
    pub(crate) fn rewrite_uncached(
        &self,
        text: &str,
        kind: Kind,
        credentials: CspCredentials<'_>,
    ) -> ReferenceRewrite {
        let unread = |reason| ReferenceRewrite {
            written: None,
            reference: Some(Reference {
                url: text.to_owned(),
                kind,
                by_cors: kind == Kind::Font,
                cannot_preload: false,
                is_candidate: false,
                referrer_scope: ReferrerScope::All,
                outcome: Err(reason),
            }),
        };
        if self.ascii_only && !text.is_ascii() {
            return unread(SkipReason::UnknownEncoding);
        }
        let Ok(url) = self.base.join(text) else {
            return unread(SkipReason::Unreadable);
        };
        // A style sheet may always reference its own host: it is under the same capability.
        let finder = match self.source {
            ReferenceSource::Discovered if url.origin() == self.base.origin() => {
                ReferenceSource::Listed
            }
            finder => finder,
        };
        let own = self.site_url_over_https(&url, kind).map(Verdict::Rewrite);
        let verdict = match own.unwrap_or_else(|| self.rules.verdict(&url, kind, finder)) {
            Verdict::Rewrite(_) if self.is_guarded(&url, kind) => {
                let host = url.host_str().unwrap_or_default().to_owned();
                Verdict::Skip(Refusal::CspGuarded { host }.into())
            }
            Verdict::Rewrite(path) => self.check_csp(&url, path, kind, credentials),
            leave @ Verdict::Skip(_) => leave,
        };
        let (written, outcome) = match verdict {
            Verdict::Rewrite(path) => {
                let written = if self.already_resolves_to(text, &path) {
                    None
                } else {
                    Some(self.site_path(&path))
                };
                let end = path.find('#').unwrap_or(path.len());
                (written, Ok(path[..end].to_owned()))
            }
            Verdict::Skip(reason) => (self.absolute_url(text, &url), Err(reason)),
        };
        let url = url.into();
        ReferenceRewrite {
            written,
            reference: Some(Reference {
                url,
                kind,
                by_cors: kind == Kind::Font,
                cannot_preload: false,
                is_candidate: false,
                referrer_scope: ReferrerScope::All,
                outcome,
            }),
        }
    }

    /// The `https` URL for `url`, if the page was loaded over `https` and `url` is the site's own over `http`: a path of the page's
    /// origin, or a full URL under another name of the site.
    ///
    /// A browser would load it outside of the page's session, or block it as mixed content.
    pub(crate) fn site_url_over_https(&self, url: &Url, kind: Kind) -> Option<String> {
        let is_over_http = url.scheme() == "http" && url.port().is_none();
        let is_of_site = self.source != ReferenceSource::Alias && !kind.needs_own_origin();
        let has_user = !url.username().is_empty() || url.password().is_some();
        if self.page.scheme() != "https" || !is_over_http || !is_of_site || has_user {
            return None;
        }
        if !self.rules.is_served_by_site(url) {
            return None;
        }
        let target = &url[url::Position::BeforePath..];
        // Two slashes would begin a host.
        if url.host() == self.page.host() && !target.starts_with("//") {
            return Some(target.to_owned());
        }
        let mut secure = url.clone();
        secure.set_scheme("https").ok()?;
        secure.set_port(self.page.port()).ok()?;
        Some(secure.into())
    }

    /// The same, unless there is a reason to leave it unchanged.
    pub(crate) fn rewrite_unless(
        &self,
        reason: Option<SkipReason>,
        text: &str,
        kind: Kind,
        credentials: CspCredentials<'_>,
    ) -> ReferenceRewrite {
        let judged = self.rewrite(text, kind, credentials);
        match (reason, judged.reference) {
            (Some(reason), Some(reference @ Reference { outcome: Ok(_), .. })) => {
                ReferenceRewrite {
                    written: None,
                    reference: Some(Reference {
                        outcome: Err(reason),
                        ..reference
                    }),
                }
            }
            (_, reference) => ReferenceRewrite {
                reference,
                ..judged
            },
        }
    }

    /// The same for a candidate of a `srcset`.
    pub(crate) fn rewrite_candidate(
        &self,
        reason: Option<SkipReason>,
        text: &str,
    ) -> ReferenceRewrite {
        let judged = self.rewrite_unless(reason, text, Kind::Image, CspCredentials::default());
        let reference = judged.reference.map(|reference| Reference {
            is_candidate: true,
            ..reference
        });
        ReferenceRewrite {
            reference,
            ..judged
        }
    }

    /// Why `text`, which is loaded as a module, is not rewritten even if its host is proxied.
    pub(crate) fn module_skip_reason(&self, text: &str) -> Option<SkipReason> {
        let url = self.base.join(text.trim()).ok()?;
        let (scheme, host) = (Scheme::of_name(url.scheme())?, url.host_str()?);
        let port = url.port().unwrap_or(scheme.default_port());
        match self.rules.match_host(scheme, host, port, url.path()) {
            Ok(RuleMatch::Listed(entry)) if entry.needs_url_capability(Kind::Script) => {
                Some(SkipReason::SharedModule)
            }
            _ => None,
        }
    }

    /// True if a hint to connect to the host of `text` is removed, because pages need the host only for proxied resources.
    ///
    /// A page is streamed, so it is unknown if *this* page needs the host further down. The result of its last rewrite decides, or
    /// the rules of the host (see [`HostConfig::whole`](crate::rules::config::HostConfig::whole)). Also, the page's policy must not
    /// prevent any rewriting for the host.
    pub(crate) fn removes_preconnect(&self, text: &str) -> bool {
        let Ok(mut url) = self.base.join(text.trim()) else {
            return false;
        };
        url.set_path("/");
        url.set_query(None);
        url.set_fragment(None);
        let all_moved = self.seen.and_then(|seen| seen.all_rewritten(&url));
        let Some((kinds, is_part)) = self.rules.whole(&url, all_moved) else {
            return false;
        };
        kinds.iter().all(|kind| {
            let credentials = CspCredentials {
                imported: true,
                ..CspCredentials::default()
            };
            match self.rules.verdict(&url, kind, self.source) {
                Verdict::Rewrite(path) => matches!(
                    self.check_csp(&url, path, kind, credentials),
                    Verdict::Rewrite(_)
                ),
                // A single proxied path, or a script of a shared host.
                Verdict::Skip(_) => is_part,
            }
        })
    }

    /// True if the resource at `url` is not served under the site's name as `kind`.
    pub(crate) fn is_guarded(&self, url: &Url, kind: Kind) -> bool {
        let seen = self.seen.filter(|_| guard::can_be_guarded(kind));
        seen.is_some_and(|seen| seen.guarded_kinds(url).has(kind))
    }

    /// True if the browser already resolves the text to the proxied URL.
    fn already_resolves_to(&self, text: &str, path: &str) -> bool {
        self.browser_base
            .and_then(|seen_from| seen_from.join(text).ok())
            .is_some_and(|seen| self.on_site(path) == seen)
    }

    /// Writes a path of the site in a form that is correct here.
    pub(crate) fn site_path(&self, path: &str) -> String {
        match self.absolute_urls {
            true => self.on_site(path).into(),
            false => path.to_owned(),
        }
    }

    fn on_site(&self, path: &str) -> Url {
        self.page
            .join(path)
            .expect("a proxied reference is a path of the site or a URL")
    }

    /// True if the browser would resolve `text` to another URL than intended, and `judged` gives a replacement.
    pub(crate) fn resolves_elsewhere(
        &self,
        text: &str,
        judged: impl FnOnce() -> ReferenceRewrite,
    ) -> bool {
        let seen = self
            .browser_base
            .and_then(|seen_from| seen_from.join(text).ok());
        seen != self.base.join(text).ok() && judged().written.is_some()
    }

    /// The full URL for a reference that is not rewritten, if the browser would otherwise resolve it differently.
    pub(crate) fn absolute_url(&self, text: &str, url: &Url) -> Option<String> {
        let is_same = self.browser_base?.join(text).is_ok_and(|seen| seen == *url);
        (!is_same).then(|| url.to_string())
    }

    /// Checks that what the page's policy blocks stays blocked, and what it allows stays allowed.
    fn check_csp(
        &self,
        url: &Url,
        path: String,
        kind: Kind,
        credentials: CspCredentials<'_>,
    ) -> Verdict {
        let Some(policies) = self.policies.filter(|policies| !policies.is_empty()) else {
            return Verdict::Rewrite(path);
        };
        let moved = self.on_site(&path);
        if policies.allow(url, kind, credentials)
            && policies.allow_rewritten(&moved, kind, credentials)
        {
            Verdict::Rewrite(path)
        } else {
            Verdict::Skip(SkipReason::Policy)
        }
    }
}

fn is_data_url(text: &str) -> bool {
    let scheme = text.get(.."data:".len());
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}
