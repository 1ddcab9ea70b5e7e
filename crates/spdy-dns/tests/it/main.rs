//! The name server, the resolver and the address guard.

mod address_guard;
mod answers;
mod rebinding;
mod resolver;
mod server;
mod support;
