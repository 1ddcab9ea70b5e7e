//! The answer of a moved host: whether it may be served under the site's name, and what of its head.
//!
//! A third party must not speak in the site's name: no cookies, no policies, no links, no reports. So the fields
//! that pass are listed, not those that do not: a field that is invented tomorrow does no harm.

use http::StatusCode;
use http::header::{
    ACCEPT_RANGES, ACCESS_CONTROL_ALLOW_ORIGIN, AGE, CACHE_CONTROL, CONTENT_ENCODING,
    CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, DATE,
    ETAG, EXPIRES, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED, VARY, VIA,
    X_CONTENT_TYPE_OPTIONS,
};

use crate::kind::{Kinds, is_playlist, requires_cors};
use crate::request::anonymize::{FetchMode, Load};
use crate::response::alias_response;
use crate::rules::Rules;
use crate::rules::refusal::Refusal;
use crate::urls::proxied_url::ProxiedUrl;

/// Cross-Origin-Resource-Policy (Fetch).
pub const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

/// Fields that pass: what the bytes are, and how long they are good.
pub(crate) const ALLOWED_HEADERS: [HeaderName; 15] = [
    CONTENT_TYPE,
    CONTENT_LENGTH,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_RANGE,
    ACCEPT_RANGES,
    CACHE_CONTROL,
    EXPIRES,
    AGE,
    DATE,
    ETAG,
    LAST_MODIFIED,
    VARY,
    VIA,
    HeaderName::from_static("cache-status"),
];

/// The policy of a moved resource that is opened by itself: it runs nothing and requests nothing.
pub(crate) const SANDBOX: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'";

/// What becomes of an answer.
#[derive(Clone, Debug)]
pub enum SanitizedResponse {
    /// It is served with this head.
    Serve(HeaderMap),
    /// Its status is passed on without a body: an error of the host, whose page is not needed here.
    StatusOnly(StatusCode),
    /// The client is sent to the host itself: 307, and `Cache-Control: no-store`.
    Redirect(String),
    /// It is not served.
    Refuse(Refusal),
}

/// Judges the head of an answer to the request that [`anonymous`](crate::request::anonymize) wrote, or, of a host with a name of its own,
/// that [`named_request`](crate::request::alias_request) did.
///
/// Redirects are the matter of [`redirect`](crate::response::redirect), and refused here; but those of named hosts are passed on.
pub fn sanitize(
    rules: &Rules,
    moved: &ProxiedUrl,
    load: Load,
    status: StatusCode,
    headers: &HeaderMap,
) -> SanitizedResponse {
    if moved.is_alias() {
        return alias_response::sanitize_alias(rules, moved, load, status, headers);
    }
    let has_body = match status {
        StatusCode::OK
        | StatusCode::NON_AUTHORITATIVE_INFORMATION
        | StatusCode::PARTIAL_CONTENT => true,
        StatusCode::NOT_MODIFIED => false,
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            return SanitizedResponse::Refuse(Refusal::Credentials);
        }
        status if status.is_redirection() => return SanitizedResponse::Refuse(Refusal::Location),
        status => return SanitizedResponse::StatusOnly(status),
    };
    if has_body && let Err(refusal) = check(rules, moved, load, headers) {
        return match refusal {
            // The host itself may serve it to this page, so this page is redirected to the host. Other requests are not: the host's
            // response to us may differ from its response to a browser that opens the URL as a page.
            Refusal::ResourcePolicy | Refusal::Cors if load.is_subresource => {
                SanitizedResponse::Redirect(moved.url().to_string())
            }
            Refusal::Type { got } if load.is_subresource && !is_document_type(&got) => {
                SanitizedResponse::Redirect(moved.url().to_string())
            }
            refusal => SanitizedResponse::Refuse(refusal),
        };
    }
    SanitizedResponse::Serve(head(headers))
}

fn check(
    rules: &Rules,
    moved: &ProxiedUrl,
    load: Load,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    let essence = essence(headers)?;
    let is_admitted = match load.expected {
        Some(kind) => moved.kinds().has(kind) && kind.admits(&essence),
        None => moved.kinds().admit(&essence),
    };
    // What a playlist names from the root of its host would lead to the site; under a name of the host's own it does not.
    if !is_admitted || is_playlist(&essence) {
        return Err(Refusal::Type { got: essence });
    }
    let keeps_to_itself = |policy: &HeaderValue| policy == "same-origin" || policy == "same-site";
    if headers
        .get_all(CROSS_ORIGIN_RESOURCE_POLICY)
        .iter()
        .any(keeps_to_itself)
    {
        return Err(Refusal::ResourcePolicy);
    }
    // A type that only CORS loads is checked as one, whatever mode the request states.
    let is_read = load.mode == FetchMode::Cors || requires_cors(&essence);
    if is_read && !passes_cors_check(headers, rules.site_origin()) {
        return Err(Refusal::Cors);
    }
    Ok(())
}

/// Whether the answer lets `origin` read it, without credentials (Fetch, *CORS check*).
pub(crate) fn passes_cors_check(headers: &HeaderMap, origin: &str) -> bool {
    let mut values = headers.get_all(ACCESS_CONTROL_ALLOW_ORIGIN).iter();
    let value = values.next().filter(|_| values.next().is_none());
    value.is_some_and(|value| value == "*" || value == origin)
}

/// The media type without its parameters, in lower case; empty if there is none.
///
/// # Errors
///
/// [`Refusal::Field`] for two of them: a browser may choose the other one.
pub fn essence(headers: &HeaderMap) -> Result<String, Refusal> {
    let wrong = Refusal::Field {
        field: "content-type",
    };
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(String::new()),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| wrong.clone())?;
            // Browsers take the last of several in one field, others the first.
            if text.contains(',') {
                return Err(wrong);
            }
            Ok(text
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase())
        }
        _ => Err(wrong),
    }
}

/// Types that a browser would open as a document, or hand to a plug-in: never sent on either. What has no type is what the page uses
/// it as, and the browser finds out which by its bytes.
pub(crate) fn is_document_type(essence: &str) -> bool {
    let subtype = essence.split_once('/').map_or("", |(_, subtype)| subtype);
    matches!(
        essence,
        "text/html" | "application/pdf" | "application/x-shockwave-flash"
    ) || essence.starts_with("multipart/")
        || essence.starts_with("message/")
        || subtype == "xml"
        || subtype.ends_with("+xml") && !Kinds::PROXIED.admit(essence)
}

/// The head under which the site answers.
fn head(headers: &HeaderMap) -> HeaderMap {
    let mut head = HeaderMap::new();
    for name in &ALLOWED_HEADERS {
        for value in headers.get_all(name) {
            head.append(name.clone(), value.clone());
        }
    }
    for name in ["sourcemap", "x-sourcemap"] {
        if let Some(map) = headers.get(name).filter(|map| is_relative(map)) {
            head.insert(HeaderName::from_static(name), map.clone());
        }
    }
    head.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    head.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    head.insert(
        CROSS_ORIGIN_RESOURCE_POLICY,
        HeaderValue::from_static("same-origin"),
    );
    head
}

/// A path relative to the resource, which stays beside it when the resource moves.
fn is_relative(url: &HeaderValue) -> bool {
    url.to_str().is_ok_and(|url| {
        let first = url.split(['/', '?', '#']).next().unwrap_or_default();
        !first.is_empty() && first != ".." && !url.contains([':', '\\']) && !url.contains("/../")
    })
}
