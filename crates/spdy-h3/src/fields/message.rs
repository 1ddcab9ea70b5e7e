//! Converts requests and responses to lists of fields, and back, by the rules of RFC 9114 §4.

use bytes::Bytes;
use http::uri::{PathAndQuery, Scheme};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header, request, response,
};
use spdy_net_core::head::connection_headers::CONNECTION_HEADERS;
use spdy_net_core::head::request_head::{
    MalformedHead, authority, check_path, join_cookies, resolve_host, without_userinfo,
};

use crate::qpack::Field;

fn pseudo(name: &'static str, value: impl Into<Bytes>) -> Field {
    Field::new(Bytes::from_static(name.as_bytes()), value.into())
}

fn text(value: &str) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

fn regular(headers: &HeaderMap) -> impl Iterator<Item = Field> + '_ {
    headers.iter().map(|(name, value)| Field {
        name: text(name.as_str()),
        value: Bytes::copy_from_slice(value.as_bytes()),
        is_sensitive: value.is_sensitive(),
    })
}

/// The fields of a request, whose URI must be absolute. Hop-by-hop headers were already removed.
pub(crate) fn encode_request(head: &request::Parts) -> Vec<Field> {
    let mut fields = vec![pseudo(":method", text(head.method.as_str()))];
    let authority = head.uri.authority().map_or("", without_userinfo);
    if head.method != Method::CONNECT {
        let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        fields.push(pseudo(
            ":scheme",
            text(head.uri.scheme_str().unwrap_or("https")),
        ));
        fields.push(pseudo(":authority", text(authority)));
        fields.push(pseudo(":path", text(path)));
    } else {
        fields.push(pseudo(":authority", text(authority)));
    }
    fields.extend(regular(&head.headers));
    fields
}

/// The fields of a response.
pub(crate) fn encode_response(head: &response::Parts) -> Vec<Field> {
    let mut fields = vec![pseudo(":status", text(head.status.as_str()))];
    fields.extend(regular(&head.headers));
    fields
}

/// The fields of trailers.
pub(crate) fn encode_trailers(trailers: &HeaderMap) -> Vec<Field> {
    regular(trailers).collect()
}

/// Pseudo-header fields by name, each of which may occur once.
struct Pseudo<const N: usize> {
    names: [&'static str; N],
    values: [Option<Bytes>; N],
}

impl<const N: usize> Pseudo<N> {
    fn new(names: [&'static str; N]) -> Self {
        Self {
            names,
            values: [const { None }; N],
        }
    }

    fn put(&mut self, name: &[u8], value: Bytes) -> Result<(), MalformedHead> {
        let position = self.names.iter().position(|it| it.as_bytes() == name);
        let at = position.ok_or(MalformedHead("unexpected pseudo-header field"))?;
        match self.values[at].replace(value) {
            None => Ok(()),
            Some(_) => Err(MalformedHead("duplicate pseudo-header field")),
        }
    }
}

/// Splits `fields` into pseudo-header fields and others.
fn split<const N: usize>(
    fields: Vec<Field>,
    names: [&'static str; N],
) -> Result<([Option<Bytes>; N], HeaderMap), MalformedHead> {
    let mut pseudo = Pseudo::new(names);
    let mut headers = HeaderMap::new();
    for field in fields {
        let Field { name, value, .. } = field;
        if name.starts_with(b":") {
            if !headers.is_empty() {
                return Err(MalformedHead("pseudo-header field after a header field"));
            }
            pseudo.put(&name, value)?;
            continue;
        }
        if name.iter().any(u8::is_ascii_uppercase) {
            return Err(MalformedHead("uppercase letter in a field name"));
        }
        let name =
            HeaderName::from_bytes(&name).map_err(|_| MalformedHead("invalid field name"))?;
        if CONNECTION_HEADERS.contains(&name) {
            return Err(MalformedHead("connection-specific header field"));
        }
        if name == header::TE && &value[..] != b"trailers" {
            return Err(MalformedHead("te with a value other than trailers"));
        }
        append(&mut headers, name, value, field.is_sensitive)?;
    }
    join_cookies(&mut headers);
    Ok((pseudo.values, headers))
}

fn append(
    headers: &mut HeaderMap,
    name: HeaderName,
    value: Bytes,
    is_sensitive: bool,
) -> Result<(), MalformedHead> {
    let value = HeaderValue::from_maybe_shared(value);
    let mut value = value.map_err(|_| MalformedHead("invalid field value"))?;
    value.set_sensitive(is_sensitive);
    let appended = headers.try_append(name, value);
    appended.map_err(|_| MalformedHead("too many field names"))?;
    Ok(())
}

/// Parses the request of `fields`; its URI is absolute, except for CONNECT.
pub(crate) fn request(fields: Vec<Field>) -> Result<request::Parts, MalformedHead> {
    let names = [":method", ":scheme", ":authority", ":path"];
    let ([method, scheme, authority_field, path], headers) = split(fields, names)?;
    let method = method.ok_or(MalformedHead("request without :method"))?;
    let method = Method::from_bytes(&method).map_err(|_| MalformedHead("invalid :method"))?;
    let authority_field = authority_field.filter(|it| !it.is_empty());
    let authority_field = authority_field.map(authority).transpose()?;
    let of_web = scheme.as_ref().and_then(|it| std::str::from_utf8(it).ok());
    let resolved_host = resolve_host(
        &method,
        of_web.unwrap_or_default(),
        authority_field,
        &headers,
    );
    let mut uri = http::uri::Parts::default();
    if method == Method::CONNECT {
        if scheme.is_some() || path.is_some() {
            return Err(MalformedHead("CONNECT with :scheme or :path"));
        }
        uri.authority = Some(resolved_host?);
    } else {
        let scheme = scheme.ok_or(MalformedHead("request without :scheme"))?;
        let path = path.filter(|path| !path.is_empty());
        let path = path.ok_or(MalformedHead("request without :path"))?;
        uri.authority = Some(resolved_host?);
        uri.scheme =
            Some(Scheme::try_from(&scheme[..]).map_err(|_| MalformedHead("invalid :scheme"))?);
        let path =
            PathAndQuery::from_maybe_shared(path).map_err(|_| MalformedHead("invalid :path"))?;
        check_path(&method, &path)?;
        uri.path_and_query = Some(path);
    }
    let uri = Uri::from_parts(uri).map_err(|_| MalformedHead("invalid request URI"))?;
    let (mut head, ()) = http::Request::new(()).into_parts();
    (head.method, head.uri, head.headers) = (method, uri, headers);
    head.version = http::Version::HTTP_3;
    Ok(head)
}

/// Parses the response of `fields`.
pub(crate) fn response(fields: Vec<Field>) -> Result<response::Parts, MalformedHead> {
    let ([status], headers) = split(fields, [":status"])?;
    let status = status.ok_or(MalformedHead("response without :status"))?;
    let status = StatusCode::from_bytes(&status).map_err(|_| MalformedHead("invalid :status"))?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(MalformedHead("status 101, which HTTP/3 does not support"));
    }
    let (mut head, ()) = http::Response::new(()).into_parts();
    (head.status, head.headers) = (status, headers);
    head.version = http::Version::HTTP_3;
    Ok(head)
}

/// Parses the trailers of `fields`.
pub(crate) fn decode_trailers(fields: Vec<Field>) -> Result<HeaderMap, MalformedHead> {
    split(fields, []).map(|([], trailers)| trailers)
}

/// The value of `content-length`; all of its fields must have the same value.
pub(crate) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, MalformedHead> {
    let mut content_length = None;
    for value in headers.get_all(header::CONTENT_LENGTH) {
        let wrong = MalformedHead("invalid or conflicting content-length");
        let digits = value
            .to_str()
            .ok()
            .filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
        let len = digits
            .and_then(|digits| digits.parse().ok())
            .ok_or(wrong.clone())?;
        if content_length.is_some_and(|earlier: u64| earlier != len) {
            return Err(wrong);
        }
        content_length = Some(len);
    }
    Ok(content_length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&'static str, &'static str)]) -> Vec<Field> {
        pairs
            .iter()
            .map(|(name, value)| pseudo(name, *value))
            .collect()
    }

    const GET: [(&str, &str); 4] = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "site.test"),
        (":path", "/a?b"),
    ];

    fn get_with(more: &[(&'static str, &'static str)]) -> Vec<Field> {
        fields(&[&GET[..], more].concat())
    }

    #[test]
    fn a_request_reads_back_as_it_was() {
        let (mut head, ()) = http::Request::get("https://site.test/a?b")
            .body(())
            .unwrap()
            .into_parts();
        head.headers.insert("x-one", HeaderValue::from_static("1"));
        let back = request(encode_request(&head)).unwrap();
        assert_eq!(
            (back.method, back.uri, back.headers),
            (head.method, head.uri, head.headers)
        );
    }

    #[test]
    fn a_sensitive_value_stays_sensitive() {
        let mut headers = HeaderMap::new();
        let mut token = HeaderValue::from_static("1");
        token.set_sensitive(true);
        headers.insert("x-token", token);
        headers.insert("x-other", HeaderValue::from_static("2"));
        let fields = encode_trailers(&headers);
        let back = decode_trailers(fields).unwrap();
        assert!(back["x-token"].is_sensitive() && !back["x-other"].is_sensitive());
    }

    #[test]
    fn userinfo_is_removed_from_the_authority() {
        for uri in [
            "https://me:secret@site.test:8443/",
            "https://me@site.test:8443/",
        ] {
            let (head, ()) = http::Request::get(uri).body(()).unwrap().into_parts();
            let back = request(encode_request(&head)).unwrap();
            assert_eq!(back.uri, "https://site.test:8443/");
        }
    }

    #[test]
    fn a_message_may_have_as_many_field_names_as_its_map_and_no_more() {
        let trailers_of = |names: usize| {
            let fields =
                (0..names).map(|nth| Field::new(Bytes::from(format!("x{nth}")), Bytes::new()));
            decode_trailers(fields.collect())
        };
        // The maximum of http's map: three quarters of 2^15.
        assert_eq!(trailers_of(24_576).unwrap().len(), 24_576);
        assert!(trailers_of(24_577).is_err());
    }

    #[test]
    fn a_response_reads_back_as_it_was() {
        let (head, ()) = http::Response::builder()
            .status(404)
            .header("a", "b")
            .body(())
            .unwrap()
            .into_parts();
        let back = response(encode_response(&head)).unwrap();
        assert_eq!((back.status, back.headers), (head.status, head.headers));
    }

    #[test]
    fn cookies_that_came_apart_are_one_again() {
        let head = request(get_with(&[
            ("cookie", "a=b"),
            ("x", "y"),
            ("cookie", "c=d"),
        ]))
        .unwrap();
        assert_eq!(head.headers[header::COOKIE], "a=b; c=d");
        assert_eq!(head.headers.get_all(header::COOKIE).iter().count(), 1);
    }

    #[test]
    fn host_stands_in_for_authority() {
        let with_host = [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/"),
            ("host", "site.test"),
        ];
        assert_eq!(
            request(fields(&with_host)).unwrap().uri,
            "https://site.test/"
        );
        assert!(request(get_with(&[("host", "SITE.test")])).is_ok());
    }

    #[test]
    fn malformed_requests_are_errors() {
        for wrong in [
            get_with(&[("Capital", "x")]),
            get_with(&[("connection", "close")]),
            get_with(&[("transfer-encoding", "chunked")]),
            get_with(&[("te", "gzip")]),
            get_with(&[("x", "y"), (":path", "/")]),
            get_with(&[(":path", "/")]),
            get_with(&[(":status", "200")]),
            get_with(&[("host", "other.test")]),
            get_with(&[("a b", "c")]),
            get_with(&[("a", "b\r\nc: d")]),
            get_with(&[("host", "site.test"), ("host", "other.test")]),
            fields(&[GET[0], GET[1], (":authority", "me@site.test"), GET[3]]),
            fields(&[GET[0], GET[1], GET[3], ("host", "me@site.test")]),
            fields(&[GET[0], GET[1], GET[3], ("host", "")]),
            fields(&GET[..3]),
            fields(&GET[1..]),
            fields(&[GET[0], GET[1], GET[3]]),
            fields(&[GET[0], GET[2], GET[3]]),
            fields(&[(":method", "CONNECT"), GET[1], GET[2], GET[3]]),
        ] {
            assert!(request(wrong.clone()).is_err(), "{wrong:?}");
        }
        assert!(request(get_with(&[("te", "trailers")])).is_ok());
        assert!(request(fields(&[(":method", "CONNECT"), GET[2]])).is_ok());
    }

    #[test]
    fn malformed_responses_and_trailers_are_errors() {
        for wrong in [
            &[][..],
            &[(":status", "20")],
            &[(":status", "101")],
            &[("a", "b")],
        ] {
            assert!(response(fields(wrong)).is_err(), "{wrong:?}");
        }
        assert!(decode_trailers(fields(&[(":status", "200")])).is_err());
        assert!(decode_trailers(fields(&[("grpc-status", "0")])).is_ok());
    }

    #[test]
    fn a_content_length_is_digits_and_one_number() {
        let of = |values: &[&'static str]| {
            let values = values
                .iter()
                .map(|it| (header::CONTENT_LENGTH, HeaderValue::from_static(it)));
            content_length(&values.collect())
        };
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&["7"]), Ok(Some(7)));
        for wrong in [&["+7"][..], &["7, 7"], &["x"], &["18446744073709551616"]] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
        let mut two = HeaderMap::new();
        two.append(header::CONTENT_LENGTH, HeaderValue::from_static("7"));
        two.append(header::CONTENT_LENGTH, HeaderValue::from_static("8"));
        assert!(content_length(&two).is_err());
    }
}
