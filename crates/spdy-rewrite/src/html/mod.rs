//! Pages: elements, import maps, `Link`, `srcset`.

pub(crate) mod element;
pub(crate) mod import_map;
pub(crate) mod import_map_element;
pub mod link_header;
pub(crate) mod link_use;
pub mod page_head;
pub(crate) mod page_state;
mod rewriter;
pub(crate) mod tag;

pub use rewriter::HtmlRewriter;
