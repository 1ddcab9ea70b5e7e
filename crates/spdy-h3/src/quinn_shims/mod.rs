//! Workarounds for features that quinn lacks: the choice of the stream that sends next, and of the request that opens the next
//! stream.
//!
//! | file | reason | upstream |
//! | --- | --- | --- |
//! | `send_budget.rs` | quinn limits the unsent bytes of a connection, and gives freed room to the first task that waits, not to the most urgent. | none found |
//! | `wake_detector.rs` | quinn does not report why a stream accepts nothing more, and wakes the last of the waiting streams first. | none found for the order (near: quinn#1040) |
//! | `stream_open_queue.rs` | quinn gives each stream that the peer grants to the first task that requested one, not to the most urgent. | none found |

pub(crate) mod send_budget;
pub(crate) mod stream_open_queue;
pub(crate) mod wake_detector;
