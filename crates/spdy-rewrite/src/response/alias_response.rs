//! Sanitizes the response of a host with an alias: which of its headers are passed on.
//!
//! On an alias the host speaks for itself and not for the site, so its fields about its bytes, about allowed readers and about its
//! own documents stay. Fields that would affect the operator's zone, or more than one response, are removed: cookies, HSTS,
//! Alt-Svc, reports, Clear-Site-Data, the scope of service workers, authentication challenges. As under the site's name, there is a
//! list of allowed fields.
//!
//! | | under the site's name | on an alias |
//! | --- | --- | --- |
//! | policy | `sandbox`, nothing allowed | its own if it has documents or workers, otherwise as under the site's name |
//! | `nosniff` | always | always, except if it has documents: then as received |
//! | Cross-Origin-Resource-Policy | `same-origin` | as received, but `same-site` becomes `same-origin`: aliases are of one site |
//! | Access-Control-Allow-Origin | checked here | as received, but an origin with an alias is replaced by the alias |
//! | redirects | followed here | passed on: to an alias if they lead to the host itself or to another host with an alias |

use http::StatusCode;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY_REPORT_ONLY, HeaderMap,
    HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use url::Url;

use crate::csp::Policies;
use crate::csp::page_location::PageLocation;
use crate::kind::{Kind, Kinds};
use crate::load::{FetchMode, Load};
use crate::response::redirect;
use crate::response::sanitized_response::{
    ALLOWED_HEADERS, CROSS_ORIGIN_RESOURCE_POLICY, SANDBOX, SanitizedResponse, essence,
    is_document_type,
};
use crate::rules::Rules;
use crate::rules::refusal::Refusal;
use crate::urls::proxied_url::ProxiedUrl;

const TIMING_ALLOW_ORIGIN: HeaderName = HeaderName::from_static("timing-allow-origin");

/// Fields that are allowed in addition to those under the site's name: about allowed readers, and about showing its documents.
const ALIAS_ALLOWED_HEADERS: [HeaderName; 15] = [
    ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE,
    TIMING_ALLOW_ORIGIN,
    CROSS_ORIGIN_RESOURCE_POLICY,
    HeaderName::from_static("cross-origin-embedder-policy"),
    HeaderName::from_static("permissions-policy"),
    CONTENT_DISPOSITION,
    REFERRER_POLICY,
    X_FRAME_OPTIONS,
    HeaderName::from_static("origin-agent-cluster"),
    HeaderName::from_static("x-robots-tag"),
];

/// Checks the head of a response to the request that [`alias_request`](crate::request::alias_request) built.
pub(crate) fn sanitize_alias(
    rules: &Rules,
    moved: &ProxiedUrl,
    load: Load,
    status: StatusCode,
    headers: &HeaderMap,
) -> SanitizedResponse {
    if load.allows_redirect() && blocks_cross_origin(load, headers) {
        return SanitizedResponse::Redirect(moved.url().to_string());
    }
    match status {
        StatusCode::NOT_MODIFIED | StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT => {}
        status if status.is_redirection() => return rewrite_redirect(rules, moved, load, headers),
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            return SanitizedResponse::StatusOnly(status);
        }
        status => match check_type(moved, load, headers) {
            Ok(()) if status.is_success() => {}
            // A document's own error page, and the responses to its scripts.
            Ok(()) if moved.kinds().has(Kind::Document) => {}
            // The host has already processed the request; it must not be repeated.
            Err(Refusal::Type { .. }) if !load.is_safe_method => {}
            Err(refusal) if status.is_success() => return refused(moved, load, refusal),
            _ => return SanitizedResponse::StatusOnly(status),
        },
    }
    SanitizedResponse::Serve(head(rules, moved, headers))
}

fn check_type(moved: &ProxiedUrl, load: Load, headers: &HeaderMap) -> Result<(), Refusal> {
    let essence = essence(headers)?;
    let kinds = moved.kinds();
    let is_admitted = match load.expected {
        // The browser determines the type of a frame's content.
        Some(Kind::Document) if essence.is_empty() => kinds.has(Kind::Document),
        Some(kind) => kinds.has(kind) && kind.admits(&essence),
        None => kinds.admit(&essence) || is_data(kinds, &essence),
    };
    match is_admitted {
        true => Ok(()),
        false => Err(Refusal::Type { found: essence }),
    }
}

/// True if it is data for a document's scripts: not a script or style sheet, unless that is listed.
fn is_data(kinds: Kinds, essence: &str) -> bool {
    let acts = [Kind::Script, Kind::Style];
    kinds.has(Kind::Document) && !acts.iter().any(|kind| kind.admits(essence))
}

/// True if the host's policy blocks the load. For browsers all aliases belong to one site, which is not the operator's; here the
/// host's policy is applied to them. A navigation is never blocked (Fetch, *cross-origin resource policy check*).
fn blocks_cross_origin(load: Load, headers: &HeaderMap) -> bool {
    let is_checked = load.mode == FetchMode::NoCors && load.expected != Some(Kind::Document);
    let policies = headers.get_all(CROSS_ORIGIN_RESOURCE_POLICY);
    let mut policies = policies.iter();
    is_checked
        && !load.is_same_origin
        && policies.any(|policy| policy == "same-origin" || policy == "same-site")
}

fn refused(moved: &ProxiedUrl, load: Load, refusal: Refusal) -> SanitizedResponse {
    match refusal {
        // The host itself may serve it to this page, so this page is redirected to the host.
        Refusal::Type { found } if load.allows_redirect() && !is_document_type(&found) => {
            SanitizedResponse::Redirect(moved.url().to_string())
        }
        refusal => SanitizedResponse::Refuse(refusal),
    }
}

/// A redirect that the browser follows, so that the resource has the URL that it would have without us.
fn rewrite_redirect(
    rules: &Rules,
    moved: &ProxiedUrl,
    load: Load,
    headers: &HeaderMap,
) -> SanitizedResponse {
    let next = match redirect::target(moved, headers) {
        Ok(next) => next,
        Err(refusal) => return SanitizedResponse::Refuse(refusal),
    };
    let location = match rules.alias_url(&next) {
        Ok(Some(place)) => place,
        // Only to a page that loads it as a subresource: otherwise it would be an open redirect in the operator's zone.
        _ if load.is_subresource => next.to_string(),
        Ok(None) => return SanitizedResponse::Refuse(Refusal::Location),
        Err(refusal) => return SanitizedResponse::Refuse(refusal),
    };
    let Ok(location) = HeaderValue::from_str(&location) else {
        return SanitizedResponse::Refuse(Refusal::Location);
    };
    let mut head = head(rules, moved, headers);
    head.insert(LOCATION, location);
    SanitizedResponse::Serve(head)
}

/// The head of the response on the alias.
fn head(rules: &Rules, moved: &ProxiedUrl, headers: &HeaderMap) -> HeaderMap {
    let mut head = HeaderMap::new();
    for name in ALLOWED_HEADERS.iter().chain(&ALIAS_ALLOWED_HEADERS) {
        for value in headers.get_all(name) {
            head.append(name.clone(), value.clone());
        }
    }
    rewrite_origins(rules, &mut head);
    let kinds = moved.kinds();
    if kinds.has(Kind::Document) {
        if let Some(sniffing) = headers.get(X_CONTENT_TYPE_OPTIONS) {
            head.insert(X_CONTENT_TYPE_OPTIONS, sniffing.clone());
        }
    } else {
        head.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    if kinds.has(Kind::Document) || kinds.has(Kind::Worker) {
        for name in [CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY_REPORT_ONLY] {
            for value in headers.get_all(&name) {
                head.append(name.clone(), value.clone());
            }
        }
        Policies::rewrite_head_at(PageLocation::for_alias(moved), rules, &mut head);
    } else {
        head.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    }
    head
}

/// Replaces origins that have an alias by their alias: the host's own, or that of another host whose frame sent the request. Narrows the
/// resource policy `same-site` to `same-origin`, because the site of an alias is the alias alone.
fn rewrite_origins(rules: &Rules, head: &mut HeaderMap) {
    for name in [ACCESS_CONTROL_ALLOW_ORIGIN, TIMING_ALLOW_ORIGIN] {
        let values: Vec<HeaderValue> = head.get_all(&name).iter().cloned().collect();
        head.remove(&name);
        for value in values {
            let here = alias_of_origin(rules, &value).unwrap_or(value);
            head.append(name.clone(), here);
        }
    }
    if let Some(policy) = head.get_mut(CROSS_ORIGIN_RESOURCE_POLICY)
        && *policy == "same-site"
    {
        *policy = HeaderValue::from_static("same-origin");
    }
}

/// The alias of the origin `value`, if it has one.
fn alias_of_origin(rules: &Rules, value: &HeaderValue) -> Option<HeaderValue> {
    let text = value.to_str().ok()?;
    let named = rules.alias_of(&Url::parse(text).ok()?)?;
    let is_it = named.original_origin() == text;
    is_it.then(|| HeaderValue::from_str(named.origin()).expect("an origin is printable ASCII"))
}
