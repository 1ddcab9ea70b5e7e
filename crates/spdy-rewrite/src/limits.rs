//! Limits of buffered or parsed third-party input.

/// Maximum length of the target of a proxied URL, path and query, bytes; a longer one is refused, and never built.
pub const MAX_PROXIED_URL_BYTES: usize = 8 * 1024;

/// Maximum length of a host name, bytes (RFC 1035 §2.3.4).
pub const MAX_HOST_BYTES: usize = 253;

/// Maximum length of a label of a host name, bytes.
pub const MAX_LABEL_BYTES: usize = 63;

/// Limit of redirects that are followed for one proxied request.
pub const MAX_REDIRECTS: u32 = 3;

/// Maximum length of CDN-Loop, bytes; a request with more has passed too many proxies.
pub const MAX_CDN_LOOP_BYTES: usize = 1024;

/// Maximum length of Accept, and of X-Requested-With, that is passed from a document's scripts to a host with an alias, bytes; a
/// longer one is removed.
pub const MAX_SCRIPT_HEADER_BYTES: usize = 256;

/// Maximum length of a `style` element or an import map that is buffered to be rewritten, bytes; a longer one is passed on
/// unchanged.
pub const MAX_EMBEDDED_BYTES: usize = 1024 * 1024;

/// Maximum length of a tag or comment that the HTML rewriter buffers, bytes; from a longer one on, a page is passed on unchanged.
pub const MAX_HTML_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// References of one page that are stored for the report; further ones are rewritten and counted.
pub const MAX_REFERENCES: usize = 10_000;

/// Limit of cached capabilities of hosts per site.
pub const MAX_CACHED_CAPABILITIES: usize = 1024;

/// Origins of one page, by use, whose common result is cached.
pub const MAX_CACHED_ORIGINS: usize = 64;

/// Hosts of one page that a report distinguishes.
pub const MAX_REPORTED_HOSTS: usize = 1000;
