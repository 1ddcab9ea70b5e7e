//! HTTP/3 over loopback.

mod errors;
mod exchanges;
mod floods;
mod servers;
mod slow_clients;
