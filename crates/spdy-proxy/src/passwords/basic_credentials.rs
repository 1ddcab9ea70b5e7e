//! A user and a password in `Authorization` (RFC 7617 §2).

use std::fmt;

use data_encoding::BASE64;
use http::{HeaderMap, header};

/// The longest user name, bytes.
const MAX_USER_BYTES: usize = 255;
/// The longest password, bytes. The time of some hash functions grows with its square.
const MAX_PASSWORD_BYTES: usize = 255;

/// A user and a password. They are never printed.
#[derive(Clone, Eq, PartialEq)]
pub(crate) struct BasicCredentials {
    pub(crate) user: String,
    pub(crate) password: Vec<u8>,
}

impl fmt::Debug for BasicCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BasicCredentials")
    }
}

impl BasicCredentials {
    /// Those in `headers`. `None` if there are none, several, or others than by the Basic scheme.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return None;
        };
        let (scheme, encoded) = value.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = BASE64.decode(encoded.trim().as_bytes()).ok()?;
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        let (user, password) = (decoded.get(..colon)?, decoded.get(colon + 1..)?);
        if user.len() > MAX_USER_BYTES || password.len() > MAX_PASSWORD_BYTES {
            return None;
        }
        Some(Self {
            user: std::str::from_utf8(user).ok()?.to_owned(),
            password: password.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(values: &[&str]) -> Option<(String, Vec<u8>)> {
        let values = values.iter();
        let headers = values.map(|value| {
            let value = HeaderValue::from_str(value).expect("a value");
            (header::AUTHORIZATION, value)
        });
        let credentials = BasicCredentials::of(&headers.collect())?;
        Some((credentials.user, credentials.password))
    }

    #[test]
    fn credentials_are_the_text_before_and_after_the_first_colon() {
        let alice = Some(("alice".to_owned(), b"a:b".to_vec()));
        assert_eq!(of(&["Basic YWxpY2U6YTpi"]), alice);
        assert_eq!(of(&["bASIC  YWxpY2U6YTpi"]), alice);
        let long = BASE64.encode(format!("a:{}", "x".repeat(MAX_PASSWORD_BYTES + 1)).as_bytes());
        for values in [
            &[][..],
            &["Bearer YWxpY2U6YTpi"],
            &["Basic"],
            &["Basic YWxpY2U="],
            &["Basic !"],
            &["Basic YWxpY2U6YTpi", "Basic YWxpY2U6YTpi"],
            &[&format!("Basic {long}")],
        ] {
            assert_eq!(of(values), None, "{values:?}");
        }
    }
}
