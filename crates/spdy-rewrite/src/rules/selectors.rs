//! The CSS selectors of elements that the rewriter handles, compiled once for a site's rules.

use lol_html::Selector;

/// Elements that may name what is fetched, whatever their attributes.
const ELEMENTS: &str = "base, meta, link, script, style, img, source, video, audio, picture, track, input, image, feimage, \
    use, iframe, frame, portal, object, embed, template, [style], [background]";

/// Elements whose text may.
const TEXTS: &str = "style, script[type=importmap i]";

/// What is looked at.
#[derive(Clone, Debug)]
pub(crate) struct Selectors {
    /// Elements that may name what is fetched.
    pub(crate) elements: Selector,
    /// Elements whose text may.
    pub(crate) texts: Selector,
}

impl Selectors {
    /// Elements with one of these attributes as well. Their names are plain ([`Rules::compile`](crate::rules::Rules::compile)).
    pub(crate) fn with(lazy_attributes: &[String]) -> Self {
        let lazy = lazy_attributes.iter().map(|name| format!(", [{name}]"));
        let elements = ELEMENTS.to_owned() + &lazy.collect::<String>();
        let of = |text: &str| text.parse().expect("names, and attributes in brackets");
        Self {
            elements: of(&elements),
            texts: of(TEXTS),
        }
    }
}
