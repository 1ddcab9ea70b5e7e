//! How near virtual time is to real time: the same downloads through the model and through the kernel's TCP.
//!
//! ```text
//!   cell ── download.rs, one program ─┬─ virtual_time.rs   sim, spdy-netem's Tcp and Path     ─┐
//!                                     └─ real_time.rs      spdy-tun, Linux's TCP, the same Path ┴─ compare.rs
//! ```
//!
//! [`cell`] names what is compared, [`work`] does it on several lanes at a time, and repeats runs that do not
//! count. Where chance takes packets, both clocks draw it from the same seed: the third packet from the server is lost in
//! both or in none, as long as both send the same packets.

pub mod cell;
pub mod compare;
mod download;
pub mod virtual_time;

#[cfg(target_os = "linux")]
pub mod error;
#[cfg(target_os = "linux")]
pub mod link;
#[cfg(target_os = "linux")]
pub mod real_time;
#[cfg(target_os = "linux")]
pub mod work;
