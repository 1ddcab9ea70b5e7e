//! The resolver and the address guard.

mod address_guard;
mod rebinding;
mod resolver;
