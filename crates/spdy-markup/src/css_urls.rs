//! Finds the URLs of a style sheet, each with its place and its use, by a walk over the tokens (CSS Syntax Level 3).

use std::ops::Range;

use cssparser::{ParseError, Parser, ParserInput, Token};

/// Maximum depth of nested blocks that are searched; deeper blocks are skipped.
const MAX_NESTING: usize = 32;

/// What a URL in a sheet is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UrlUse {
    /// `@import`: a sheet that this one waits for.
    Import,
    /// In `@font-face`.
    Font,
    /// In a declaration.
    Image,
    /// In a property that accepts an SVG fragment, only of the document's own origin (`filter`, `clip-path`, …).
    Fragment,
    /// In a custom property: its base depends on where the property is used.
    Custom,
}

/// How a URL is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TokenForm {
    /// `url(…)` without quotes: the whole token.
    Unquoted,
    /// A string, in any function or rule.
    Quoted,
}

/// A URL in a style sheet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CssUrl {
    /// As written, escapes undone; relative to the sheet.
    pub url: String,
    /// The token's bytes in the text.
    pub span: Range<usize>,
    /// What it is for.
    pub usage: UrlUse,
    /// Whether it is one of several of which the browser loads one (`image-set()`).
    pub is_candidate: bool,
    /// How it is written.
    pub form: TokenForm,
}

/// The URLs in `text`, in order: `url()`, `src()`, `image-set()`, `@import`; not those of `@namespace` and similar rules.
pub fn urls(text: &str) -> Vec<CssUrl> {
    let mut found = Vec::new();
    // Most sheets and most `style` attributes contain no URL.
    if !may_contain_url(text) {
        return found;
    }
    let mut input = ParserInput::new(text);
    let walk = Walk {
        depth: 0,
        strings: false,
        is_choice: false,
        usage: UrlUse::Image,
    };
    walk.run(&mut Parser::new(&mut input), &mut found);
    found
}

/// The end of the last complete rule in `text`, which no following text can extend: the text before it and the text after it can be
/// parsed independently. `None` if there is no such rule.
pub fn end_of_rules(text: &str) -> Option<usize> {
    let mut input = ParserInput::new(text);
    let mut parser = Parser::new(&mut input);
    let (mut end, mut last, mut is_custom) = (None, None, false);
    while let Ok(token) = parser.next() {
        match token {
            Token::Ident(name) => last = Some(name.starts_with("--")),
            // The value of a custom property continues after a block.
            Token::Colon => is_custom |= last.take() == Some(true),
            Token::Semicolon => (is_custom, last) = (false, None),
            Token::CurlyBracketBlock => {
                last = None;
                let _ = parser.parse_nested_block(|_| -> Result<(), ParseError<'_, ()>> { Ok(()) });
                let at = parser.position().byte_index();
                // A block at the end of the text may be incomplete.
                if at < text.len() && !is_custom {
                    end = Some(at);
                }
            }
            _ => last = None,
        }
    }
    end
}

/// Whether there is a parenthesis or an at-rule: without them `text` contains no URL.
fn may_contain_url(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'(' | b'@'))
}

/// One block, and what surrounds it.
#[derive(Clone, Copy)]
struct Walk {
    depth: usize,
    /// Whether a bare string is a URL.
    strings: bool,
    /// True if only one of the URLs is loaded.
    is_choice: bool,
    usage: UrlUse,
}

/// What an at-rule's prelude does with URLs.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Rule {
    None,
    Import,
    /// The URL in it is a name, and is not fetched.
    Name,
    FontFace,
}

impl Walk {
    fn run(self, parser: &mut Parser<'_, '_>, found: &mut Vec<CssUrl>) {
        let mut rule = Rule::None;
        let mut usage = self.usage;
        let mut is_property = None;
        loop {
            let start = parser.position().byte_index();
            let Ok(token) = parser.next_including_whitespace_and_comments() else {
                return;
            };
            let inner = match token {
                Token::WhiteSpace(_) | Token::Comment(_) => continue,
                Token::Ident(name) => {
                    is_property = Some(property(name));
                    continue;
                }
                Token::Colon => {
                    // Inside a function the property stays that of the declaration.
                    if let (Some(of), false) = (is_property.take(), self.strings) {
                        usage = if matches!(self.usage, UrlUse::Font | UrlUse::Custom) {
                            self.usage
                        } else {
                            of
                        };
                    }
                    continue;
                }
                Token::Semicolon => {
                    (rule, usage, is_property) = (Rule::None, self.usage, None);
                    continue;
                }
                Token::AtKeyword(name) => {
                    rule = at_rule(name);
                    (usage, is_property) = (self.usage, None);
                    continue;
                }
                Token::UnquotedUrl(url) => {
                    let url = url.to_string();
                    let span = start..parser.position().byte_index();
                    self.push(found, rule, usage, url, span, TokenForm::Unquoted);
                    rule = after(rule);
                    continue;
                }
                Token::QuotedString(url) => {
                    if self.strings || rule == Rule::Import {
                        let url = url.to_string();
                        let span = start..parser.position().byte_index();
                        self.push(found, rule, usage, url, span, TokenForm::Quoted);
                        rule = after(rule);
                    }
                    continue;
                }
                Token::Function(name) => {
                    let strings = Strings::of(name);
                    if strings == Strings::First {
                        let inner = parser.parse_nested_block(first_string);
                        if let Ok((url, span)) = inner {
                            self.push(found, rule, usage, url, span, TokenForm::Quoted);
                            rule = after(rule);
                        }
                        is_property = None;
                        continue;
                    }
                    Walk {
                        depth: self.depth + 1,
                        strings: strings == Strings::All,
                        is_choice: self.is_choice || strings == Strings::All,
                        usage,
                    }
                }
                Token::ParenthesisBlock | Token::SquareBracketBlock => Walk {
                    depth: self.depth + 1,
                    strings: false,
                    is_choice: self.is_choice,
                    usage,
                },
                Token::CurlyBracketBlock => {
                    // A declaration's value may be a block (custom properties); any other block ends the rule or declaration before it.
                    let of = match rule {
                        Rule::FontFace => UrlUse::Font,
                        _ if usage == UrlUse::Custom => UrlUse::Custom,
                        _ => self.usage,
                    };
                    (rule, usage) = (
                        Rule::None,
                        if usage == UrlUse::Custom {
                            usage
                        } else {
                            self.usage
                        },
                    );
                    Walk {
                        depth: self.depth + 1,
                        strings: false,
                        is_choice: false,
                        usage: of,
                    }
                }
                _ => {
                    is_property = None;
                    continue;
                }
            };
            is_property = None;
            if inner.depth <= MAX_NESTING {
                // An error in a block is ignored: the URLs before it were found.
                let _ = parser.parse_nested_block(|parser| -> Result<(), ParseError<'_, ()>> {
                    inner.run(parser, found);
                    Ok(())
                });
            }
        }
    }

    fn push(
        self,
        found: &mut Vec<CssUrl>,
        rule: Rule,
        usage: UrlUse,
        url: String,
        span: Range<usize>,
        form: TokenForm,
    ) {
        let usage = match rule {
            Rule::Import => UrlUse::Import,
            Rule::Name => return,
            _ => usage,
        };
        found.push(CssUrl {
            url,
            span,
            usage,
            is_candidate: self.is_choice,
            form,
        });
    }
}

/// `@import` has one URL; what follows are its conditions.
fn after(rule: Rule) -> Rule {
    if rule == Rule::Import {
        Rule::None
    } else {
        rule
    }
}

fn first_string<'i>(
    parser: &mut Parser<'i, '_>,
) -> Result<(String, Range<usize>), ParseError<'i, ()>> {
    parser.skip_whitespace();
    let start = parser.position().byte_index();
    let url = parser.expect_string()?.to_string();
    let span = start..parser.position().byte_index();
    // Modifiers may follow (`crossorigin()`); they are not changed.
    while parser.next().is_ok() {}
    Ok((url, span))
}

/// Which strings in a function are URLs.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Strings {
    First,
    All,
    None,
}

impl Strings {
    fn of(function: &str) -> Self {
        let is = |name: &str| function.eq_ignore_ascii_case(name);
        if is("url") || is("src") {
            Self::First
        } else if is("image-set") || is("-webkit-image-set") {
            Self::All
        } else {
            Self::None
        }
    }
}

fn at_rule(name: &str) -> Rule {
    let is = |keyword: &str| name.eq_ignore_ascii_case(keyword);
    if is("import") {
        Rule::Import
    } else if is("namespace") || is("document") || is("-moz-document") {
        Rule::Name
    } else if is("font-face") {
        Rule::FontFace
    } else {
        Rule::None
    }
}

fn property(name: &str) -> UrlUse {
    const FRAGMENTS: [&str; 12] = [
        "filter",
        "-webkit-filter",
        "backdrop-filter",
        "-webkit-backdrop-filter",
        "clip-path",
        "-webkit-clip-path",
        "fill",
        "stroke",
        "marker",
        "marker-start",
        "marker-mid",
        "marker-end",
    ];
    if name.starts_with("--") {
        UrlUse::Custom
    } else if FRAGMENTS
        .iter()
        .any(|property| name.eq_ignore_ascii_case(property))
    {
        UrlUse::Fragment
    } else {
        UrlUse::Image
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, UrlUse)> {
        urls(text)
            .into_iter()
            .map(|found| (found.url, found.usage))
            .collect()
    }

    #[test]
    fn all_css_url_forms_are_found_with_use() {
        let text = r#"@charset "utf-8"; @namespace svg url(http://www.w3.org/2000/svg); @import "a.css"; @IMPORT url(b.css) layer(x) print;
            @import url("c.css") supports(background: url(s.png));
            @font-face { font-family: "x"; src: url("d.woff") format("woff"), url('e.ttf') format("truetype"), local("no"); }
            p { background: #fff url(f\.png) no-repeat; content: "not.png" }
            @media screen { q { background: image-set("g.png" 1x, url(h.png) 2x type("image/png")) } }
            r { mask: url(#here); background: src("i.png") } t { --x: url(j.png); --y: { background: url(k.png) }; color: red; background: URL( l.png ) }
            u { filter: url(m.svg#blur); cursor: url(n.cur), auto } @-moz-document url(o) { } v { background: url(p.png"#;
        use UrlUse::{Custom, Font, Fragment, Image, Import};
        let expected = [
            ("a.css", Import),
            ("b.css", Import),
            ("c.css", Import),
            ("s.png", Image),
            ("d.woff", Font),
            ("e.ttf", Font),
            ("f.png", Image),
            ("g.png", Image),
            ("h.png", Image),
            ("#here", Image),
            ("i.png", Image),
            ("j.png", Custom),
            ("k.png", Custom),
            ("l.png", Image),
            ("m.svg#blur", Fragment),
            ("n.cur", Image),
            ("p.png", Image),
        ];
        assert_eq!(
            found(text),
            expected.map(|(url, usage)| (url.to_owned(), usage))
        );
    }

    #[test]
    fn span_covers_exactly_the_token() {
        let text = r#"a{b:url( "x" crossorigin(anonymous))}c{d: /* e */ url(y) }@import/**/'z'"#;
        let spans: Vec<_> = urls(text)
            .into_iter()
            .map(|found| &text[found.span])
            .collect();
        assert_eq!(spans, [r#""x""#, "url(y)", "'z'"]);
    }

    #[test]
    fn nested_rules_are_parsed_separately() {
        let text =
            "a { --x: 1; &:hover { background: url(b) } filter: url(c#d); e:f { mask: url(g) } }";
        use UrlUse::{Fragment, Image};
        let expected = [("b", Image), ("c#d", Fragment), ("g", Image)];
        assert_eq!(
            found(text),
            expected.map(|(url, usage)| (url.to_owned(), usage))
        );
    }

    #[test]
    fn garbage_and_deep_nesting_terminate() {
        urls(&"{".repeat(100_000));
        urls(&"url(".repeat(10_000));
        urls("@import @import url(\"");
        let at = |depth: usize| urls(&format!("{}url(a)", "(".repeat(depth))).len();
        assert_eq!((at(MAX_NESTING), at(MAX_NESTING + 1)), (1, 0));
    }
}
