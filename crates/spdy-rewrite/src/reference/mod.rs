//! One reference of a page: its rewriting, its integrity, its report.

pub mod integrity;
pub(crate) mod origin_cache;
pub mod page_modules;
pub mod page_report;
pub(crate) mod pinned_reference;
mod rewrite_reference;
pub mod site_facts;

pub use rewrite_reference::Reference;
pub(crate) use rewrite_reference::{ReferenceContext, ReferenceRewrite};
