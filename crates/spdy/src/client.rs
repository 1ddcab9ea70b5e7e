//! The client side of a session. (Contract)
//!
//! ```ignore
//! let (session, connection) = spdy::client::Builder::new(Version::V31).handshake(io, runtime);
//! runtime.spawn(connection.run());           // a future that drives I/O until the session ends
//! let response: http::Response<spdy::Body> = session.request(request, Priority::HIGHEST).await?;
//! let stream: spdy::stream::Stream = session.open(headers, OpenOptions).await?;   // raw, AsyncRead + AsyncWrite
//! ```
//! `session` is Clone + Send + Sync. `request` waits while the peer's MAX_CONCURRENT_STREAMS is reached: waiting
//! requests go by priority, then in order. Methods: `stats()`, `ping().await -> Duration`, `shutdown()`,
//! `is_closing()`, `active_streams()`. Errors: `spdy::error::Error` with `is_retry_safe()` (session.md §8).
