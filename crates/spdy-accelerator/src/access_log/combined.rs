//! The combined log format of Apache and nginx.
//!
//! ```text
//! 192.0.2.1 - - [22/Nov/2026:11:04:05 +0000] "GET /a?b=1 HTTP/2.0" 200 1234 "https://www.site.test/" "Mozilla/5.0 …"
//! ```
//!
//! Bytes that could end a field or a line, and all that are not ASCII, are written as `\xHH`, as nginx does.

use std::io::Write as _;

use http::Method;
use jiff::Timestamp;
use spdy_net::protocol::Protocol;
use spdy_proxy::telemetry::access_log::AccessLogEntry;

/// The text for a value that is missing.
const ABSENT: &[u8] = b"-";
/// Most lines are shorter.
const USUAL_BYTES: usize = 256;

/// `entry` as a line, with its end.
pub(super) fn line(entry: &AccessLogEntry) -> Vec<u8> {
    let mut line = Vec::with_capacity(USUAL_BYTES);
    match entry.client {
        Some(client) => write_text(&mut line, format_args!("{}", client.to_canonical())),
        None => line.extend_from_slice(ABSENT),
    }
    let at = Timestamp::try_from(entry.at).unwrap_or_default();
    let time = at.strftime("%d/%b/%Y:%H:%M:%S +0000");
    write_text(&mut line, format_args!(" - - [{time}] \""));
    match (&entry.method, &entry.target) {
        (Some(method), Some(target)) => write_request(&mut line, method, target, entry.protocol),
        _ => line.extend_from_slice(ABSENT),
    }
    let (status, bytes) = (entry.status.as_str(), entry.bytes);
    write_text(&mut line, format_args!("\" {status} {bytes} \""));
    write_field(&mut line, entry.fields.referer.as_deref());
    line.extend_from_slice(b"\" \"");
    write_field(&mut line, entry.fields.user_agent.as_deref());
    line.extend_from_slice(b"\"\n");
    line
}

fn write_request(line: &mut Vec<u8>, method: &Method, target: &str, protocol: Option<Protocol>) {
    escape(line, method.as_str().as_bytes());
    line.push(b' ');
    escape(line, target.as_bytes());
    line.push(b' ');
    // Log analyzers support only versions of HTTP. SPDY carries HTTP/1.1 requests.
    line.extend_from_slice(match protocol {
        Some(Protocol::Http2) => b"HTTP/2.0",
        Some(Protocol::Http3) => b"HTTP/3.0",
        _ => b"HTTP/1.1",
    });
}

fn write_field(line: &mut Vec<u8>, value: Option<&[u8]>) {
    escape(
        line,
        value.filter(|value| !value.is_empty()).unwrap_or(ABSENT),
    );
}

fn escape(line: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b'"' | b'\\' => write_text(line, format_args!("\\x{byte:02X}")),
            b' '..=b'~' => line.push(*byte),
            _ => write_text(line, format_args!("\\x{byte:02X}")),
        }
    }
}

fn write_text(line: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    line.write_fmt(text).expect("a Vec accepts all bytes");
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::access_log::json::tests::entry;

    fn text(entry: &AccessLogEntry) -> String {
        String::from_utf8(line(entry)).expect("a line is ASCII")
    }

    #[test]
    fn line_has_the_fields_of_the_combined_format() {
        let mut one = entry();
        one.client = Some(IpAddr::from([192, 0, 2, 1]));
        one.protocol = Some(Protocol::Http2);
        one.fields.referer = Some(b"https://www.site.test/".as_slice().into());
        one.fields.user_agent = Some(b"Mozilla/5.0 (X11)".as_slice().into());
        assert_eq!(
            text(&one),
            "192.0.2.1 - - [22/Nov/2026:11:04:05 +0000] \"GET /a?b=1 HTTP/2.0\" 200 1234 \
             \"https://www.site.test/\" \"Mozilla/5.0 (X11)\"\n"
        );
        one.client = Some("::ffff:192.0.2.1".parse().expect("an address"));
        assert!(text(&one).starts_with("192.0.2.1 - -"), "{}", text(&one));
    }

    #[test]
    fn missing_values_are_dashes() {
        let mut one = entry();
        (one.method, one.target) = (None, None);
        one.fields.referer = Some(Box::default());
        assert_eq!(
            text(&one),
            "- - - [22/Nov/2026:11:04:05 +0000] \"-\" 200 1234 \"-\" \"-\"\n"
        );
    }

    #[test]
    fn hostile_values_cannot_end_a_field_or_a_line() {
        let mut one = entry();
        one.target = Some("/\" 200 1\n192.0.2.9 \\ \u{9b}31m".to_owned());
        one.fields.referer = Some(b"\" \"x\"\r\n\t".as_slice().into());
        one.fields.user_agent = Some(b"\x1b[31m\0\xff\x7f\\\"".as_slice().into());
        let line = text(&one);
        assert_eq!(line.matches('"').count(), 6, "{line}");
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(line.trim_end().chars().all(|c| (' '..='~').contains(&c)));
        assert!(
            line.contains(r#""GET /\x22 200 1\x0A192.0.2.9 \x5C \xC2\x9B31m HTTP/1.1""#),
            "{line}"
        );
        assert!(line.contains(r#""\x22 \x22x\x22\x0D\x0A\x09""#), "{line}");
        assert!(
            line.ends_with("\"\\x1B[31m\\x00\\xFF\\x7F\\x5C\\x22\"\n"),
            "{line}"
        );
    }
}
