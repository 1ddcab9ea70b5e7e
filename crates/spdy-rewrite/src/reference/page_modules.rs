//! What a page states about modules, as its browser gets it: import maps, and the imports of inline modules.

use spdy_markup::es_modules;

/// Maximum number of imports of inline modules that are stored for one page.
const MAX_INLINE_IMPORTS: usize = 256;
/// Maximum number of bytes of import maps that are stored for one page.
const MAX_IMPORT_MAP_BYTES: usize = 64 * 1024;

/// The import maps of a page, and the imports of its inline modules. Together with the texts of its scripts, they determine which modules it
/// loads.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PageModules {
    /// The texts of the import maps, as rewritten, in their order: at most 64 KiB.
    pub import_maps: Vec<String>,
    /// The specifiers in inline modules, as written: at most 256.
    pub inline_imports: Vec<String>,
    /// The base of the page's URLs in its browser, if the page states one.
    pub base: Option<String>,
}

impl PageModules {
    /// Adds the text of an import map, unless the limit is reached.
    pub(crate) fn add_import_map(&mut self, text: &str) {
        let stored: usize = self.import_maps.iter().map(String::len).sum();
        if stored + text.len() <= MAX_IMPORT_MAP_BYTES {
            self.import_maps.push(text.to_owned());
        }
    }

    /// Adds the imports of an inline module.
    pub(crate) fn add_inline(&mut self, script: &str) {
        let room = MAX_INLINE_IMPORTS.saturating_sub(self.inline_imports.len());
        let found = es_modules::specifiers(script).into_iter().take(room);
        self.inline_imports.extend(found.map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_imports_and_maps_are_limited() {
        let mut modules = PageModules::default();
        let imports = |count: usize| {
            let lines = (0..count).map(|n| format!("import './{n}.js'\n"));
            lines.collect::<String>()
        };
        modules.add_inline(&imports(MAX_INLINE_IMPORTS - 1));
        modules.add_inline(&imports(2));
        assert_eq!(modules.inline_imports.len(), MAX_INLINE_IMPORTS);
        modules.add_import_map(&"m".repeat(MAX_IMPORT_MAP_BYTES));
        modules.add_import_map("m");
        assert_eq!(modules.import_maps.len(), 1);
        modules.add_import_map(&"m".repeat(MAX_IMPORT_MAP_BYTES + 1));
        assert_eq!(modules.import_maps.len(), 1);
    }
}
