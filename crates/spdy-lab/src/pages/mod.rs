//! Pages of papers that describe them only by numbers.

pub(crate) mod described;
pub(crate) mod mineki;
