//! The files of the dashboard's page. They have no data, so that a browser can load them without the token. The page's script requests the
//! data with the token that the operator enters.

use http::{HeaderName, HeaderValue, Response, header};
use spdy::body::Body;

/// Content-Security-Policy: only files and data of this listener, no markup from strings, and no other page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The file at `path`; `None` if there is none.
pub(super) fn file(path: &str) -> Option<Response<Body>> {
    let (kind, text) = match path {
        "/" => ("text/html; charset=utf-8", include_str!("dashboard.html")),
        "/dashboard.css" => ("text/css; charset=utf-8", include_str!("dashboard.css")),
        "/dashboard.js" => (
            "text/javascript; charset=utf-8",
            include_str!("dashboard.js"),
        ),
        _ => return None,
    };
    let mut response = Response::new(Body::from(text));
    let fields = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
    response.headers_mut().extend(fields);
    Some(response)
}
