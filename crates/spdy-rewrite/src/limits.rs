//! Limits on what is buffered or read of third-party input.

/// Bytes of the target of a moved URL, path and query; what is longer is refused, and nothing longer is made.
pub const MAX_PROXIED_URL_BYTES: usize = 8 * 1024;

/// Bytes of a host's name (RFC 1035 §2.3.4).
pub const MAX_HOST_BYTES: usize = 253;

/// Bytes of one label of a host's name.
pub const MAX_LABEL_BYTES: usize = 63;

/// Redirects that are followed for one moved request.
pub const MAX_REDIRECTS: u32 = 3;

/// Bytes of CDN-Loop that are passed on; a request that brings more has been round too often.
pub const MAX_CDN_LOOP_BYTES: usize = 1024;

/// Bytes of Accept, and of X-Requested-With, that pass to a named host as its documents' scripts set them; a longer one does not.
pub const MAX_SCRIPT_HEADER_BYTES: usize = 256;

/// Bytes of a `style` element or an import map that are held to be rewritten; what is longer is passed as it is.
pub const MAX_EMBEDDED_BYTES: usize = 1024 * 1024;

/// Bytes of one tag or comment that the HTML rewriter holds; a page with a longer one is passed on from there.
pub const MAX_HTML_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// References of one page that are stored for the report; further ones are rewritten and counted.
pub const MAX_REFERENCES: usize = 10_000;

/// Capabilities of hosts that a site keeps, so that they are not made again for each reference.
pub const MAX_CACHED_CAPABILITIES: usize = 1024;

/// Origins of one page, by use, whose common result is cached.
pub const MAX_CACHED_ORIGINS: usize = 64;

/// Hosts of one page that a report distinguishes.
pub const MAX_REPORTED_HOSTS: usize = 1000;
