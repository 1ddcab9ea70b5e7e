//! The dependencies between resources: which resource leads to the discovery of which.

pub mod body_start;
pub(crate) mod builder;
pub(crate) mod css;
mod dispatch_delay;
pub mod es_modules;
pub mod first_text;
pub mod font_display;
pub(crate) mod from_replica;
pub(crate) mod html;
pub(crate) mod inference;
mod module_imports;
mod nodes;
mod page_graph;
pub mod preconnects;
pub(crate) mod recorded_delay;
mod recorded_evaluation;
pub mod references;

pub use page_graph::{
    MAX_DELAY, Node, PageGraph, SCRIPT_COST_PER_KB, STYLESHEET_COST_PER_KB, Trigger, WaitsFor,
};
