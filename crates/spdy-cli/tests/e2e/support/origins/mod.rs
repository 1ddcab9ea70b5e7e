//! Origins for tests.

pub(crate) mod echo;
pub(crate) mod four_domains;
pub(crate) mod pictures;
pub(crate) mod raw;
pub(crate) mod scripted;
pub(crate) mod websocket;
