//! What becomes of a third party's response, and the rules that responses under the site's name and under an alias share.

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
