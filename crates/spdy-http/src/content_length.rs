//! Checks that the length of DATA equals content-length.
//!
//! Only FIN ends a body; content-length is checked in addition. The caller decides the consequence of a mismatch: a server answers
//! 400, a client delivers the received body and reports the mismatch.

use http::HeaderMap;
use http::header;

use crate::headers::content_length;

/// The declared and the received length.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LengthCheck {
    declared: Option<u64>,
    received: u64,
}

/// A content-length that differs from the length of the DATA.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("content-length is {declared}, but {received} bytes were received")]
pub struct LengthMismatch {
    /// The value of the header, bytes.
    pub declared: u64,
    /// Bytes of DATA so far.
    pub received: u64,
}

impl LengthCheck {
    /// A check for a message with `headers`; without a content-length every length is valid.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let declared = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|value| content_length(value.as_bytes()));
        Self {
            declared,
            received: 0,
        }
    }

    /// The content-length, bytes.
    #[must_use]
    pub const fn declared(&self) -> Option<u64> {
        self.declared
    }

    /// Counts `bytes` of DATA; `fin` if they are the last.
    ///
    /// # Errors
    ///
    /// [`LengthMismatch`], if there are more bytes than declared, or fewer at the end.
    pub fn count(&mut self, bytes: usize, fin: bool) -> Result<(), LengthMismatch> {
        self.received = self.received.saturating_add(bytes as u64);
        match self.declared {
            Some(declared) if self.received > declared || (fin && self.received < declared) => {
                Err(LengthMismatch {
                    declared,
                    received: self.received,
                })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(length: &'static str) -> LengthCheck {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::CONTENT_LENGTH,
            header::HeaderValue::from_static(length),
        );
        LengthCheck::of(&headers)
    }

    #[test]
    fn the_declared_length_is_accepted() {
        let mut check = declared("5");
        assert_eq!(check.count(3, false), Ok(()));
        assert_eq!(check.count(2, true), Ok(()));
    }

    #[test]
    fn one_byte_more_is_seen_at_once_and_one_less_at_the_end() {
        let mut check = declared("5");
        assert_eq!(
            check.count(6, false),
            Err(LengthMismatch {
                declared: 5,
                received: 6
            })
        );
        let mut check = declared("5");
        assert_eq!(check.count(4, false), Ok(()));
        assert_eq!(
            check.count(0, true),
            Err(LengthMismatch {
                declared: 5,
                received: 4
            })
        );
    }

    #[test]
    fn without_a_content_length_any_length_is_right() {
        let mut check = LengthCheck::of(&HeaderMap::new());
        assert_eq!(check.count(1_000_000, false), Ok(()));
        assert_eq!(check.count(0, true), Ok(()));
    }
}
