//! The name server.

mod answer_laws;
mod answers;
mod server;
mod support;
mod zones;
