//! Laws of every door that bytes come in by, for any bytes.
//!
//! A door is a function of an input that panics if a law does not hold. `targets/` hands them to libFuzzer,
//! `scripts/fuzz` runs those, and the tests here hold every [seed](seeds) to them.
//!
//! ```text
//! vectors/ ──▶ seeds ──▶ libFuzzer ──▶ input ──▶ door ──▶ a law that is broken
//!                 └──────────────────────────────▲              └──▶ a test in the crate that was wrong
//! ```
//!
//! Laws are about what a door promises: any cut gives the same, what is read is written the same again, memory
//! is within a stated factor of the input ([`memory`]). That nothing panics and no sum overflows comes for free.

pub mod choices;
pub mod frame;
pub mod header_block;
pub mod memory;
pub mod profile;
pub mod seeds;
pub mod session;

/// A way in for bytes, and the laws of it.
#[derive(Clone, Copy, Debug)]
pub struct Door {
    /// Name of the target.
    pub name: &'static str,
    /// Panics if a law does not hold.
    pub check: fn(&[u8]),
}

/// Every door, from the wire up.
pub const DOORS: &[Door] = &[
    Door {
        name: "frame",
        check: frame::check,
    },
    Door {
        name: "header_block",
        check: header_block::check,
    },
    Door {
        name: "server_session",
        check: session::check_server,
    },
    Door {
        name: "client_session",
        check: session::check_client,
    },
    Door {
        name: "profile",
        check: profile::check,
    },
];
