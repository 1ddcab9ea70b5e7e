//! How an accelerator delivers each resource of a page: as the site's own, proxied, or not, and why not.

use spdy_rewrite::kind::Kind;
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::rules::verdict::SkipReason;
use url::Url;

/// How a resource is delivered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Delivery {
    /// It is requested under a name of the site, with or without an accelerator.
    Own,
    /// It is served by the accelerator, under the site's name.
    Proxied,
    /// It is served by the accelerator, under an alias of its host.
    Aliased,
    /// The client requests it from its own host.
    Direct(DirectReason),
}

/// Why a resource is not proxied.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DirectReason {
    /// The rewriter's reason for the reference.
    #[error("{reason}")]
    Rule {
        /// Its reason.
        reason: SkipReason,
        /// How the text names it; `None` for frames.
        named: Option<Box<ResolvedReference>>,
    },
    /// No text names it: a script requests it by a URL that it builds.
    #[error("no recorded text names it: a script requests it")]
    DynamicUrl,
    /// A proxied script requests it by a URL that it derives from its own. Its capability is for that URL alone, so the page
    /// would lack the resource.
    #[error(
        "a script builds its URL from its own, which is proxied alone: list the package of the script"
    )]
    DerivedUrl(Kind),
    /// A module imports it, and the import map of the rewritten page does not lead to its proxied URL.
    #[error(
        "a module imports it, and no import map can redirect the import: its host is shared, or the page's policy forbids it"
    )]
    Unmapped,
    /// The recording has no text that could name it, but bytes of its size.
    #[error("the text that names it was not recorded")]
    NotRecorded,
    /// The text that names it is not proxied, so the accelerator does not read it.
    #[error("the resource that names it is not proxied")]
    ReferrerIsDirect,
    /// The page or sheet that names it is passed on unchanged.
    #[error("the text that names it is not rewritten")]
    TextNotRewritten,
    /// It was proxied, and the client is redirected to the host: its response, or the target of its redirect, is not
    /// available here.
    #[error("the client is redirected to the host")]
    RedirectedToHost,
    /// It was proxied, and its response is rejected: the page would lack it.
    #[error("the proxied response would be rejected: {0}")]
    Refused(Refusal),
}

/// A reference, resolved in the text that contains it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ResolvedReference {
    /// Its target; if it has no scheme, with the scheme of the page as clients load it.
    pub url: Url,
    /// The use of the target.
    pub kind: Kind,
}

impl DirectReason {
    /// The name for tables and JSON: that of the rewriter's reason where there is one.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rule { reason, .. } => reason.name(),
            Self::DynamicUrl => "dynamic-url",
            Self::DerivedUrl(_) => "derived-url",
            Self::Unmapped => "unmapped",
            Self::NotRecorded => "not-recorded",
            Self::ReferrerIsDirect => "referrer-is-direct",
            Self::TextNotRewritten => "text-not-rewritten",
            Self::RedirectedToHost => "redirected-to-host",
            Self::Refused(_) => "refused",
        }
    }
}
