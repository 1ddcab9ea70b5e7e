//! Importers of other recordings, and the HAR export. Each returns a [`Replica`](crate::replica::Replica) and notes on losses.

pub(crate) mod assemble;
pub mod devtools;
pub mod har;
pub(crate) mod mahimahi;
pub(crate) mod module_times;
pub mod netlog;
pub mod notes;
pub mod page_trace;
pub mod result;
pub mod screencast;
pub(crate) mod speedreport;
pub mod warc;
