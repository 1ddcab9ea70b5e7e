//! What long-running commands share: listeners, signals, and metrics of connections.

pub(crate) mod digest_key;
pub(crate) mod listen;
pub(crate) mod metrics;
mod signals;

pub(crate) use signals::{ReloadSignal, StopSignals};
