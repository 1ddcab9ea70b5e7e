//! What the long-running commands of `spdy` share: listeners, limits of clients, signals, metrics, and notices for the operator.
//!
//! `spdy serve` and the accelerator use all of it; other commands use the signals alone. This crate is a part of the program and is not
//! published: its errors are [`anyhow`]'s, with [`error::Usage`] for those that a person has to correct.

#[cfg(feature = "full")]
pub mod client_limits;
pub mod error;
#[cfg(feature = "full")]
pub mod listen;
#[cfg(feature = "full")]
pub mod metrics;
pub mod notice;
#[cfg(feature = "full")]
pub mod random;
pub mod signals;
