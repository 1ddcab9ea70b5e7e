//! Why there is no link in real time here.

use std::io;

/// What could not be made, and what the system said.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RealTimeError {
    /// The process may not have namespaces of its own.
    #[error(
        "cannot create namespaces: run as root, or allow unprivileged user namespaces (user.max_user_namespaces, \
         kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
    )]
    Namespaces(#[source] io::Error),
    /// Threads were there already.
    #[error("namespaces must be entered before any thread starts, found {threads} threads")]
    Threads {
        /// How many.
        threads: usize,
    },
    /// A file of the kernel's could not be used.
    #[error("cannot use {what}")]
    Kernel {
        /// Which.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// There is no TUN device.
    #[error("no TUN device: /dev/net/tun must exist and be writable")]
    Device(#[source] io::Error),
    /// The kernel did not lay the link.
    #[error("cannot set up {what}")]
    Netlink {
        /// What was to be laid.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The kernel has no such congestion control.
    #[error("unknown congestion control {name:?}: this system has {available}")]
    Congestion {
        /// What was asked for.
        name: String,
        /// What there is.
        available: String,
    },
    /// A thread, a pipe or a process could not be made.
    #[error("cannot start {what}")]
    Start {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The link's thread ended before its time.
    #[error("the link ended: {0}")]
    LinkThreadEnded(String),
}
