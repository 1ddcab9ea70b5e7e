//! The error of every function that reads a replica.

use crate::coding::CodingError;

/// Why there is no replica.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Neither a shipped name nor a file.
    #[error("unknown replica {name:?}: no such file, and the shipped replicas are {}", shipped.join(", "))]
    NotFound {
        /// The requested name.
        name: String,
        /// Names of the shipped replicas.
        shipped: &'static [&'static str],
    },
    /// The file is there and cannot be read.
    #[error("cannot read {path:?}: {cause}")]
    Read {
        /// The file.
        path: String,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// A device, a socket or a FIFO: it may have no end, or never begin.
    #[error("{path:?} is neither a file nor a folder")]
    NotAFile {
        /// What was named.
        path: String,
    },
    /// A bound of [`Limits`](crate::limits::Limits) was passed.
    #[error("limit of {limit} {what} exceeded")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
        limit: usize,
    },
    /// The outer gzip does not inflate.
    #[error("cannot decompress the file: {0}")]
    Gzip(#[source] CodingError),
    /// None of the forms that we read.
    #[error(
        "unknown format (starts with {seen:?}), expected a WARC, a HAR, a NetLog or a speedreport, each also gzipped"
    )]
    Unrecognised {
        /// The first bytes, as text.
        seen: String,
    },
    /// A fault in a WARC's records.
    #[error("WARC record {record}: {what}")]
    Warc {
        /// Number of the record, from 1.
        record: usize,
        /// What was expected and what was found.
        what: String,
    },
    /// A fault in a replica of ours.
    #[error("replica, record {record}: {what}")]
    Replica {
        /// Number of the record, from 1.
        record: usize,
        /// What was expected and what was found.
        what: String,
    },
    /// JSON that is not what its form promises.
    #[error("{form}: {what}")]
    Json {
        /// `HAR`, `speedreport` or `NetLog`.
        form: &'static str,
        /// What was expected and what was found.
        what: String,
    },
    /// The recording has no page load.
    #[error("no page load in the recording: {reason}")]
    NoPageLoad {
        /// What is missing.
        reason: String,
    },
    /// The recording does not have the requested page.
    #[error("no page {page} in the recording, expected 1 to {pages}")]
    NoSuchPage {
        /// The requested page, from 1.
        page: usize,
        /// Pages in the recording.
        pages: usize,
    },
}
