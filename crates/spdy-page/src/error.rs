//! The error of every function that reads a replica.

use crate::coding::CodingError;

/// Why a replica cannot be opened.
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
    /// The file cannot be read.
    #[error("cannot read {path:?}: {cause}")]
    Read {
        /// The file.
        path: String,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// A device, a socket or a FIFO: it may have no end or no beginning.
    #[error("{path:?} is neither a file nor a folder")]
    NotAFile {
        /// The path.
        path: String,
    },
    /// A limit of [`Limits`](crate::limits::Limits) was exceeded.
    #[error("limit of {limit} {what} exceeded")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The outer gzip cannot be decompressed.
    #[error("cannot decompress the file: {0}")]
    Gzip(#[source] CodingError),
    /// No supported format.
    #[error(
        "unknown format (starts with {seen:?}), expected a WARC, a HAR, a NetLog or a speedreport, each also gzipped"
    )]
    Unrecognised {
        /// The first bytes, as text.
        seen: String,
    },
    /// An error in a WARC's records.
    #[error("WARC record {record}: {what}")]
    Warc {
        /// Number of the record, from 1.
        record: usize,
        /// Expected and found content.
        what: String,
    },
    /// An error in a replica's own format.
    #[error("replica, record {record}: {what}")]
    Replica {
        /// Number of the record, from 1.
        record: usize,
        /// Expected and found content.
        what: String,
    },
    /// Invalid JSON for its format.
    #[error("{form}: {what}")]
    Json {
        /// `HAR`, `speedreport` or `NetLog`.
        form: &'static str,
        /// Expected and found content.
        what: String,
    },
    /// The recording has no page load.
    #[error("no page load in the recording: {reason}")]
    NoPageLoad {
        /// The missing part.
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
