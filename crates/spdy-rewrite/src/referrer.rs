//! Which hosts get a `Referer` when a resource of a page is requested (Referrer Policy §3). The page decides it for a browser's requests,
//! and a prefetch must follow the same policy.
//!
//! The only possible value is the origin of the site's own name ([`Referrer`](crate::rules::config::Referrer)), so policies only
//! differ here in the hosts that get it.

use http::header::{HeaderMap, REFERRER_POLICY};

/// Which hosts get a `Referer` from a page.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ReferrerScope {
    /// None: `no-referrer`.
    None,
    /// Only the site: `same-origin`. For the browser, resources under the site's name belong to the site.
    SameSite,
    /// Also other hosts, if they get a `Referer` at all.
    #[default]
    All,
}

impl ReferrerScope {
    /// The scope of one token of a policy; `None` for an unknown token.
    pub fn from_token(word: &str) -> Option<Self> {
        Some(match word.trim().to_ascii_lowercase().as_str() {
            "no-referrer" | "never" => Self::None,
            "same-origin" => Self::SameSite,
            "no-referrer-when-downgrade"
            | "default"
            | "origin"
            | "strict-origin"
            | "origin-when-cross-origin"
            | "origin-when-crossorigin"
            | "strict-origin-when-cross-origin"
            | "unsafe-url"
            | "always" => Self::All,
            _ => return None,
        })
    }

    /// The scope in the head of a page: of several tokens, the last valid one (Referrer Policy §8.1).
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let values = headers.get_all(REFERRER_POLICY).iter();
        let texts = values.filter_map(|value| value.to_str().ok());
        let words = texts.flat_map(|text| text.split(','));
        let mut scopes = words.filter_map(Self::from_token);
        scopes.next_back().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn last_valid_referrer_policy_token_wins() {
        for (values, expected) in [
            (&[][..], ReferrerScope::All),
            (&["no-referrer"], ReferrerScope::None),
            (&["no-referrer, Same-Origin"], ReferrerScope::SameSite),
            (
                &["same-origin, something-of-tomorrow"],
                ReferrerScope::SameSite,
            ),
            (&["same-origin", "strict-origin"], ReferrerScope::All),
            (&["nonsense"], ReferrerScope::All),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(REFERRER_POLICY, HeaderValue::from_static(value));
            }
            assert_eq!(
                ReferrerScope::from_headers(&headers),
                expected,
                "{values:?}"
            );
        }
    }
}
