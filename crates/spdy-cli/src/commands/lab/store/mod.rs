//! Commands on stores of loads: show, compare, merge, import and export.

pub(crate) mod compare;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod merge;
pub(crate) mod show;
mod summary_table;
