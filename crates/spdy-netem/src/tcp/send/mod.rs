//! The sending half: what was written, what is out, the window, and what goes next.

pub(crate) mod persist;
pub(crate) mod scoreboard;
pub(crate) mod send_buffer;
pub(crate) mod sender;
pub(crate) mod transmit;
