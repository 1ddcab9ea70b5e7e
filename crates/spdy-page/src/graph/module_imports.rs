//! Static imports of modules. A browser requests them when the text that names them has arrived, and before the module runs.

use std::collections::{HashMap, HashSet};

use url::Url;

use crate::graph::builder::GraphBuilder;
use crate::graph::es_modules::{DocumentModules, ImportMap, static_specifiers};
use crate::replica::{Exchange, Kind, without_fragment};

/// The imports of the page's own document and of the scripts that import others.
#[derive(Default)]
pub(crate) struct ModuleImports {
    /// The import map of the page's document.
    map: Option<ImportMap>,
    /// URLs without fragments, by the exchange whose text imports them. For lookups only, never for iteration.
    by_importer: HashMap<usize, HashSet<String>>,
}

impl ModuleImports {
    /// True if the text of `importer`, a script or the page's own document, imports `exchange` statically.
    pub(crate) fn has(
        &mut self,
        plan: &GraphBuilder<'_>,
        importer: usize,
        exchange: &Exchange,
    ) -> bool {
        let is_importer = importer == plan.start || plan.exchanges[importer].kind == Kind::Script;
        if exchange.kind != Kind::Script || !is_importer {
            return false;
        }
        if !self.by_importer.contains_key(&importer) {
            let urls = self.urls(plan, importer);
            self.by_importer.insert(importer, urls);
        }
        self.by_importer[&importer].contains(exchange.key())
    }

    fn urls(&mut self, plan: &GraphBuilder<'_>, importer: usize) -> HashSet<String> {
        let text_of = |index: usize| {
            let mut texts = plan.texts.iter();
            let text = texts.find(|text| text.exchange == index);
            text.map_or("", |text| text.text.as_str())
        };
        let page = DocumentModules::of_html(text_of(plan.start).as_bytes());
        let page_base = page.base_url(&plan.exchanges[plan.start].url);
        let map = self
            .map
            .get_or_insert_with(|| ImportMap::of(&page.import_maps, &page_base));
        let resolve = |specifier: &str, from: &Url| {
            let url = map.resolve(specifier, from)?;
            Some(without_fragment(url.as_str()).to_owned())
        };
        match importer == plan.start {
            true => {
                let specifiers = page.inline.iter().flat_map(|text| static_specifiers(text));
                specifiers
                    .filter_map(|specifier| resolve(specifier, &page_base))
                    .collect()
            }
            false => {
                let specifiers = static_specifiers(text_of(importer)).into_iter();
                let from = &plan.exchanges[importer].url;
                specifiers
                    .filter_map(|specifier| resolve(specifier, from))
                    .collect()
            }
        }
    }
}
