//! Acknowledgements, and the sender's conclusions from them and from their absence: losses, timeouts, undone reductions.

pub(crate) mod ack;
pub(crate) mod fast_recovery;
pub(crate) mod rack;
pub(crate) mod recovery_state;
pub(crate) mod rto;
pub(crate) mod rtt;
pub(crate) mod sack;
pub(crate) mod tlp;
pub(crate) mod undo;
