//! A redirect of a moved host: followed here, handed to the browser, or refused.
//!
//! Where the rules know the next hop the browser sees nothing of it. Where they do not, the browser may go there by
//! itself, as it would have without us, but only if it said that a page loads the resource: for everybody else that
//! would be an open redirect under the site's name. What a page reads (CORS) each hop must have let it read.

use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, HeaderMap, HeaderValue, LOCATION};
use url::Url;

use crate::kind::Kind;
use crate::limits::MAX_REDIRECTS;
use crate::request::anonymize::{FetchMode, Load};
use crate::response::sanitize_response;
use crate::rules::Rules;
use crate::rules::refusal::Refusal;
use crate::urls::proxied_url::ProxiedUrl;

/// Origin of a request in nobody's name (Fetch, *serializing a request origin*).
pub(crate) const OPAQUE_ORIGIN: &str = "null";

/// What becomes of a redirect.
#[derive(Clone, Debug)]
pub enum Redirect {
    /// This is fetched next, under the same rules.
    Follow(ProxiedUrl),
    /// The client is sent there: 307, and `Cache-Control: no-store`.
    Direct(String),
    /// Nothing is served.
    Refuse(Refusal),
}

/// The redirects that one request has met: how many, in whose name it goes on, and whether a page may read where it ends.
///
/// A page that reads what it loads (CORS) is allowed to by each of them; and from the first on that leads from one host to another, the
/// request is in nobody's name, as the second host would else speak for the first (Fetch, *HTTP-redirect fetch*, *CORS check*).
#[derive(Clone, Copy, Debug, Default)]
pub struct RedirectState {
    hops: u32,
    /// It is in nobody's name.
    is_tainted: bool,
    /// One of them did not allow the page to read it.
    is_unreadable: bool,
}

impl RedirectState {
    /// What to do when `moved` was asked for and answered by a redirect.
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
        if !sanitize_response::passes_cors_check(headers, self.origin(rules)) {
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
            Ok(followed) if !may_follow(load, moved, &followed) => direct(Refusal::Location),
            Ok(followed) => {
                self.is_tainted |= followed.url().origin() != moved.url().origin();
                Redirect::Follow(followed)
            }
            Err(refusal) => direct(refusal),
        }
    }

    /// What the next request says in Origin, if it says anything.
    pub fn origin<'r>(&self, rules: &'r Rules) -> &'r str {
        match self.is_tainted {
            true => OPAQUE_ORIGIN,
            false => rules.site_origin(),
        }
    }

    /// Lets the head of what they led to allow the page to read it only if all of them did.
    pub fn amend(&self, headers: &mut HeaderMap) {
        let is_allowed =
            !self.is_tainted || sanitize_response::passes_cors_check(headers, OPAQUE_ORIGIN);
        if self.is_unreadable || !is_allowed {
            headers.remove(ACCESS_CONTROL_ALLOW_ORIGIN);
        } else if self.is_tainted {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        }
    }
}

/// Where the redirect `headers` of `moved` leads.
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
