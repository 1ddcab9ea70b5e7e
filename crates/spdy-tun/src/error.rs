//! Errors of setting up a link in real time.

use std::io;

/// Why a link could not be set up, with the system's error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RealTimeError {
    /// The process may not create namespaces.
    #[error(
        "cannot create namespaces: run as root, or allow unprivileged user namespaces (user.max_user_namespaces, \
         kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
    )]
    Namespaces(#[source] io::Error),
    /// Threads were already running.
    #[error("namespaces must be entered before any thread starts, found {threads} threads")]
    Threads {
        /// Number of threads.
        threads: usize,
    },
    /// A file of the kernel could not be used.
    #[error("cannot use {what}")]
    Kernel {
        /// The file.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// There is no TUN device.
    #[error("no TUN device: /dev/net/tun must exist and be writable")]
    Device(#[source] io::Error),
    /// The kernel did not set up the link.
    #[error("cannot set up {what}")]
    Netlink {
        /// The part of the link.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The kernel does not have this congestion control.
    #[error("unknown congestion control {name:?}: this system has {available}")]
    Congestion {
        /// The requested name.
        name: String,
        /// The available names.
        available: String,
    },
    /// A thread, a pipe or a process could not be created.
    #[error("cannot start {what}")]
    Start {
        /// The part that could not be created.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The link's thread ended early.
    #[error("the link ended: {0}")]
    LinkThreadEnded(String),
}
