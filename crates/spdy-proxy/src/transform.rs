//! What becomes of a body on its way: HTML and CSS have their references moved, everything else passes.
//!
//! ```text
//! origin's bytes ── coding undone ──▶ text ── html.rs, css.rs of spdy-rewrite ──▶ what is kept and served
//! ```

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use sha2::{Digest, Sha256};
use spdy_rewrite::rules::Rules;

use crate::coding::{Coding, CodingError, Decoder};
use crate::fields;

/// The most text that a page may decode to, bytes.
const MAX_PAGE_BYTES: usize = 64 * 1024 * 1024;
/// The most text that a sheet may decode to, bytes: it is rewritten whole.
const MAX_SHEET_BYTES: usize = 8 * 1024 * 1024;

/// What is done to a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Work {
    /// Nothing.
    Pass,
    /// A page of the site's own.
    Html,
    /// A sheet, the site's own or one that was moved.
    Css,
}

impl Work {
    /// What is to be done to an answer with this head to a request of `method`.
    #[must_use]
    pub fn of(
        rules: &Rules,
        is_moved: bool,
        method: &Method,
        path: &str,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Self {
        let is_rewritable = status == StatusCode::OK
            && matches!(*method, Method::GET | Method::HEAD | Method::POST)
            && !headers.contains_key(header::CONTENT_RANGE)
            && !is_untouchable(headers)
            && Coding::of(headers).is_some();
        let kind = headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default();
        match essence.trim().to_ascii_lowercase().as_str() {
            _ if !is_rewritable => Self::Pass,
            "text/html" if !is_moved && !rules.leaves_page(path) => Self::Html,
            "text/css" => Self::Css,
            _ => Self::Pass,
        }
    }

    /// The head under which the rewritten body is served, of the origin's.
    pub fn retell(self, rules: &Rules, headers: &mut HeaderMap) {
        if self == Self::Pass {
            return;
        }
        let tag = headers.get(header::ETAG).map(|tag| {
            let mut digest = Sha256::new();
            digest.update(rules.tag().as_bytes());
            digest.update([0]);
            digest.update(tag.as_bytes());
            let hex: String = digest.finalize()[..12]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            format!("\"{hex}\"")
        });
        for name in [
            "content-length",
            "content-encoding",
            "content-md5",
            "digest",
            "repr-digest",
            "content-digest",
            "accept-ranges",
            "last-modified",
            "etag",
        ] {
            headers.remove(name);
        }
        // The same text under the same rules is rewritten the same, so the origin's tag and theirs make ours.
        if let Some(tag) = tag.and_then(|tag| HeaderValue::try_from(tag).ok()) {
            headers.insert(header::ETAG, tag);
        }
        fields::no_longer_vary_on(headers, "accept-encoding");
    }
}

/// RFC 9111 §5.2.2.6.
pub(crate) fn is_untouchable(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .any(|directive| directive.trim_ascii().eq_ignore_ascii_case(b"no-transform"))
}

/// Does the work, piece by piece.
#[derive(Debug)]
pub struct Rewriter {
    /// `None` for a body that passes as it is, and at the end.
    decoder: Option<Decoder>,
}

impl Rewriter {
    /// For an answer whose head said `told`.
    #[must_use]
    pub fn new(work: Work, told: &HeaderMap) -> Self {
        let coding = Coding::of(told).unwrap_or(Coding::Identity);
        let decoder = match work {
            Work::Pass => None,
            Work::Html => Some(Decoder::new(coding, MAX_PAGE_BYTES)),
            Work::Css => Some(Decoder::new(coding, MAX_SHEET_BYTES)),
        };
        Self { decoder }
    }

    /// What `piece` becomes.
    ///
    /// # Errors
    ///
    /// [`CodingError`]: it is not what it was announced to be.
    pub fn write(&mut self, piece: Bytes) -> Result<Bytes, CodingError> {
        match &mut self.decoder {
            None => Ok(piece),
            Some(decoder) => Ok(decoder.write(&piece)?.into()),
        }
    }

    /// What is left at the end.
    ///
    /// # Errors
    ///
    /// [`CodingError`]: it ended too early.
    pub fn finish(&mut self) -> Result<Bytes, CodingError> {
        match self.decoder.take() {
            None => Ok(Bytes::new()),
            Some(decoder) => Ok(decoder.finish()?.into()),
        }
    }
}
