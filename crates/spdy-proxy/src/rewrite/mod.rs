//! Rewriting of pages and style sheets, and what is known of the style sheets that pages pin.

pub(crate) mod page_rewriter;
pub(crate) mod page_text;
pub mod pages;
pub(crate) mod refetch;
pub mod response_rewriter;
pub(crate) mod rewrite_facts;
pub(crate) mod site_observations;
pub(crate) mod stylesheet_index;
pub(crate) mod stylesheet_rewriter;
