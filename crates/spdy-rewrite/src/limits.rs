//! How much of what others wrote is held or read at once.

/// Bytes of the target of a moved URL, path and query; what is longer is refused, and nothing longer is made.
pub const MAX_MOVED_URL_BYTES: usize = 8 * 1024;

/// Bytes of a host's name (RFC 1035 §2.3.4).
pub const MAX_HOST_BYTES: usize = 253;

/// Bytes of one label of a host's name.
pub const MAX_LABEL_BYTES: usize = 63;

/// Redirects that are followed for one moved request.
pub const MAX_REDIRECTS: u32 = 3;

/// Bytes of CDN-Loop that are passed on; a request that brings more has been round too often.
pub const MAX_CDN_LOOP_BYTES: usize = 1024;
