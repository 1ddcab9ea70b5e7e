//! The sending half: written data, data in flight, the window, and the next segment.

pub(crate) mod persist;
pub(crate) mod scoreboard;
pub(crate) mod send_buffer;
pub(crate) mod sender;
pub(crate) mod transmit;
