//! The start tag of an element, with the names of its attributes.
//!
//! lol_html converts the name for each look-up. Here all names are read once, so asking for an attribute that is absent, as for most,
//! costs little.

use lol_html::html_content::{Attribute, ContentType};
use lol_html::send::Element;

const HTML: &str = "http://www.w3.org/1999/xhtml";

/// A start tag.
pub(crate) struct Tag<'e, 'r, 't> {
    element: &'e mut Element<'r, 't>,
    /// The names of its attributes, in their order and as they are in the source.
    names: Vec<String>,
}

impl<'e, 'r, 't> Tag<'e, 'r, 't> {
    pub(crate) fn new(element: &'e mut Element<'r, 't>) -> Self {
        let attributes = element.attributes().iter();
        let names = attributes.map(Attribute::name_preserve_case).collect();
        Self { element, names }
    }

    /// The name of the element, in lower case.
    pub(crate) fn name(&self) -> String {
        self.element.tag_name()
    }

    /// True if it is an element of HTML, not of SVG or MathML.
    pub(crate) fn is_html(&self) -> bool {
        self.element.namespace_uri() == HTML
    }

    /// True if an attribute would break the tag when it is rewritten: `=` after a space is parsed as the value of the attribute
    /// before, after a slash as the start of a name.
    pub(crate) fn is_malformed(&self) -> bool {
        self.names.iter().any(|name| name.starts_with('='))
    }

    fn index(&self, name: &str) -> Option<usize> {
        let mut names = self.names.iter();
        names.position(|it| it.eq_ignore_ascii_case(name))
    }

    /// True if it has the attribute `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.index(name).is_some()
    }

    /// The value of the attribute `name`, as it is in the source.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        Some(self.element.attributes()[self.index(name)?].value())
    }

    /// Replaces the value of the attribute `name`.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.element
            .set_attribute(name, value)
            .expect("the attribute exists");
    }

    /// Inserts HTML before it.
    pub(crate) fn insert_before(&mut self, html: &str) {
        self.element.before(html, ContentType::Html);
    }

    /// Replaces the element.
    pub(crate) fn replace(&mut self, html: &str) {
        self.element.replace(html, ContentType::Html);
    }
}
