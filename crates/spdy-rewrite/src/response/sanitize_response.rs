//! Sanitizes a third party's response: decides if it may be served under the site's name, and with which headers.
//!
//! A third party must not speak for the site: no cookies, no policies, no links, no reports. There is a list of allowed fields, not
//! of forbidden ones, so a future field does no harm.

use http::StatusCode;
use http::header::{
    CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, LOCATION, X_CONTENT_TYPE_OPTIONS,
};

use crate::kind::{is_playlist, requires_cors};
use crate::load::{FetchMode, Load};
use crate::response::alias_response;
use crate::response::redirect::passed_location;
use crate::response::sanitized_response::{
    ALLOWED_HEADERS, SANDBOX, is_document_type, passes_cors_check,
};
use crate::rules::Rules;
use crate::rules::refusal::Refusal;
use crate::urls::proxied_url::ProxiedUrl;

pub use crate::response::sanitized_response::{
    CROSS_ORIGIN_RESOURCE_POLICY, SanitizedResponse, essence,
};

/// Checks the head of a response to the request that [`anonymize`](crate::request::anonymize) built or, for a host with an alias,
/// [`alias_request`](crate::request::alias_request).
///
/// Redirects are handled by [`redirect`](crate::response::redirect), and refused here, except those that are passed on: of hosts with
/// an alias, and within one host.
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
        status if status.is_redirection() => {
            return match passed_redirect(rules, moved, load, headers) {
                Some(head) => SanitizedResponse::Serve(head),
                None => SanitizedResponse::Refuse(Refusal::Location),
            };
        }
        status => return SanitizedResponse::StatusOnly(status),
    };
    if has_body && let Err(refusal) = check(rules, moved, load, headers) {
        return match refusal {
            // The host itself may serve it to this page, so this page is redirected to the host. Other requests are not: the host's
            // response to us may differ from its response to a browser that opens the URL as a page.
            Refusal::ResourcePolicy | Refusal::Cors if load.is_subresource => {
                SanitizedResponse::Redirect(moved.url().to_string())
            }
            Refusal::Type { found } if load.is_subresource && !is_document_type(&found) => {
                SanitizedResponse::Redirect(moved.url().to_string())
            }
            refusal => SanitizedResponse::Refuse(refusal),
        };
    }
    SanitizedResponse::Serve(head(headers))
}

/// The head of a redirect that is passed on.
fn passed_redirect(
    rules: &Rules,
    moved: &ProxiedUrl,
    load: Load,
    headers: &HeaderMap,
) -> Option<HeaderMap> {
    let location = passed_location(rules, moved, load, headers)?;
    let mut head = head(headers);
    head.insert(LOCATION, HeaderValue::try_from(location).ok()?);
    Some(head)
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
    // Paths from the root in a playlist would be resolved to the site; on an alias they are correct.
    if !is_admitted || is_playlist(&essence) {
        return Err(Refusal::Type { found: essence });
    }
    let keeps_to_itself = |policy: &HeaderValue| policy == "same-origin" || policy == "same-site";
    if headers
        .get_all(CROSS_ORIGIN_RESOURCE_POLICY)
        .iter()
        .any(keeps_to_itself)
    {
        return Err(Refusal::ResourcePolicy);
    }
    // A type that is only loaded by CORS is checked as such, for any mode that the request states.
    let is_read = load.mode == FetchMode::Cors || requires_cors(&essence);
    if is_read && !passes_cors_check(headers, rules.site_origin()) {
        return Err(Refusal::Cors);
    }
    Ok(())
}

/// The head of the response under the site's name.
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

/// True for a path relative to the resource, which stays correct when the resource is proxied.
fn is_relative(url: &HeaderValue) -> bool {
    url.to_str().is_ok_and(|url| {
        let first = url.split(['/', '?', '#']).next().unwrap_or_default();
        !first.is_empty() && first != ".." && !url.contains([':', '\\']) && !url.contains("/../")
    })
}
