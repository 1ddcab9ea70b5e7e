//! Cookies of a head, as HAR 1.2 lists them in addition to the header fields.
//!
//! Parsed leniently by RFC 6265, as a browser would. Values stay as sent, including quotes.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::head::Head;

/// The cookies of a request.
pub(crate) fn sent(head: &Head<'_>) -> Vec<Value> {
    let mut cookies = Vec::new();
    for value in head.values("cookie") {
        let text = String::from_utf8_lossy(value);
        let pairs = text.split(';').filter_map(pair);
        cookies.extend(pairs.map(|(name, value)| json!({"name": name, "value": value})));
    }
    cookies
}

/// The cookies that a response sets, with their attributes (section 5.2).
pub(crate) fn set(head: &Head<'_>) -> Vec<Value> {
    let values = head.values("set-cookie");
    values
        .filter_map(|value| set_by(&String::from_utf8_lossy(value)))
        .collect()
}

fn set_by(text: &str) -> Option<Value> {
    let mut parts = text.split(';');
    let (name, value) = parts.next().and_then(pair)?;
    let mut cookie = json!({"name": name, "value": value, "httpOnly": false, "secure": false});
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let value = value.trim();
        match &name.trim().to_ascii_lowercase()[..] {
            "httponly" => cookie["httpOnly"] = true.into(),
            "secure" => cookie["secure"] = true.into(),
            "path" => cookie["path"] = value.into(),
            "domain" => cookie["domain"] = value.into(),
            "samesite" => cookie["sameSite"] = value.into(),
            "expires" => {
                if let Some(time) = date(value) {
                    cookie["expires"] = time.to_string().into();
                }
            }
            // HAR has no other attributes; all of them are in the head.
            _ => {}
        }
    }
    Some(cookie)
}

/// A cookie needs a name (section 5.2): one without is skipped.
fn pair(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    (!name.is_empty()).then_some((name, value))
}

/// An HTTP date; many servers still write it with Netscape's hyphens.
fn date(text: &str) -> Option<Timestamp> {
    let time = httpdate::parse_http_date(text)
        .or_else(|_| httpdate::parse_http_date(&text.replace('-', " ")));
    Timestamp::try_from(time.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cookie_is_exported_with_its_attributes() {
        let request = b"GET / HTTP/1.1\r\nCookie: a=1; b=\"x=y\";; c\r\ncookie: d=\r\n\r\n";
        let pairs = [("a", "1"), ("b", "\"x=y\""), ("d", "")];
        assert_eq!(
            sent(&Head::parse(request).unwrap()),
            pairs.map(|(name, value)| json!({"name": name, "value": value}))
        );

        let answer = b"HTTP/1.1 200 OK\r\n\
            Set-Cookie: a=1; Path=/x; domain=.a.test; Secure; HttpOnly; SameSite=Lax; Max-Age=3\r\n\
            Set-Cookie: b=2; expires=Tue, 04-Jun-2013 10:00:00 GMT\r\n\
            Set-Cookie: c=3; Expires=Tue, 04 Jun 2013 10:00:00 GMT; secure\r\n\
            Set-Cookie: =4\r\n\
            Set-Cookie: d=5; Expires=soon\r\n\r\n";
        let plain = |name, value, secure| json!({"name": name, "value": value, "httpOnly": false, "secure": secure});
        let dated = |mut cookie: Value| {
            cookie["expires"] = "2013-06-04T10:00:00Z".into();
            cookie
        };
        assert_eq!(
            set(&Head::parse(answer).unwrap()),
            [
                json!({
                    "name": "a", "value": "1", "path": "/x", "domain": ".a.test",
                    "secure": true, "httpOnly": true, "sameSite": "Lax",
                }),
                dated(plain("b", "2", false)),
                dated(plain("c", "3", true)),
                plain("d", "5", false),
            ]
        );
    }
}
