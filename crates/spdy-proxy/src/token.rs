//! A word that an operator shows to be known by.

use std::fmt;
use std::sync::Arc;

/// The word. It is compared in a time that does not depend on how much of it is right, and is never told.
#[derive(Clone)]
pub struct Token(Arc<str>);

impl Token {
    /// Whoever shows `text` is known; nobody is by an empty one.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Whether `given` is it.
    #[must_use]
    pub fn is(&self, given: &[u8]) -> bool {
        let wanted = self.0.as_bytes();
        let differs = (0..wanted.len().max(given.len())).fold(0, |differs, at| {
            differs | (wanted.get(at).copied().unwrap_or(1) ^ given.get(at).copied().unwrap_or(2))
        });
        differs == 0 && given.len() == wanted.len() && !wanted.is_empty()
    }
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
    fn token_matches_the_whole_text_only() {
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
