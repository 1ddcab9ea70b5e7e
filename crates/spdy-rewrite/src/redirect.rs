//! A redirect of a moved host: followed here, handed to the browser, or refused.
//!
//! Where the rules know the next hop the browser sees nothing of it. Where they do not, the browser may go there by
//! itself, as it would have without us, but only if it said that a page loads the resource: for everybody else that
//! would be an open redirect under the site's name.

use http::header::HeaderMap;

use crate::anonymous::Load;
use crate::hygiene::one_location;
use crate::kind::Kind;
use crate::limits::MAX_REDIRECTS;
use crate::moved_url::Moved;
use crate::refusal::Refusal;
use crate::rules::Rules;

/// What becomes of a redirect.
#[derive(Clone, Debug)]
pub enum Redirect {
    /// This is fetched next, under the same rules.
    Follow(Moved),
    /// The client is sent there: 307, and `Cache-Control: no-store`.
    Direct(String),
    /// Nothing is served.
    Refuse(Refusal),
}

/// What to do when `moved` was asked for and answered by a redirect, the `hop`th of this request (from 1).
pub fn decide(rules: &Rules, moved: &Moved, load: Load, hop: u32, headers: &HeaderMap) -> Redirect {
    let Some(next) = one_location(moved, headers) else {
        return Redirect::Refuse(Refusal::Location);
    };
    if hop > MAX_REDIRECTS {
        return Redirect::Refuse(Refusal::Redirects {
            most: MAX_REDIRECTS,
        });
    }
    let direct = |refusal| {
        if load.is_subresource {
            Redirect::Direct(next.to_string())
        } else {
            Redirect::Refuse(refusal)
        }
    };
    match moved.redirected(rules, &next) {
        // What a module imports is named relative to where it came from; the browser would not know.
        Ok(followed) if load.expected == Some(Kind::Script) && !is_beside(moved, &followed) => {
            direct(Refusal::Location)
        }
        Ok(followed) => Redirect::Follow(followed),
        Err(refusal) => direct(refusal),
    }
}

/// Whether relative references mean the same from both.
fn is_beside(one: &Moved, other: &Moved) -> bool {
    let folder = |moved: &Moved| moved.url().join(".").ok();
    folder(one) == folder(other)
}
