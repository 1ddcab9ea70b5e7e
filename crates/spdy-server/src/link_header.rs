//! Parses the `Link` header, for a server that pushes and hints (RFC 8288 §3).
//!
//! ```text
//! </style.css>; rel=preload; as=style, <https://cdn.test/a.js>; rel="preload"; nopush
//!  target       parameters              target                  parameters
//! ```
//!
//! Parsing stops at the first error: earlier links are valid, the rest is ignored. Nothing is copied and each byte is read once, so
//! a hostile header costs no more than its length.

/// One link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Link<'a> {
    /// The URL, unchanged; it may be relative to the page.
    pub target: &'a str,
    /// Relation types, unchanged, separated by spaces. Of several `rel` the first is used (RFC 8288 §3.3).
    pub rel: &'a str,
    /// The kind of resource: `style`, `script`, ...
    pub destination: Option<&'a str>,
    /// True if it is to be hinted but not pushed.
    pub nopush: bool,
    /// True if it is a link of another document.
    pub anchored: bool,
}

impl Link<'_> {
    /// True if it has the type `relation`.
    #[must_use]
    pub fn has_relation(&self, relation: &str) -> bool {
        self.rel
            .split_ascii_whitespace()
            .any(|rel| rel.eq_ignore_ascii_case(relation))
    }
}

/// The links of one header value, in order.
#[derive(Clone, Debug)]
pub struct Links<'a>(&'a str);

/// Parses a header value.
#[must_use]
pub fn parse_links(value: &str) -> Links<'_> {
    Links(value)
}

impl<'a> Iterator for Links<'a> {
    type Item = Link<'a>;

    fn next(&mut self) -> Option<Link<'a>> {
        // Empty list elements are ignored (RFC 9110 §5.6.1).
        let rest = self
            .0
            .trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace());
        let read = rest.strip_prefix('<').and_then(read_link);
        let (link, rest) = read.unzip();
        self.0 = rest.unwrap_or_default();
        link
    }
}

/// Parses a link after its `<`. Returns it, and the text after its comma.
fn read_link(text: &str) -> Option<(Link<'_>, &str)> {
    let (target, mut rest) = text.split_once('>')?;
    let mut link = Link {
        target: target.trim(),
        ..Link::default()
    };
    let mut has_rel = false;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some((link, rest));
        }
        if let Some(next) = rest.strip_prefix(',') {
            return Some((link, next));
        }
        rest = rest.strip_prefix(';')?.trim_ascii_start();
        let end = rest
            .find(|c: char| c == '=' || c == ';' || c == ',' || c.is_ascii_whitespace())
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let after = after.trim_ascii_start();
        let value = match after.strip_prefix('=') {
            Some(value) => {
                let (value, after) = read_value(value.trim_ascii_start())?;
                rest = after;
                value
            }
            None => {
                rest = after;
                ""
            }
        };
        match name.to_ascii_lowercase().as_str() {
            "rel" if !has_rel => (link.rel, has_rel) = (value, true),
            "as" => link.destination = Some(value),
            "nopush" => link.nopush = true,
            "anchor" => link.anchored = true,
            _ => {}
        }
    }
}

/// Parses a token, or the content of a quoted string (without decoding escapes: no known word has one).
fn read_value(text: &str) -> Option<(&str, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text
            .find(|c: char| c == ';' || c == ',' || c.is_ascii_whitespace())
            .unwrap_or(text.len());
        return Some(text.split_at(end));
    };
    let mut escaped = false;
    for (at, byte) in quoted.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some((&quoted[..at], &quoted[at + 1..])),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(value: &str) -> Vec<&str> {
        parse_links(value).map(|link| link.target).collect()
    }

    #[test]
    fn links_are_read_with_their_parameters_in_any_order_and_case() {
        let all: Vec<_> = parse_links(
            "</a.css>; rel=preload; as=style , < /b,c;d.js >;AS=\"script\"; REL=\"prefetch Preload\";nopush, \
             <x>; title=\"a \\\" b, <y>; rel=preload\"; rel=next; rel=preload; anchor=\"/other\"",
        )
        .collect();
        assert_eq!(
            all,
            [
                Link {
                    target: "/a.css",
                    rel: "preload",
                    destination: Some("style"),
                    ..Link::default()
                },
                Link {
                    target: "/b,c;d.js",
                    rel: "prefetch Preload",
                    destination: Some("script"),
                    nopush: true,
                    anchored: false
                },
                Link {
                    target: "x",
                    rel: "next",
                    anchored: true,
                    ..Link::default()
                },
            ]
        );
        assert!(all[1].has_relation("preload") && !all[1].has_relation("load"));
    }

    #[test]
    fn a_syntax_error_keeps_the_links_before_it() {
        assert_eq!(targets("</a>; rel=preload, nonsense, </b>"), ["/a"]);
        assert_eq!(targets("</a>, </b"), ["/a"]);
        assert_eq!(targets("</a>, </b>; rel=\"open"), ["/a"]);
        assert_eq!(targets("</a>, </b> rel=preload"), ["/a"]);
        assert_eq!(targets(", ,</a>,,</b>;,"), ["/a", "/b"]);
        assert_eq!(targets("</a>;"), ["/a"]);
        assert_eq!(targets("<>"), [""]);
        assert_eq!(targets("</ä>; rel=\"ö\\"), [""; 0]);
        for value in ["", " ", ",", "a", "<", ">", "\"", "=;", "<a>\"", "<a>=b"] {
            assert!(parse_links(value).count() <= 1, "{value:?}");
        }
    }
}
