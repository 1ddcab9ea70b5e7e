//! The persistent cache: files in a folder, their index, and the thread that writes them.

pub mod counters;
pub(crate) mod eviction;
pub(crate) mod file;
pub(crate) mod folder;
pub(crate) mod index;
pub(crate) mod lock;
pub(crate) mod removal;
pub mod store;
pub(crate) mod writer;
