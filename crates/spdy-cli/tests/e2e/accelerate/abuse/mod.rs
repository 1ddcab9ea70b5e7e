//! Clients and origins that attack the accelerator or violate the protocol.

mod aliases;
mod broken_origins;
mod every_protocol;
mod many_slow_clients;
mod proxied_urls;
mod slow_clients;
mod smuggling;
