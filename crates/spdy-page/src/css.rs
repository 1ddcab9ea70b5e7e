//! What a style sheet names, and where.

use cssparser::{Parser, ParserInput, Token};

/// Blocks within blocks that are looked into; what lies deeper is skipped unread.
const DEPTH: usize = 32;

/// A URL in a style sheet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CssReference {
    /// As written, escapes undone; relative to the sheet.
    pub(crate) url: String,
    /// Offset in the text just behind it.
    pub(crate) at: usize,
    /// Named by `@import`: a sheet that this one waits for.
    pub(crate) is_import: bool,
}

/// The URLs in `text`: `url()`, `@import`, `@font-face`, `image-set()`.
pub(crate) fn scan(text: &str) -> Vec<CssReference> {
    let mut references = Vec::new();
    let mut input = ParserInput::new(text);
    walk(&mut Parser::new(&mut input), 0, false, &mut references);
    references
}

/// Reads one block; `strings` says that a bare string in it is a URL.
fn walk(
    parser: &mut Parser<'_, '_>,
    depth: usize,
    strings: bool,
    references: &mut Vec<CssReference>,
) {
    let mut importing = false;
    loop {
        let Ok(token) = parser.next().cloned() else {
            return;
        };
        let mut push = |url: &str, at, is_import| {
            if !url.is_empty() && !url.starts_with('#') && !url.starts_with("data:") {
                references.push(CssReference {
                    url: url.to_owned(),
                    at,
                    is_import,
                });
            }
        };
        match token {
            Token::AtKeyword(name) => importing = name.eq_ignore_ascii_case("import"),
            Token::Semicolon => importing = false,
            Token::UnquotedUrl(url) => {
                push(&url, parser.position().byte_index(), importing);
                importing = false;
            }
            Token::QuotedString(url) if importing || strings => {
                push(&url, parser.position().byte_index(), importing);
                importing = false;
            }
            Token::Function(name) if name.eq_ignore_ascii_case("url") => {
                let inner = parser.parse_nested_block(
                    |inner| -> Result<_, cssparser::ParseError<'_, ()>> {
                        let url = inner.expect_string_cloned()?;
                        Ok((url, inner.position().byte_index()))
                    },
                );
                if let Ok((url, at)) = inner {
                    push(&url, at, importing);
                }
                importing = false;
            }
            Token::Function(_)
            | Token::ParenthesisBlock
            | Token::SquareBracketBlock
            | Token::CurlyBracketBlock
                if depth < DEPTH =>
            {
                let strings = matches!(&token, Token::Function(name) if name.to_ascii_lowercase().ends_with("image-set"));
                // A block that ends badly was still read as far as it went.
                let _ = parser.parse_nested_block(
                    |inner| -> Result<(), cssparser::ParseError<'_, ()>> {
                        walk(inner, depth + 1, strings, references);
                        Ok(())
                    },
                );
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_name_a_resource_is_found_where_it_stands() {
        let text = r#"@import "a.css"; @import url(b.css) print;
            @font-face { font-family: x; src: url("c.woff") format("woff"), url('d.ttf'); }
            p { background: #fff url(e\.png) no-repeat; content: "not.png" }
            @media screen { q { background: image-set("f.png" 1x, url(g.png) 2x) } }
            r { mask: url(#here); background: url(data:image/png;base64,AA) } s { background: url(h.png)"#;
        let found: Vec<_> = scan(text)
            .into_iter()
            .map(|found| (found.url, found.is_import))
            .collect();
        let want = [
            ("a.css", true),
            ("b.css", true),
            ("c.woff", false),
            ("d.ttf", false),
            ("e.png", false),
            ("f.png", false),
        ];
        let want = want.into_iter().chain([("g.png", false), ("h.png", false)]);
        assert_eq!(
            found,
            want.map(|(url, import)| (url.to_owned(), import))
                .collect::<Vec<_>>()
        );
        let first = &scan(text)[0];
        assert_eq!(&text[..first.at], r#"@import "a.css""#);
    }

    #[test]
    fn nonsense_and_depth_end() {
        scan(&"{".repeat(100_000));
        scan(&"url(".repeat(10_000));
        scan("@import @import url(\"");
    }
}
