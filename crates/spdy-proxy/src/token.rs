//! A secret text by which the proxy recognizes an operator.

use std::fmt;
use std::sync::Arc;

/// The secret. The time of a comparison does not depend on how much is right. The text is never printed.
#[derive(Clone)]
pub struct Token(Arc<str>);

impl Token {
    /// A token that matches `text`. An empty one matches nothing.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Whether `candidate` matches.
    #[must_use]
    pub fn is(&self, candidate: &[u8]) -> bool {
        let secret = self.0.as_bytes();
        constant_time_eq(secret, candidate) && !secret.is_empty()
    }
}

/// Whether `candidate` equals `secret`, in a time that does not depend on how much is equal.
pub(crate) fn constant_time_eq(secret: &[u8], candidate: &[u8]) -> bool {
    let differs = (0..secret.len().max(candidate.len())).fold(0, |differs, at| {
        differs | (secret.get(at).copied().unwrap_or(1) ^ candidate.get(at).copied().unwrap_or(2))
    });
    differs == 0 && candidate.len() == secret.len()
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_matches_only_the_complete_text() {
        let token = Token::new("open sesame");
        assert!(token.is(b"open sesame"));
        for wrong in [
            "",
            "open sesam",
            "open sesame ",
            "Open sesame",
            "open sesamf",
        ] {
            assert!(!token.is(wrong.as_bytes()), "{wrong:?}");
        }
        assert!(!Token::new("").is(b""));
        assert_eq!(format!("{token:?}"), "Token");
    }
}
