//! Errors of streams that must stay open as long as their connection (RFC 9114 §6.2.1, RFC 9204 §4.2).

use crate::code::Code;
use crate::fault::Fault;

pub(crate) fn critical_fault(deed: &str) -> Fault {
    let reason = format!("the peer {deed} a critical stream");
    Fault::Connection(Code::CLOSED_CRITICAL_STREAM, reason)
}

pub(crate) fn critical_error(error: quinn::ReadError) -> Fault {
    match error.into() {
        Fault::Ended(_) => critical_fault("reset"),
        other => other,
    }
}
