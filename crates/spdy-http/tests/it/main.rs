//! HTTP messages as header blocks, and back.

mod laws;
mod messages;
