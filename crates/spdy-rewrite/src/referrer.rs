//! Who hears of a page when something of it is asked for (Referrer Policy §3): what a browser's requests bear is decided by the page,
//! and what is fetched ahead of them must be asked for likewise.
//!
//! Of the site's own name nothing ever leaves but the origin ([`Referrer`](crate::rules::config::Referrer)), so policies differ here only by
//! who hears of it at all.

use http::header::{HeaderMap, REFERRER_POLICY};

/// Who hears of a page.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ReferrerScope {
    /// Nobody: `no-referrer`.
    None,
    /// The site alone: `same-origin`. The browser takes what is moved to the site's name for the site's own.
    SameSite,
    /// Other hosts too, as far as they are told of anything.
    #[default]
    All,
}

impl ReferrerScope {
    /// What one word of a policy says; `None` if it says nothing.
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

    /// What the head of a page says: of several words the last that is known (Referrer Policy §8.1).
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let values = headers.get_all(REFERRER_POLICY).iter();
        let texts = values.filter_map(|value| value.to_str().ok());
        let words = texts.flat_map(|text| text.split(','));
        let mut known = words.filter_map(Self::from_token);
        known.next_back().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn last_known_referrer_policy_token_wins() {
        for (values, tells) in [
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
            assert_eq!(ReferrerScope::from_headers(&headers), tells, "{values:?}");
        }
    }
}
