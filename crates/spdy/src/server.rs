//! The server side of a session. (Contract)
//!
//! ```ignore
//! let (mut accept, connection) = spdy::server::Builder::new(Version::V31).handshake(io, runtime);
//! while let Some(incoming) = accept.next().await {     // Incoming: headers, priority, id
//!     match incoming.into_request() {                  // Ok((http::Request<Body>, Responder)) or a 400 already sent
//!         // responder.respond(http::Response<Body>).await; responder.push(request, priority) -> Responder of the push
//!     }
//!     // or incoming.accept_raw(headers) -> Stream, incoming.reject(status)
//! }
//! ```
//! `serve(io, builder, runtime, service)` runs a `Fn(Request<Body>) -> Future<Response<Body>>` for every request.
