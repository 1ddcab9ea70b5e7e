//! The kind of a resource, from its response, its URL and the recorder's hint.
//!
//! In this order: the response's Content-Type, unless it is not specific (`text/plain`, octets, none); the ending of the URL's path;
//! the recorder's hint. A recorder's hint about the request outranks a Content-Type of HTML, because error pages are HTML.

use url::Url;

use crate::replica::Kind;

impl Kind {
    /// Every kind, in the order of this list.
    pub const ALL: [Self; 8] = [
        Self::Document,
        Self::Stylesheet,
        Self::Script,
        Self::Font,
        Self::Image,
        Self::Media,
        Self::Fetch,
        Self::Other,
    ];

    /// The name of the kind in archives and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Stylesheet => "stylesheet",
            Self::Script => "script",
            Self::Font => "font",
            Self::Image => "image",
            Self::Media => "media",
            Self::Fetch => "fetch",
            Self::Other => "other",
        }
    }

    /// Decides by the Content-Type of the response, the URL, and the recorder's hint (`xhr`, `image`, …).
    pub fn of(content_type: Option<&str>, url: &Url, hint: Option<&str>) -> Self {
        let hint = hint.and_then(Self::from_hint);
        let typed = content_type.and_then(Self::from_content_type);
        match (typed, hint) {
            // An HTML error page for an image still belongs to a request for an image.
            (Some(Self::Document), Some(hint)) if hint != Self::Other => hint,
            (Some(Self::Other), Some(Self::Fetch)) => Self::Fetch,
            (Some(Self::Other) | None, _) => Self::from_path(url.path())
                .or(hint)
                .or(typed)
                .unwrap_or(Self::Other),
            (Some(kind), _) => kind,
        }
    }

    /// By a Content-Type; `None` if it does not decide the kind.
    pub fn from_content_type(value: &str) -> Option<Self> {
        let essence = value
            .split([';', ','])
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        Some(match essence.as_str() {
            ""
            | "text/plain"
            | "application/octet-stream"
            | "binary/octet-stream"
            | "application/binary"
            | "application/x-unknown"
            | "unknown/unknown"
            | "x-unknown" => return None,
            "text/html" | "application/xhtml+xml" => Self::Document,
            "text/css" => Self::Stylesheet,
            "application/vnd.ms-fontobject" => Self::Font,
            "application/json" | "application/xml" | "text/xml" => Self::Fetch,
            other if other.contains("javascript") || other.contains("ecmascript") => Self::Script,
            other
                if other.starts_with("font/")
                    || other.contains("font-")
                    || other.contains("opentype") =>
            {
                Self::Font
            }
            other if other.starts_with("image/") => Self::Image,
            other if other.starts_with("video/") || other.starts_with("audio/") => Self::Media,
            other if other.ends_with("+json") || other.ends_with("+xml") => Self::Fetch,
            _ => Self::Other,
        })
    }

    fn from_path(path: &str) -> Option<Self> {
        let file = path.rsplit('/').next()?;
        let (_, ending) = file.rsplit_once('.')?;
        Some(match ending.to_ascii_lowercase().as_str() {
            "html" | "htm" | "xhtml" => Self::Document,
            "css" => Self::Stylesheet,
            "js" | "mjs" => Self::Script,
            "woff" | "woff2" | "ttf" | "otf" | "eot" => Self::Font,
            "png" | "gif" | "jpg" | "jpeg" | "webp" | "avif" | "svg" | "ico" | "bmp" => Self::Image,
            "mp4" | "webm" | "mp3" | "ogg" | "m4a" | "m3u8" | "flv" => Self::Media,
            "json" | "xml" => Self::Fetch,
            _ => return None,
        })
    }

    fn from_hint(hint: &str) -> Option<Self> {
        Some(match hint.to_ascii_lowercase().as_str() {
            "document" | "iframe" | "subdocument" | "html" => Self::Document,
            "stylesheet" | "css" => Self::Stylesheet,
            "script" | "js" => Self::Script,
            "font" => Self::Font,
            "image" | "img" => Self::Image,
            "media" | "video" | "audio" => Self::Media,
            "xhr" | "fetch" | "ping" | "beacon" | "eventsource" | "xmlhttprequest" => Self::Fetch,
            "manifest" | "other" | "texttrack" => Self::Other,
            _ => return None,
        })
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_type_wins_over_the_path_and_the_path_over_the_hint() {
        let url = |path: &str| Url::parse("http://a.test/").unwrap().join(path).unwrap();
        assert_eq!(
            Kind::of(Some("text/css; charset=utf-8"), &url("x.js"), None),
            Kind::Stylesheet
        );
        assert_eq!(
            Kind::of(Some("text/plain"), &url("x.js?v=1.png"), None),
            Kind::Script
        );
        assert_eq!(
            Kind::of(
                Some("application/octet-stream"),
                &url("x.woff"),
                Some("xhr")
            ),
            Kind::Font
        );
        assert_eq!(Kind::of(None, &url("x"), Some("Image")), Kind::Image);
        assert_eq!(
            Kind::of(Some("text/html"), &url("x"), Some("xhr")),
            Kind::Fetch
        );
        assert_eq!(Kind::of(None, &url("x"), None), Kind::Other);
        assert_eq!(
            Kind::of(Some("application/x-font-woff"), &url("x"), None),
            Kind::Font
        );
    }
}
