//! The accelerator as a server: its listeners, the tasks that accept from them, and the handling of one connection.

pub(crate) mod admin_listener;
pub(crate) mod connection;
pub(crate) mod listeners;
#[cfg(unix)]
pub(crate) mod open_files;
pub(crate) mod server_tasks;
