//! The result of checking a third party's response, and the rules that responses under the site's name and on an alias share.

use http::StatusCode;
use http::header::{
    ACCEPT_RANGES, ACCESS_CONTROL_ALLOW_ORIGIN, AGE, CACHE_CONTROL, CONTENT_ENCODING,
    CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, EXPIRES, HeaderMap,
    HeaderName, LAST_MODIFIED, VARY, VIA,
};

use crate::kind::Kinds;
use crate::rules::refusal::Refusal;

/// Cross-Origin-Resource-Policy (Fetch).
pub const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

/// Allowed fields: about the bytes, and about their lifetime.
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

/// The policy of a proxied resource that is opened as a page: it runs nothing and requests nothing.
pub(crate) const SANDBOX: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'";

/// The decision about a response.
#[derive(Clone, Debug)]
pub enum SanitizedResponse {
    /// Serve it with this head.
    Serve(HeaderMap),
    /// Pass on its status without a body: an error of the host, whose page is not needed here.
    StatusOnly(StatusCode),
    /// Redirect the client to the host itself: 307, and `Cache-Control: no-store`.
    Redirect(String),
    /// Do not serve it.
    Refuse(Refusal),
}

/// True if the response allows `origin` to read it, without credentials (Fetch, *CORS check*).
pub(crate) fn passes_cors_check(headers: &HeaderMap, origin: &str) -> bool {
    let mut values = headers.get_all(ACCESS_CONTROL_ALLOW_ORIGIN).iter();
    let value = values.next().filter(|_| values.next().is_none());
    value.is_some_and(|value| value == "*" || value == origin)
}

/// The media type without its parameters, in lower case; empty if there is none.
///
/// # Errors
///
/// [`Refusal::Field`] if there are two: a browser may use the other one.
pub fn essence(headers: &HeaderMap) -> Result<String, Refusal> {
    let wrong = Refusal::Field {
        field: "content-type",
    };
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(String::new()),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| wrong.clone())?;
            // Browsers use the last of several in one field, other software the first.
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

/// Types that a browser would open as a document, or pass to a plug-in: a client is never redirected to them either. For a response
/// without a type, the use in the page determines the kind, and the browser sniffs its bytes.
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
