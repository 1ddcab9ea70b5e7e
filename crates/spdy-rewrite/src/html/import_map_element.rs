//! Inserts an import map before a page's first module, if the page has none before it.

use crate::csp::inline::Inline;
use crate::html::import_map;
use crate::html::page_state::PageState;
use crate::html::tag::Tag;

/// Inserts an import map before the first module of a page that has none before it.
///
/// If the page has one further down, browsers that support several merge both; others would have rejected the page's own map
/// anyway, because it is after a module.
pub(crate) fn insert_import_map(page: &mut PageState, tag: &mut Tag<'_, '_, '_>, is_left: bool) {
    if page.has_import_map || page.templates > 0 || is_left {
        return;
    }
    page.has_import_map = true;
    let nonce = tag.get("nonce").filter(|nonce| !nonce.is_empty());
    let is_plain = |nonce: &String| {
        nonce
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte))
    };
    if nonce.as_ref().is_some_and(|nonce| !is_plain(nonce))
        || !page.policies.allow_inline(Inline::Script(nonce.as_deref()))
    {
        return;
    }
    let mut named = page.referenced_origins();
    let own = ["src", "href"].iter().find_map(|name| tag.get(name));
    if let Some(own) = own
        && let Some(url) = page
            .decode_attribute(&own)
            .and_then(|text| page.place().base.join(text.trim()).ok())
    {
        named.insert(url.origin().ascii_serialization());
    }
    if let Some(map) = import_map::new_map(&page.place(), &named) {
        let nonce = nonce
            .map(|nonce| format!(" nonce=\"{nonce}\""))
            .unwrap_or_default();
        tag.insert_before(&format!("<script type=\"importmap\"{nonce}>{map}</script>"));
        page.report.import_map_added = true;
        page.report.modules.add_import_map(&map);
    }
}
