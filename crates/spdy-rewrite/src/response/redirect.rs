//! Redirects of proxied hosts: followed here, passed to the browser, or refused.
//!
//! If the rules cover the next hop, the browser does not see the redirect. A browser follows the redirect of a script to another folder
//! of its host itself, under the site's name, because imports are relative to the final URL. Otherwise the browser may follow it to the host,
//! as it would have without us, but only if it states that a page loads the resource: for any other client that would be an open
//! redirect under the site's name. Each hop must allow a page to read what it loads by CORS.

use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderMap, HeaderValue, LOCATION};
use url::Url;

use crate::limits::MAX_REDIRECTS;
use crate::load::{FetchMode, Load};
use crate::response::sanitized_response::passes_cors_check;
use crate::rules::Rules;
use crate::rules::refusal::Refusal;
use crate::rules::verdict::Verdict;
use crate::urls::proxied_url::{ProxiedUrl, may_follow};

/// Origin of a request with an opaque origin (Fetch, *serializing a request origin*).
pub(crate) const OPAQUE_ORIGIN: &str = "null";

/// The decision about a redirect.
#[derive(Clone, Debug)]
pub enum Redirect {
    /// Fetch this URL next, under the same rules.
    Follow(ProxiedUrl),
    /// Pass the redirect on, to this path under the site's name: another one of the same host.
    Pass(String),
    /// Redirect the client there: 307, and `Cache-Control: no-store`.
    Direct(String),
    /// Serve nothing.
    Refuse(Refusal),
}

/// The redirects of one request: their number, whether the origin became opaque, and whether a page may read the result.
///
/// Each redirect must allow a page to read what it loads by CORS. From the first redirect from one host to another on, the request has an
/// opaque origin, as the second host would otherwise act for the first (Fetch, *HTTP-redirect fetch*, *CORS check*).
#[derive(Clone, Copy, Debug, Default)]
pub struct RedirectState {
    hops: u32,
    /// True if the origin is opaque.
    is_tainted: bool,
    /// True if one of them did not allow the page to read it.
    is_unreadable: bool,
}

impl RedirectState {
    /// Decides what to do when a request for `moved` was answered by a redirect.
    pub fn decide(
        &mut self,
        rules: &Rules,
        moved: &ProxiedUrl,
        load: Load,
        headers: &HeaderMap,
    ) -> Redirect {
        self.hops += 1;
        let next = match target(moved, headers) {
            Ok(_) if self.hops > MAX_REDIRECTS => {
                return Redirect::Refuse(Refusal::Redirects {
                    most: MAX_REDIRECTS,
                });
            }
            Ok(next) => next,
            Err(refusal) => return Redirect::Refuse(refusal),
        };
        if !passes_cors_check(headers, self.origin(rules)) {
            if load.mode == FetchMode::Cors {
                return Redirect::Direct(moved.url().to_string());
            }
            self.is_unreadable = true;
        }
        let direct = |refusal| match load.is_subresource {
            true => Redirect::Direct(next.to_string()),
            false => Redirect::Refuse(refusal),
        };
        match moved.redirect_target(rules, &next) {
            Ok(followed) if !may_follow(load, moved, &followed) => {
                let passed = passed_location(rules, moved, load, headers);
                match passed.filter(|_| !self.is_tainted) {
                    Some(location) => Redirect::Pass(location),
                    None => direct(Refusal::Location),
                }
            }
            Ok(followed) => {
                self.is_tainted |= followed.url().origin() != moved.url().origin();
                Redirect::Follow(followed)
            }
            Err(refusal) => direct(refusal),
        }
    }

    /// The Origin of the next request, if it sends one.
    pub fn origin<'r>(&self, rules: &'r Rules) -> &'r str {
        match self.is_tainted {
            true => OPAQUE_ORIGIN,
            false => rules.site_origin(),
        }
    }

    /// Restricts the head of the final response: a page may read it only if all redirects allowed it.
    pub fn amend(&self, headers: &mut HeaderMap) {
        let is_allowed = !self.is_tainted || passes_cors_check(headers, OPAQUE_ORIGIN);
        if self.is_unreadable || !is_allowed {
            headers.remove(ACCESS_CONTROL_ALLOW_ORIGIN);
        } else if self.is_tainted {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        }
    }
}

/// The path under the site's name that leads to the target of the redirect `headers` of `moved`, if a client may be sent there: the
/// target is of the same origin. A target at another origin would be requested in the name of the page, not in that of `moved`.
pub(crate) fn passed_location(
    rules: &Rules,
    moved: &ProxiedUrl,
    load: Load,
    headers: &HeaderMap,
) -> Option<String> {
    let next = target(moved, headers).ok()?;
    let is_readable =
        load.mode != FetchMode::Cors || passes_cors_check(headers, rules.site_origin());
    let may_pass = load.allows_redirect() && is_readable;
    if !may_pass || next.origin() != moved.url().origin() {
        return None;
    }
    moved.redirect_target(rules, &next).ok()?;
    // The target needs its own capability: that of `moved` may be for one URL only.
    match rules.verdict(&next, load.expected?, moved.reference_source()) {
        Verdict::Rewrite(path) => Some(path),
        Verdict::Skip(_) => None,
    }
}

/// The target of the redirect `headers` of `moved`.
pub(crate) fn target(moved: &ProxiedUrl, headers: &HeaderMap) -> Result<Url, Refusal> {
    let mut locations = headers.get_all(LOCATION).iter();
    let next = locations
        .next()
        .filter(|_| locations.next().is_none())
        .and_then(|location| location.to_str().ok())
        .and_then(|location| moved.url().join(location).ok())
        .ok_or(Refusal::Location)?;
    let is_web = matches!(next.scheme(), "https" | "http")
        && next.username().is_empty()
        && next.password().is_none();
    is_web.then_some(next).ok_or(Refusal::Location)
}
