//! Lulic 2013's flags page, its measured results, and pages of the same kind.

mod cells;
pub mod pages;

pub use cells::{LulicCell, LulicComparison, LulicError, Parameters, best_browser_ms, cells};
