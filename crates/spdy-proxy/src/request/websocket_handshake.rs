//! The opening handshake of a WebSocket (RFC 6455 §4): whether a request is one, the request for the origin, and whether the origin agreed.
//!
//! Over HTTP/1.1 only. HTTP/2 and HTTP/3 would need a setting (RFC 8441, RFC 9220), which is not sent: browsers then open an HTTP/1.1
//! connection.

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Version, request};
use spdy_net::handler::RequestInfo;
use spdy_net::protocol::Protocol;
use tungstenite::handshake::derive_accept_key;

/// The value of `Upgrade` on both sides.
const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");
/// The value of `Connection` beside it.
const UPGRADE: HeaderValue = HeaderValue::from_static("Upgrade");
/// The only version of the protocol that has a standard.
pub(crate) const VERSION: &str = "13";
/// Characters of 16 bytes in base64.
const KEY_CHARACTERS: usize = 24;

/// Why a request for a WebSocket is no handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HandshakeError {
    /// It is not a GET over HTTP/1.1.
    #[error("invalid WebSocket handshake: expected GET over HTTP/1.1")]
    NoUpgrade,
    /// It has none, or several, or it is not 16 bytes in base64.
    #[error("invalid WebSocket handshake: expected one Sec-WebSocket-Key of 16 bytes in base64")]
    Key,
    /// It has a body, which none may have that changes its protocol.
    #[error("invalid WebSocket handshake: expected no content")]
    Body,
    /// It has another version, or does not state one.
    #[error("invalid WebSocket handshake: expected Sec-WebSocket-Version 13")]
    Version,
}

/// Whether a header field requests a WebSocket: over HTTP/1.1, or in a later version against its rules. Over HTTP/1.0 the field is ignored,
/// and so is one that `Connection` does not name: the hop that passed it on did not mean it (RFC 9110 §7.8).
pub(crate) fn is_upgrade_request(head: &request::Parts) -> bool {
    let names = |name, token| names(&head.headers, name, token);
    let is_upgrade = match head.version {
        Version::HTTP_09 | Version::HTTP_10 => false,
        Version::HTTP_11 => names(&header::CONNECTION, "upgrade"),
        _ => true,
    };
    is_upgrade && names(&header::UPGRADE, "websocket")
}

/// Whether a list of tokens under `name` has `token`.
fn names(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    let mut members = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    members.any(|member| member.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// The value under `name`, if there is one and no more.
fn single_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value.as_bytes()),
        _ => None,
    }
}

/// Checks a WebSocket request that came by `arrival`. Fields that its `Connection` names beside `Upgrade` do not reach the origin, and
/// count as missing.
///
/// # Errors
///
/// What it lacks.
pub(crate) fn check(
    head: &request::Parts,
    arrival: Option<RequestInfo>,
) -> Result<(), HandshakeError> {
    let is_http1 = arrival.is_none_or(|arrival| arrival.protocol == Protocol::Http1);
    if head.method != Method::GET || head.version != Version::HTTP_11 || !is_http1 {
        return Err(HandshakeError::NoUpgrade);
    }
    let headers = &head.headers;
    let has_length = headers.get(header::CONTENT_LENGTH);
    if has_length.is_some_and(|length| length != "0")
        || headers.contains_key(header::TRANSFER_ENCODING)
    {
        return Err(HandshakeError::Body);
    }
    let is_named = |name: &HeaderName| names(headers, &header::CONNECTION, name.as_str());
    let forwarded_value =
        |name: HeaderName| single_value(headers, &name).filter(|_| !is_named(&name));
    if !forwarded_value(header::SEC_WEBSOCKET_KEY).is_some_and(is_key) {
        return Err(HandshakeError::Key);
    }
    match forwarded_value(header::SEC_WEBSOCKET_VERSION) {
        Some(version) if version == VERSION.as_bytes() => Ok(()),
        _ => Err(HandshakeError::Version),
    }
}

/// 16 bytes in base64 (RFC 4648 §4): 22 characters, of which the last has four bits, and padding.
fn is_key(key: &[u8]) -> bool {
    let is_of_alphabet = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    key.len() == KEY_CHARACTERS
        && key.ends_with(b"==")
        && key[..KEY_CHARACTERS - 2].iter().all(is_of_alphabet)
}

/// States in fields without connection headers that the protocol is to change, or has changed.
pub(crate) fn set_upgrade_headers(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, UPGRADE);
    headers.insert(header::UPGRADE, WEBSOCKET);
}

/// Whether a 101 of `version` agrees to the WebSocket requested with the fields `request_headers`, and to nothing else (RFC 6455 §4.1).
pub(crate) fn accepts_upgrade(
    request_headers: &HeaderMap,
    version: Version,
    headers: &HeaderMap,
) -> bool {
    let is_socket = single_value(headers, &header::UPGRADE)
        .is_some_and(|upgrade| upgrade.eq_ignore_ascii_case(b"websocket"));
    let key = single_value(request_headers, &header::SEC_WEBSOCKET_KEY).map(derive_accept_key);
    let is_key_accepted = key.is_some_and(|key| {
        single_value(headers, &header::SEC_WEBSOCKET_ACCEPT) == Some(key.as_bytes())
    });
    // Over HTTP/1.0 nothing can be switched to (RFC 9110 §7.8).
    let is_http11 = version == Version::HTTP_11;
    is_http11 && is_socket && is_key_accepted && names(headers, &header::CONNECTION, "upgrade")
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ=="; // RFC 6455 §1.3

    /// A handshake with `fields` in place of those of the same name; an empty value removes one.
    fn handshake(fields: &[(&str, &str)]) -> request::Parts {
        let mut request = Request::get("/chat").body(()).expect("a request");
        for (name, value) in [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-key", KEY),
            ("sec-websocket-version", "13"),
        ] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        for (name, value) in fields {
            let name: HeaderName = name.parse().expect("a name");
            request.headers_mut().remove(&name);
            for value in value.split('|').filter(|value| !value.is_empty()) {
                let value = value.parse().expect("a value");
                request.headers_mut().append(name.clone(), value);
            }
        }
        request.into_parts().0
    }

    fn check_fields(fields: &[(&str, &str)]) -> Result<(), HandshakeError> {
        check(&handshake(fields), None)
    }

    #[test]
    fn upgrade_not_listed_in_connection_is_ignored() {
        for (connection, expected) in [
            ("upgrade", true),
            ("keep-alive, Upgrade", true),
            ("keep-alive|upgrade", true),
            ("close", false),
            ("upgraded", false),
            ("", false),
        ] {
            let mut head = handshake(&[("connection", connection)]);
            assert_eq!(is_upgrade_request(&head), expected, "{connection}");
            head.version = Version::HTTP_10;
            assert!(!is_upgrade_request(&head), "{connection}");
            // There neither field may be (RFC 9113 §8.2.2), and so the one is not looked for before the other is refused.
            head.version = Version::HTTP_2;
            assert!(is_upgrade_request(&head), "{connection}");
        }
    }

    #[test]
    fn handshake_has_all_required_headers() {
        use HandshakeError::{Body, Key, Version};
        for (fields, expected) in [
            (&[][..], Ok(())),
            (&[("connection", "upgrade")], Ok(())),
            (&[("content-length", "0")], Ok(())),
            (&[("connection", "Upgrade, sec-websocket-key")], Err(Key)),
            (&[("sec-websocket-key", "")], Err(Key)),
            (&[("sec-websocket-key", "dGhlIHNhbXBsZQ==")], Err(Key)),
            (
                &[("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=|")],
                Err(Key),
            ),
            (
                &[(
                    "sec-websocket-key",
                    "dGhlIHNhbXBsZSBub25jZQ==|dGhlIHNhbXBsZSBub25jZQ==",
                )],
                Err(Key),
            ),
            (&[("sec-websocket-version", "")], Err(Version)),
            (&[("sec-websocket-version", "8")], Err(Version)),
            (&[("sec-websocket-version", "13|8")], Err(Version)),
            (&[("content-length", "5")], Err(Body)),
            (&[("transfer-encoding", "chunked")], Err(Body)),
        ] {
            assert_eq!(check_fields(fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn only_http_1_1_get_is_an_upgrade() {
        for (method, version) in [("POST", Version::HTTP_11), ("GET", Version::HTTP_10)] {
            let request = Request::builder().method(method).version(version);
            let request = request.header("upgrade", "websocket").body(()).unwrap();
            let result = check(&request.into_parts().0, None);
            assert_eq!(result, Err(HandshakeError::NoUpgrade), "{method}");
        }
    }

    #[test]
    fn only_a_websocket_101_is_accepted() {
        // To KEY (RFC 6455 §1.3), and to another.
        let valid_accept = ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let other = ("sec-websocket-accept", "HSmrc0sMlYUkAGmm5OPpG2HaGWk=");
        let (connection, upgrade) = (("connection", "Upgrade"), ("upgrade", "websocket"));
        for (fields, expected) in [
            (
                &[connection, ("upgrade", "WebSocket"), valid_accept][..],
                true,
            ),
            (
                &[("connection", "keep-alive, upgrade"), upgrade, valid_accept],
                true,
            ),
            (&[connection, ("upgrade", "h2c"), valid_accept], false),
            (
                &[connection, ("upgrade", "websocket, h2c"), valid_accept],
                false,
            ),
            (
                &[connection, upgrade, ("upgrade", "h2c"), valid_accept],
                false,
            ),
            (&[upgrade, valid_accept], false),
            (&[connection, valid_accept], false),
            (&[connection, upgrade], false),
            (&[connection, upgrade, other], false),
            (&[connection, upgrade, valid_accept, other], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(*name, value.parse().unwrap());
            }
            let mut request_headers = HeaderMap::new();
            request_headers.insert(header::SEC_WEBSOCKET_KEY, KEY.parse().unwrap());
            let is_accepted = |version| accepts_upgrade(&request_headers, version, &headers);
            assert_eq!(is_accepted(Version::HTTP_11), expected, "{fields:?}");
            assert!(!is_accepted(Version::HTTP_10), "{fields:?}");
        }
    }
}
