//! How a page shows text while a web font loads.

pub use spdy_markup::font_faces::FontDisplay;
use spdy_markup::font_faces::font_faces;
use url::Url;

use crate::graph::builder::text_of;
use crate::replica::{Kind, Replica};

/// The `font-display` of the font at `font`, by the first rule in a style sheet or a document of `replica` that names it. Without such
/// a rule, for example if a script made it, the initial value.
#[must_use]
pub fn font_display(replica: &Replica, font: &Url) -> FontDisplay {
    let is_sheet = |kind| matches!(kind, Kind::Stylesheet | Kind::Document);
    let sheets = replica.exchanges.iter();
    let mut sheets = sheets.filter(|exchange| is_sheet(exchange.kind));
    let display = sheets.find_map(|sheet| {
        let text = text_of(sheet)?.text;
        let faces = font_faces(&String::from_utf8_lossy(&text));
        let is_named = |name: &String| {
            let named = sheet.url.join(name).ok();
            named.is_some_and(|mut named| {
                named.set_fragment(None);
                named == *font
            })
        };
        let face = faces.iter().find(|face| face.urls.iter().any(is_named))?;
        Some(face.display)
    });
    display.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;
    use crate::replica::Exchange;

    #[test]
    fn it_is_that_of_the_first_rule_with_the_url() {
        let exchange = |path: &str, kind, media, text: &'static str| {
            let url = format!("http://a.test/{path}").parse().unwrap();
            Exchange::synthetic(url, kind, media, text)
        };
        let html = "<style>@font-face { src: url(fonts/a#x); font-display: block }</style>";
        let css = "@font-face { src: url(../fonts/b); font-display: swap } @font-face { src: url('../fonts/a') }";
        let replica = Replica {
            start: 0,
            exchanges: vec![
                exchange("", Kind::Document, "text/html", html),
                exchange("css/s.css", Kind::Stylesheet, "text/css", css),
            ],
            ..builtin::flags()
        };
        let display = |path: &str| {
            let url = format!("http://a.test/fonts/{path}").parse().unwrap();
            font_display(&replica, &url)
        };
        assert_eq!(display("a"), FontDisplay::Block);
        assert_eq!(display("b"), FontDisplay::Swap);
        assert_eq!(display("c"), FontDisplay::Auto, "no rule has it");
    }
}
