//! The modules and import maps of an HTML document. Their texts are read by `spdy_markup::es_modules`.

pub use spdy_markup::es_modules::{ImportMap, specifiers, static_specifiers};
use url::Url;

use crate::graph::html;

/// The modules and import maps of an HTML document.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DocumentModules {
    /// `href` of its first `base`.
    pub base: Option<String>,
    /// The texts of its import maps, in their order.
    pub import_maps: Vec<String>,
    /// The texts of its inline modules, in their order.
    pub inline: Vec<String>,
}

impl DocumentModules {
    /// Scans the document `text`.
    #[must_use]
    pub fn of_html(text: &[u8]) -> Self {
        let scan = html::scan(text);
        let inline = scan.inline_modules.into_iter();
        Self {
            base: scan.base,
            import_maps: scan.import_maps,
            inline: inline.map(|module| module.text).collect(),
        }
    }

    /// The base URL of the document at `url`.
    #[must_use]
    pub fn base_url(&self, url: &Url) -> Url {
        let base = self.base.as_deref().and_then(|base| url.join(base).ok());
        base.unwrap_or_else(|| url.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_maps_and_inline_modules_are_found() {
        let html = br#"<base href=/b/><script type="importmap" nonce=x>{"imports":{}}</script>
            <script type=module>import 'a'</script><script type=MODULE src=s.js></script>
            <script>import('no')</script><!-- <script type=importmap>no</script> -->"#;
        let modules = DocumentModules::of_html(html);
        assert_eq!(modules.import_maps, [r#"{"imports":{}}"#]);
        assert_eq!(modules.inline, ["import 'a'"]);
        let url = Url::parse("http://a.test/x/").expect("a URL");
        assert_eq!(modules.base_url(&url).as_str(), "http://a.test/b/");
    }
}
