//! Changes to a running accelerator: signals, a reload of the configuration, succession by another process, shutdown.

pub(crate) mod control_loop;
pub(crate) mod reload;
mod restart_only;
pub(crate) mod shutdown;
#[cfg(unix)]
pub(crate) mod succession;
#[cfg(not(unix))]
#[path = "succession_stub.rs"]
pub(crate) mod succession;
