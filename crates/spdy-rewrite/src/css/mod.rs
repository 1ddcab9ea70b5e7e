//! Style sheets.

mod stylesheet;

pub(crate) use stylesheet::rewrite_at;
pub use stylesheet::{
    RewrittenStylesheet, StylesheetContext, UTF_8, rewrite, rewrite_bytes, rewrite_prefix,
};
