//! Checks on a request's head that HTTP/2 and HTTP/3 share (RFC 9113 §8.3.1, RFC 9114 §4.3.1), and the handling of `Host` in all
//! protocols but HTTP/1.1.

use bytes::{Bytes, BytesMut};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header, request};
use spdy::body::Body;
use spdy_http::request::without_default_port;

use crate::refusal::Flaw;

/// Why a list of fields is not a valid message (RFC 9113 §8.1.1, RFC 9114 §4.1.2).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("malformed message: {0}")]
pub struct MalformedHead(pub &'static str);

impl MalformedHead {
    /// The 400 response for the peer that sent it.
    pub fn answer(&self) -> Response<Body> {
        Flaw::Malformed.answer(format!("{self}\n"))
    }
}

/// Host and port, without a user name and password, which must not be there (RFC 9114 §4.3.1).
pub fn without_userinfo(authority: &Authority) -> &str {
    let authority = authority.as_str();
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}

/// Parses the value of `:authority` or `host`.
pub fn authority(field_value: Bytes) -> Result<Authority, MalformedHead> {
    let authority = Authority::from_maybe_shared(field_value);
    let authority = authority.map_err(|_| MalformedHead("invalid authority"))?;
    match without_userinfo(&authority) == authority.as_str() {
        true => Ok(authority),
        false => Err(MalformedHead("authority with userinfo")),
    }
}

/// The host of a request (RFC 9113 §8.3.1): `authority_field` (the value of `:authority`) or `host`. If both are present, they must
/// be equal; the default port of `scheme` may be omitted in either. CONNECT requires `:authority`.
pub fn resolve_host(
    method: &Method,
    scheme: &str,
    authority_field: Option<Authority>,
    headers: &HeaderMap,
) -> Result<Authority, MalformedHead> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(MalformedHead("more than one host"));
    }
    match (authority_field, host) {
        (Some(authority_field), Some(host))
            if !is_same_host(scheme, authority_field.as_str(), host) =>
        {
            Err(MalformedHead(":authority and host differ"))
        }
        (Some(authority_field), _) => Ok(authority_field),
        (None, Some(host)) if method != Method::CONNECT => {
            authority(Bytes::copy_from_slice(host.as_bytes()))
        }
        (None, _) => Err(MalformedHead("request without :authority and host")),
    }
}

fn is_same_host(scheme: &str, authority_field: &str, host: &HeaderValue) -> bool {
    let authority_field = without_default_port(scheme, authority_field);
    let host = host.to_str().map(|host| without_default_port(scheme, host));
    host.is_ok_and(|host| host.eq_ignore_ascii_case(authority_field))
}

/// Fails unless `path` begins at the root; `*` is the whole server, and only allowed for OPTIONS.
pub fn check_path(method: &Method, path: &PathAndQuery) -> Result<(), MalformedHead> {
    match path.as_str() {
        "*" if method == Method::OPTIONS => Ok(()),
        rooted if rooted.starts_with('/') => Ok(()),
        _ => Err(MalformedHead(":path does not start with /")),
    }
}

/// Joins the cookies into one field: separate fields compress better, but all other protocols and handlers expect one
/// (RFC 9113 §8.2.3, RFC 9114 §4.2.1).
pub fn join_cookies(headers: &mut HeaderMap) {
    let mut cookies = headers.get_all(header::COOKIE).iter();
    let (Some(first), Some(second)) = (cookies.next(), cookies.next()) else {
        return;
    };
    let mut joined = BytesMut::from(first.as_bytes());
    let mut is_sensitive = first.is_sensitive();
    for cookie in [second].into_iter().chain(cookies) {
        is_sensitive |= cookie.is_sensitive();
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(cookie.as_bytes());
    }
    let joined = HeaderValue::from_maybe_shared(joined.freeze());
    let mut joined = joined.expect("joined header values are valid");
    joined.set_sensitive(is_sensitive);
    headers.insert(header::COOKIE, joined);
}

/// Sets `:authority` to the value of `Host`, as in HTTP/1.1: the URI is where the request is sent, which may be another host
/// (RFC 9113 §8.3.1). CONNECT has only one host.
///
/// # Errors
///
/// `Host` is not a valid host.
pub fn set_authority<B>(request: &mut Request<B>) -> Result<(), MalformedHead> {
    let Some(host) = request.headers_mut().remove(header::HOST) else {
        return Ok(());
    };
    if *request.method() == Method::CONNECT || request.uri().scheme().is_none() {
        return Ok(());
    }
    let host = authority(Bytes::copy_from_slice(host.as_bytes()))?;
    let mut uri = std::mem::take(request.uri_mut()).into_parts();
    uri.authority = Some(host);
    *request.uri_mut() = Uri::from_parts(uri).map_err(|_| MalformedHead("invalid request URI"))?;
    Ok(())
}

/// Checks and completes the head of an HTTP/2 request. h2 checks only names, values, and which pseudo-header fields there are. It leaves
/// `:scheme` out if there is no `:authority`: then the scheme is that of the connection, which is HTTPS if `secure`.
pub fn check_head(head: &mut request::Parts, secure: bool) -> Result<(), MalformedHead> {
    let authority_field = head.uri.authority();
    if authority_field.is_some_and(|it| without_userinfo(it) != it.as_str()) {
        return Err(MalformedHead("authority with userinfo"));
    }
    let of_connection = if secure { Scheme::HTTPS } else { Scheme::HTTP };
    let scheme = head.uri.scheme().unwrap_or(&of_connection).as_str();
    let host = resolve_host(
        &head.method,
        scheme,
        authority_field.cloned(),
        &head.headers,
    )?;
    let path = head.uri.path_and_query();
    let path = path.filter(|_| head.method != Method::CONNECT);
    if let Some(path) = path {
        check_path(&head.method, path)?;
    }
    let has_path = path.is_some();
    // The URI is unchanged up to here, so that a refusal can report it.
    let mut uri = std::mem::take(&mut head.uri).into_parts();
    uri.authority = Some(host);
    if has_path {
        uri.scheme.get_or_insert(of_connection);
    }
    head.uri = Uri::from_parts(uri).map_err(|_| MalformedHead("invalid request URI"))?;
    join_cookies(&mut head.headers);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(method: &str, uri: &str, fields: &[(&'static str, &'static str)]) -> request::Parts {
        let mut builder = Request::builder().method(method).uri(uri);
        for (name, value) in fields {
            builder = builder.header(*name, *value);
        }
        builder.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn cookies_that_came_apart_are_one_and_keep_their_order() {
        let crumbs = [
            ("cookie", "a=b"),
            ("x", "y"),
            ("cookie", "c=d"),
            ("cookie", "e=f"),
        ];
        let mut head_parts = head("GET", "https://site.test/", &crumbs);
        check_head(&mut head_parts, true).expect("a valid head");
        let cookies: Vec<_> = head_parts.headers.get_all(header::COOKIE).iter().collect();
        assert_eq!(cookies, ["a=b; c=d; e=f"]);
    }

    #[test]
    fn a_request_is_for_one_host() {
        for (uri, hosts, expected) in [
            ("https://site.test/a", &[][..], Ok("https://site.test/a")),
            (
                "https://site.test/a",
                &["SITE.test"],
                Ok("https://site.test/a"),
            ),
            (
                "https://site.test:443/a",
                &["site.test"],
                Ok("https://site.test:443/a"),
            ),
            (
                "http://site.test/a",
                &["site.test:80"],
                Ok("http://site.test/a"),
            ),
            (
                "http://site.test/a",
                &["site.test:443"],
                Err(":authority and host differ"),
            ),
            (
                "https://site.test/a",
                &["other.test"],
                Err(":authority and host differ"),
            ),
            (
                "https://site.test/a",
                &["site.test", "site.test"],
                Err("more than one host"),
            ),
            (
                "/a",
                &["site.test", "other.test"],
                Err("more than one host"),
            ),
            ("/a", &["site.test"], Ok("https://site.test/a")),
            ("/a", &[], Err("request without :authority and host")),
            ("https://me@site.test/", &[], Err("authority with userinfo")),
        ] {
            let hosts: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
            let mut head_parts = head("GET", uri, &hosts);
            let settled = check_head(&mut head_parts, true).map(|()| head_parts.uri.to_string());
            let expected = expected.map(str::to_owned).map_err(MalformedHead);
            assert_eq!(settled, expected, "{uri} {hosts:?}");
        }
    }

    #[test]
    fn a_path_begins_at_the_root() {
        let check = |method: &str, path: &'static str| {
            let method = method.parse().expect("a method");
            let path = PathAndQuery::from_static(path);
            check_path(&method, &path).is_ok()
        };
        assert!(check("GET", "/?x"));
        assert!(!check("GET", "?x"));
        assert!(check("OPTIONS", "*"));
        assert!(!check("GET", "*"));
    }
}
