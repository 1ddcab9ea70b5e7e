//! Sockets, names and protocols over links in virtual time.

mod http3;
mod sockets;
mod uploads;
