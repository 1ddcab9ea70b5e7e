//! Header fields of responses.

pub(crate) const FRESH: (&str, &str) = ("cache-control", "max-age=60");
pub(crate) const ONCE: (&str, &str) = ("cache-control", "no-store");
pub(crate) const HTML: (&str, &str) = ("content-type", "text/html; charset=utf-8");
pub(crate) const CSS: (&str, &str) = ("content-type", "text/css");
pub(crate) const JS: (&str, &str) = ("content-type", "text/javascript");
pub(crate) const PNG: (&str, &str) = ("content-type", "image/png");
