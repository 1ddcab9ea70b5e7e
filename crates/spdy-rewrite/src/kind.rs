//! The kind of a resource in a page, by its element and by its content type.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The use of a resource in a page.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Kind {
    /// Images, SVG and icons.
    Image,
    /// Style sheets.
    Style,
    /// Fonts.
    Font,
    /// Audio, video and their text tracks.
    Media,
    /// Scripts and modules, and what modules load: WebAssembly, JSON, source maps.
    Script,
    /// Frames, `object`, `embed` and the data that they request from their host; only for hosts with `mode = "name"`.
    Document,
    /// Scripts of workers; only for hosts with `mode = "name"`.
    Worker,
}

impl Kind {
    /// All kinds, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Image,
        Self::Style,
        Self::Font,
        Self::Media,
        Self::Script,
        Self::Document,
        Self::Worker,
    ];

    /// The name in configuration, reports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Style => "style",
            Self::Font => "font",
            Self::Media => "media",
            Self::Script => "script",
            Self::Document => "document",
            Self::Worker => "worker",
        }
    }

    /// True if it would act on behalf of its origin, so that it is served on an alias or not at all.
    pub fn needs_own_origin(self) -> bool {
        matches!(self, Self::Document | Self::Worker)
    }

    /// The kind of a `Sec-Fetch-Dest` on an alias; `None` for what is not served there: a top-level page (`document`), a service
    /// worker, reports.
    pub fn from_alias_destination(destination: &str) -> Option<Self> {
        Some(match destination {
            "iframe" | "frame" | "object" | "embed" => Self::Document,
            "worker" | "sharedworker" => Self::Worker,
            "audioworklet" | "paintworklet" => Self::Script,
            other => return Self::from_destination(other),
        })
    }

    /// The kind of a `Sec-Fetch-Dest` or of the `as` of a preload; `None` for everything that is never served under the site's own
    /// name.
    pub fn from_destination(destination: &str) -> Option<Self> {
        Some(match destination {
            "image" => Self::Image,
            "style" => Self::Style,
            "font" => Self::Font,
            "audio" | "video" | "track" => Self::Media,
            "script" | "json" => Self::Script,
            _ => return None,
        })
    }

    /// True if a response with media type `essence` (lower case, without parameters) may be used as this kind.
    ///
    /// Every proxied response has `nosniff`, so its type determines how a browser uses the bytes. Documents (HTML, XML other than
    /// SVG, PDF) belong to no kind that is served under the site's own name.
    pub fn admits(self, essence: &str) -> bool {
        let (family, subtype) = essence.split_once('/').unwrap_or((essence, ""));
        match self {
            // SVG is also a document; a proxied response is sandboxed, so it runs nothing when it is opened as one.
            Self::Image => family == "image",
            Self::Style => essence == "text/css",
            // Fonts have many media types, and browsers only check the bytes.
            Self::Font => {
                family == "font"
                    || subtype.starts_with("font-")
                    || subtype.starts_with("x-font-")
                    || essence == "application/vnd.ms-fontobject"
                    || essence == "application/x-woff"
                    || is_inert(essence)
            }
            Self::Media => {
                family == "audio"
                    || family == "video"
                    || matches!(essence, "text/vtt" | "application/ogg")
                    || is_playlist(essence)
                    || is_inert(essence)
            }
            Self::Script => {
                is_javascript(essence)
                    || essence == "application/wasm"
                    || family != "image" && is_json(subtype)
            }
            Self::Document => {
                matches!(essence, "text/html" | "text/plain" | "application/pdf")
                    || is_xml(subtype)
                    || is_json(subtype)
                    || family == "image"
            }
            Self::Worker => is_javascript(essence),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// True if `essence` is a JavaScript media type (WHATWG MIME Sniffing, *JavaScript MIME type*).
pub fn is_javascript(essence: &str) -> bool {
    matches!(
        essence,
        "text/javascript"
            | "application/javascript"
            | "application/x-javascript"
            | "application/ecmascript"
            | "application/x-ecmascript"
            | "text/ecmascript"
            | "text/x-ecmascript"
            | "text/x-javascript"
            | "text/jscript"
            | "text/livescript"
            | "text/javascript1.0"
            | "text/javascript1.1"
            | "text/javascript1.2"
            | "text/javascript1.3"
            | "text/javascript1.4"
            | "text/javascript1.5"
    )
}

fn is_json(subtype: &str) -> bool {
    subtype == "json" || subtype.ends_with("+json")
}

fn is_xml(subtype: &str) -> bool {
    subtype == "xml" || subtype.ends_with("+xml")
}

/// True for a playlist of media segments (HLS), by relative URLs or from the root of its host. It is not parsed here.
pub(crate) fn is_playlist(essence: &str) -> bool {
    let (family, subtype) = essence.split_once('/').unwrap_or_default();
    matches!(family, "application" | "audio" | "video")
        && matches!(subtype, "vnd.apple.mpegurl" | "mpegurl" | "x-mpegurl")
}

/// Types that no browser uses as a document, a script or a style sheet with `nosniff`.
fn is_inert(essence: &str) -> bool {
    matches!(essence, "application/octet-stream" | "binary/octet-stream")
}

/// True if only a load in CORS mode may read such a response: then the other host must have allowed the site.
pub fn requires_cors(essence: &str) -> bool {
    let subtype = essence.split_once('/').map_or("", |(_, subtype)| subtype);
    Kind::Font.admits(essence) && !is_inert(essence)
        || essence == "text/vtt"
        || essence == "application/wasm"
        || !essence.starts_with("image/") && is_json(subtype)
}

/// A set of kinds.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub struct Kinds(u8);

impl Kinds {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// Kinds that cannot run code: all except scripts.
    pub const PASSIVE: Self = Self(0b000_1111);
    /// Kinds that may be served under the site's own name: all except documents and workers.
    pub const PROXIED: Self = Self(0b001_1111);
    /// Every kind.
    pub const ALL: Self = Self(0b111_1111);

    /// True if `kind` is in the set.
    pub fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// The set with `kind` added.
    #[must_use]
    pub fn with(self, kind: Kind) -> Self {
        Self(self.0 | 1 << kind as u8)
    }

    /// The set without `kind`.
    #[must_use]
    pub fn without(self, kind: Kind) -> Self {
        Self(self.0 & !(1 << kind as u8))
    }

    /// The set without `others`.
    #[must_use]
    pub fn less(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// The intersection.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// True if the set is empty.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// The kinds, in the order of [`Kind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.has(*kind))
    }

    /// True if a response with media type `essence` may be used as one of them.
    pub fn admit(self, essence: &str) -> bool {
        self.iter().any(|kind| kind.admits(essence))
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_never_proxied_kinds() {
        for essence in [
            "text/html",
            "application/xhtml+xml",
            "application/xml",
            "text/xml",
            "application/pdf",
            "multipart/related",
            "message/rfc822",
            "text/plain",
            "application/x-shockwave-flash",
            "",
        ] {
            assert!(!Kinds::PROXIED.admit(essence), "{essence}");
        }
    }

    #[test]
    fn mime_type_matches_browser_kinds() {
        let kinds = |essence: &str| -> Vec<_> {
            Kind::ALL
                .into_iter()
                .filter(|kind| kind.admits(essence))
                .map(Kind::name)
                .collect()
        };
        assert_eq!(kinds("image/svg+xml"), ["image", "document"]);
        assert_eq!(kinds("text/css"), ["style"]);
        assert_eq!(kinds("font/woff2"), ["font"]);
        assert_eq!(kinds("application/font-woff"), ["font"]);
        assert_eq!(kinds("application/octet-stream"), ["font", "media"]);
        assert_eq!(kinds("video/mp4"), ["media"]);
        assert_eq!(kinds("text/javascript"), ["script", "worker"]);
        assert_eq!(kinds("text/html"), ["document"]);
        assert_eq!(kinds("application/wasm"), ["script"]);
        assert_eq!(kinds("application/manifest+json"), ["script", "document"]);
    }
}
