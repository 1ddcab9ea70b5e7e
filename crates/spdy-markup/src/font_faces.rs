//! Finds the `@font-face` rules of a text (CSS Fonts Level 4 §4): the URLs of each font, and how its text is shown until it has loaded.

use cssparser::{BasicParseError, ParseError, Parser, ParserInput, Token};

/// How a browser shows text while the web font of that text loads (`font-display`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FontDisplay {
    /// As the browser decides, which is the initial value.
    #[default]
    Auto,
    /// Not for some seconds, then in another font.
    Block,
    /// In another font, at once or soon (`swap`, `fallback`, `optional`).
    Swap,
}

/// One `@font-face` rule.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FontFace {
    /// The URLs of its files, as written, escapes undone.
    pub urls: Vec<String>,
    /// Its `font-display`.
    pub display: FontDisplay,
}

const AT_RULE: &[u8] = b"@font-face";

/// The rules in `text`, in order. It may also be a document with `style` elements: what is between the rules is not read.
pub fn font_faces(text: &str) -> Vec<FontFace> {
    let mut faces = Vec::new();
    let mut at = 0;
    while let Some(found) = find_at_rule(&text.as_bytes()[at..]) {
        at += found + AT_RULE.len();
        let mut input = ParserInput::new(&text[at..]);
        let mut parser = Parser::new(&mut input);
        if parser.expect_curly_bracket_block().is_ok() {
            let face = parser.parse_nested_block(read_rule);
            faces.extend(face);
            at += parser.position().byte_index();
        }
    }
    faces
}

fn find_at_rule(text: &[u8]) -> Option<usize> {
    let mut windows = text.windows(AT_RULE.len());
    windows.position(|window| window[0] == b'@' && window.eq_ignore_ascii_case(AT_RULE))
}

/// Reads the declarations of one rule.
fn read_rule<'i>(parser: &mut Parser<'i, '_>) -> Result<FontFace, ParseError<'i, ()>> {
    let mut face = FontFace::default();
    let mut is_display = false;
    while let Ok(token) = parser.next() {
        match token {
            Token::Ident(name) if name.eq_ignore_ascii_case("font-display") => is_display = true,
            Token::Ident(value) if is_display => face.display = display(value),
            Token::Semicolon => is_display = false,
            Token::UnquotedUrl(url) => face.urls.push(url.to_string()),
            Token::Function(name) if name.eq_ignore_ascii_case("url") => {
                let url = parser.parse_nested_block(|parser| -> Result<_, ParseError<'i, ()>> {
                    let url = parser.expect_string().map(ToString::to_string);
                    while parser.next().is_ok() {}
                    url.map_err(BasicParseError::into)
                });
                face.urls.extend(url);
            }
            _ => {}
        }
    }
    Ok(face)
}

fn display(value: &str) -> FontDisplay {
    let is = |keyword: &str| value.eq_ignore_ascii_case(keyword);
    if is("block") {
        FontDisplay::Block
    } else if is("swap") || is("fallback") || is("optional") {
        FontDisplay::Swap
    } else {
        FontDisplay::Auto
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_sheets_and_documents_have_urls_and_a_display() {
        let text = r#"<style>p { color: red } @FONT-FACE { font-family: "a"; font-display: Swap; src: url(a.woff2) format("woff2"),
                url("b}.woff") } </style><p>@font-face in a text</p>
            @media screen { @font-face{src:local("x"),URL( 'c.ttf' );font-display:block} }
            @font-face { font-family: swap; src: url(d) } @font-face { font-display: optional; font-display: fallback"#;
        let faces = font_faces(text);
        let read: Vec<(Vec<&str>, FontDisplay)> = faces
            .iter()
            .map(|face| (face.urls.iter().map(|url| &url[..]).collect(), face.display))
            .collect();
        assert_eq!(
            read,
            [
                (vec!["a.woff2", "b}.woff"], FontDisplay::Swap),
                (vec!["c.ttf"], FontDisplay::Block),
                (vec!["d"], FontDisplay::Auto),
                (vec![], FontDisplay::Swap),
            ]
        );
    }

    #[test]
    fn unclosed_rules_are_read_once() {
        let text = "@font-face{a:url(x);".repeat(20_000);
        assert_eq!(font_faces(&text).len(), 1);
        assert_eq!(font_faces(&"@font-face".repeat(20_000)), []);
    }
}
