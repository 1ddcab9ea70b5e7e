//! The claims, paper by paper.

mod all;
pub(crate) mod belshe;
pub(crate) mod cacm12;
pub(crate) mod lulic;
pub(crate) mod mineki;
pub(crate) mod nsdi14;
pub(crate) mod unm;
pub(crate) mod whitepaper;

pub use all::all;
