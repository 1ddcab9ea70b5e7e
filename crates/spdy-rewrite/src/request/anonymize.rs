//! Builds the upstream request for a proxied resource, without what identifies the client.
//!
//! Only these parts of the client's request are sent upstream: the accepted formats and codings, the languages or the class of the
//! browser if the host's entry allows it, and the loop check. So the response is the same for all clients, and may be stored.
//!
//! The cache adds the fields that depend on stored responses (conditions, ranges).

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName,
    HeaderValue, ORIGIN, REFERER, TRANSFER_ENCODING, UPGRADE, USER_AGENT, VIA,
};
use http::{Method, Request, Version};

use crate::kind::Kind;
use crate::limits::MAX_CDN_LOOP_BYTES;
use crate::rules::Rules;
use crate::rules::config::{Referrer, Scheme};
use crate::rules::host_rule::HostRule;
use crate::rules::refusal::Refusal;
use crate::urls::proxied_url::ProxiedUrl;

pub use crate::load::{FetchMode, Load};

/// CDN-Loop (RFC 8586).
pub const CDN_LOOP: HeaderName = HeaderName::from_static("cdn-loop");

pub(crate) const SEC_FETCH_DEST: &str = "sec-fetch-dest";
pub(crate) const SEC_FETCH_MODE: &str = "sec-fetch-mode";
pub(crate) const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// The request to the host of the resource.
#[derive(Clone, Debug)]
pub struct UpstreamRequest {
    /// GET or HEAD; for a host with an alias and documents, also their methods.
    pub method: Method,
    /// All fields except Host, which is `ProxiedUrl::authority`.
    pub headers: HeaderMap,
    /// How the page loads it; the response is checked against it.
    pub load: Load,
}

/// Checks `request`, a request for `moved`, and builds the request for its host.
///
/// # Errors
///
/// The violated rule.
pub fn request<B>(
    rules: &Rules,
    moved: &ProxiedUrl,
    request: &Request<B>,
) -> Result<UpstreamRequest, Refusal> {
    let headers = request.headers();
    check_form(request.method(), headers)?;
    let load = check_load(headers)?;
    if let Some(kind) = load.expected.filter(|kind| !moved.kinds().has(*kind)) {
        let host = moved.host().to_owned();
        return Err(Refusal::KindNotListed { kind, host });
    }
    let mut fresh = fields(rules, moved, request, load.expected)?;
    if load.sends_origin() {
        fresh.insert(ORIGIN, value(rules.site_origin()));
    }
    if sends_referrer(rules, moved, headers) {
        fresh.insert(REFERER, value(rules.site().as_str()));
    }
    Ok(UpstreamRequest {
        method: request.method().clone(),
        headers: fresh,
        load,
    })
}

/// True if the host gets a Referer: not from a page over TLS to a host without TLS (strict-origin), and not if the browser sent
/// none.
pub(crate) fn sends_referrer(rules: &Rules, moved: &ProxiedUrl, headers: &HeaderMap) -> bool {
    let is_downgrade = rules.site().scheme() == "https" && moved.scheme() == Scheme::Http;
    rules.referrer() == Referrer::Origin && headers.contains_key(REFERER) && !is_downgrade
}

/// The common fields of all such requests: the accepted formats, the information about the client that the host's entry permits,
/// and the loop check.
pub(crate) fn fields<B>(
    rules: &Rules,
    moved: &ProxiedUrl,
    request: &Request<B>,
    expected: Option<Kind>,
) -> Result<HeaderMap, Refusal> {
    let headers = request.headers();
    let cdn_loop = check_loop(rules, headers)?;
    let mut fresh = HeaderMap::new();
    fresh.insert(ACCEPT, HeaderValue::from_static(accept(expected, headers)));
    fresh.insert(
        ACCEPT_ENCODING,
        HeaderValue::from_static(accept_encoding(expected, headers)),
    );
    let entry = rules.entry(moved);
    if entry.is_some_and(HostRule::varies_on_language)
        && let Some(languages) = single(headers, &ACCEPT_LANGUAGE)
    {
        fresh.insert(ACCEPT_LANGUAGE, languages.clone());
    }
    let sends_device_class = entry.is_some_and(HostRule::varies_on_user_agent);
    let browser = if sends_device_class {
        DeviceClass::of(headers)
    } else {
        DeviceClass::Other
    };
    fresh.insert(USER_AGENT, HeaderValue::from_static(browser.user_agent()));
    let received = match request.version() {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    };
    fresh.insert(VIA, value(&format!("{received} {}", rules.site_host())));
    fresh.insert(CDN_LOOP, cdn_loop);
    Ok(fresh)
}

pub(crate) fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("an origin is printable ASCII")
}

/// The value of a field; `None` if there are several.
pub(crate) fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

fn check_form(method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    if method != Method::GET && method != Method::HEAD {
        return Err(Refusal::Method {
            found: method.to_string(),
        });
    }
    check_body(headers)?;
    check_upgrade(headers)
}

/// Rejects a GET or HEAD with content, or with a field that announces content.
pub(crate) fn check_body(headers: &HeaderMap) -> Result<(), Refusal> {
    let has_length = headers
        .get_all(CONTENT_LENGTH)
        .iter()
        .any(|length| length != "0");
    if has_length || headers.contains_key(TRANSFER_ENCODING) {
        return Err(Refusal::Body);
    }
    Ok(())
}

/// Rejects a request that would switch from HTTP to another protocol.
pub(crate) fn check_upgrade(headers: &HeaderMap) -> Result<(), Refusal> {
    let has_member = |name: &HeaderName, word: &str| {
        list_members(headers, name).any(|member| member.eq_ignore_ascii_case(word))
    };
    if headers.contains_key(UPGRADE)
        || has_member(&CONNECTION, "upgrade")
        || headers.contains_key("sec-websocket-key")
        || headers.contains_key("http2-settings")
    {
        return Err(Refusal::Upgrade);
    }
    Ok(())
}

/// The members of a comma-separated field that are text.
fn list_members<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

fn check_load(headers: &HeaderMap) -> Result<Load, Refusal> {
    if headers.contains_key("service-worker") {
        return Err(Refusal::ServiceWorker);
    }
    let destination = fetch_metadata(headers, SEC_FETCH_DEST)?;
    let expected = match destination {
        None | Some("empty") => None,
        Some(destination) => {
            Some(
                Kind::from_destination(destination).ok_or_else(|| Refusal::Destination {
                    found: destination.to_owned(),
                })?,
            )
        }
    };
    let mode = match fetch_metadata(headers, SEC_FETCH_MODE)? {
        // Tracks without `crossorigin` must be same-origin, for which only CORS is a substitute.
        Some("cors" | "same-origin") => FetchMode::Cors,
        Some("no-cors") => FetchMode::NoCors,
        Some(other) => {
            let found = other.to_owned();
            return Err(Refusal::Destination { found });
        }
        None => FetchMode::Unknown,
    };
    match fetch_metadata(headers, SEC_FETCH_SITE)? {
        None | Some("same-origin") => {}
        Some("none") => {
            let found = "none".to_owned();
            return Err(Refusal::Destination { found });
        }
        Some(_) => return Err(Refusal::CrossSite),
    }
    Ok(Load {
        expected,
        mode,
        is_subresource: destination.is_some(),
        is_safe_method: true,
        is_same_origin: true,
    })
}

/// True if the client states that a page loads it, as any kind that is served under the site's name.
pub fn is_subresource_load(headers: &HeaderMap) -> bool {
    match fetch_metadata(headers, SEC_FETCH_DEST) {
        Ok(Some(destination)) => {
            destination == "empty" || Kind::from_destination(destination).is_some()
        }
        _ => false,
    }
}

/// True if the client states that a page loads it as a script.
pub fn is_script(headers: &HeaderMap) -> bool {
    let destination = fetch_metadata(headers, SEC_FETCH_DEST).ok().flatten();
    destination.and_then(Kind::from_destination) == Some(Kind::Script)
}

/// True if a page of another origin, for which nothing is fetched here ([`Refusal::CrossSite`]), is redirected to the host itself:
/// its browser states that it loads the resource as a permitted kind.
///
/// A page of the site without an origin, in a sandboxed frame, also looks like such a page.
pub fn is_sent_on(moved: &ProxiedUrl, headers: &HeaderMap) -> bool {
    match fetch_metadata(headers, SEC_FETCH_DEST) {
        Ok(Some("empty")) => true,
        Ok(Some(destination)) => {
            Kind::from_destination(destination).is_some_and(|kind| moved.kinds().has(kind))
        }
        _ => false,
    }
}

/// A field that only browsers send. A repeated field did not come from a browser.
pub(crate) fn fetch_metadata<'h>(
    headers: &'h HeaderMap,
    field: &'static str,
) -> Result<Option<&'h str>, Refusal> {
    let mut values = headers.get_all(field).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .map(Some)
            .map_err(|_| Refusal::Field { field }),
        _ => Err(Refusal::Field { field }),
    }
}

/// CDN-Loop with this site added; the part of a member before its parameters identifies the proxy that passed the request on.
fn check_loop(rules: &Rules, headers: &HeaderMap) -> Result<HeaderValue, Refusal> {
    let mut passed_by: Vec<&str> = Vec::new();
    for value in headers.get_all(CDN_LOOP) {
        let text = value
            .to_str()
            .map_err(|_| Refusal::Field { field: "cdn-loop" })?;
        passed_by.extend(
            text.split(',')
                .map(str::trim)
                .filter(|member| !member.is_empty()),
        );
    }
    let is_ours = |member: &&str| {
        let name = member.split(';').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case(rules.site_host())
    };
    let len: usize = passed_by.iter().map(|member| member.len() + 2).sum();
    if passed_by.iter().any(is_ours) || len > MAX_CDN_LOOP_BYTES {
        return Err(Refusal::Loop);
    }
    passed_by.push(rules.site_host());
    Ok(value(&passed_by.join(", ")))
}

/// Accept, reduced to a few values: hosts that select an image format by it still can.
fn accept(expected: Option<Kind>, headers: &HeaderMap) -> &'static str {
    let takes = |format: &str| {
        list_members(headers, &ACCEPT).any(|word| {
            word.split(';')
                .next()
                .is_some_and(|name| name.trim() == format)
        })
    };
    match expected {
        Some(Kind::Style) => "text/css,*/*;q=0.1",
        Some(Kind::Document) => "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        Some(Kind::Image) | None if takes("image/avif") => {
            "image/avif,image/webp,image/*,*/*;q=0.8"
        }
        Some(Kind::Image) | None if takes("image/webp") => "image/webp,image/*,*/*;q=0.8",
        Some(Kind::Image) => "image/*,*/*;q=0.8",
        _ => "*/*",
    }
}

/// Accept-Encoding, reduced to three values. Style sheets and documents are parsed here, so all codings that can be decoded are
/// accepted.
fn accept_encoding(expected: Option<Kind>, headers: &HeaderMap) -> &'static str {
    let takes = |coding: &str| {
        list_members(headers, &ACCEPT_ENCODING).any(|word| {
            let mut parts = word.split(';').map(str::trim);
            let is_refused = |weight: &str| {
                weight
                    .strip_prefix("q=")
                    .is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0))
            };
            parts
                .next()
                .is_some_and(|name| name.eq_ignore_ascii_case(coding))
                && !parts.any(is_refused)
        })
    };
    if matches!(expected, Some(Kind::Style | Kind::Document)) || (takes("br") && takes("gzip")) {
        "br, gzip"
    } else if takes("gzip") {
        "gzip"
    } else {
        "identity"
    }
}

/// The class of a browser: all that a host gets to know about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum DeviceClass {
    Desktop,
    Mobile,
    Other,
}

impl DeviceClass {
    fn of(headers: &HeaderMap) -> Self {
        let text = single(headers, &USER_AGENT)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let is_modern = ["Firefox/", "Chrome/", "Version/", "CriOS/", "FxiOS/"]
            .iter()
            .any(|mark| text.contains(mark));
        match (is_modern, text.contains("Mobile")) {
            (false, _) => Self::Other,
            (true, false) => Self::Desktop,
            (true, true) => Self::Mobile,
        }
    }

    fn user_agent(self) -> &'static str {
        match self {
            Self::Desktop => {
                "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
            }
            Self::Mobile => "Mozilla/5.0 (Android 14; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0",
            Self::Other => "Mozilla/5.0 (compatible; spdy-accelerate)",
        }
    }
}
