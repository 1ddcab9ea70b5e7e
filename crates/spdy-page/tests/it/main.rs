//! Replicas: imports, archives and graphs.

mod builtins;
mod corpus;
mod import;
mod laws;
mod netlog;
mod support;
