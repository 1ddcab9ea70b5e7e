//! Restarts, successors and crashes of the accelerator.

mod disk_and_reload;
#[cfg(unix)]
mod kill;
mod restart;
#[cfg(unix)]
mod succession;
