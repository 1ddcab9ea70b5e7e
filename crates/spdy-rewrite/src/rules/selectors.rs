//! The CSS selectors of elements that the rewriter handles, compiled once for a site's rules.

use lol_html::Selector;

/// Elements that may contain references, with any attributes.
const ELEMENTS: &str = "base, meta, link, script, style, img, source, video, audio, picture, track, input, image, feimage, \
    use, iframe, frame, portal, object, embed, template, [style], [background]";

/// Elements whose text may contain references.
const TEXTS: &str = "style, script[type=importmap i], script[type=module i]";

/// The compiled selectors.
#[derive(Clone, Debug)]
pub(crate) struct Selectors {
    /// Elements that may contain references.
    pub(crate) elements: Selector,
    /// Elements whose text may contain references.
    pub(crate) texts: Selector,
}

impl Selectors {
    /// Adds elements with one of these attributes, whose names need no escaping ([`Rules::compile`](crate::rules::Rules::compile)).
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
