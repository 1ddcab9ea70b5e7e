//! What tests share: known answers as typed values, and headers as browsers and servers send them.
//!
//! Never a normal dependency. Without its features it depends on no crate of the workspace: vectors come out as plain numbers
//! and bytes, and each test interprets them itself. The feature `clock` depends on `spdy`, and `http` on `spdy-net-core`.
//!
//! ```text
//! frames.rs         single frames without a header block        vectors/spec/frames.json
//! sequences.rs      one-way sessions, every frame type          vectors/spec/sequences.json
//! live.rs           whole connections between two peers         vectors/spec/live.json
//! transcripts.rs    the same connections, as tshark read them   vectors/transcripts/
//! conformance.rs    inputs and their correct outcomes           vectors/spec/conformance.json
//! zlib.rs           header blocks in every legal compression    vectors/spec/zlib_variants.json
//! page_headers.rs   generated requests and responses of a page
//! shop_page.rs      a generated page of a shop
//! wait.rs           timeouts for other processes and threads
//! clock.rs          a clock that a test advances (feature `clock`)
//! echo.rs           requests, and a handler that echoes them (feature `http`)
//! tls.rs            TLS for the two ends of a test (feature `http`)
//! closed_port.rs    a port without a listener
//! redis_cluster.rs  three Redis servers in a cluster, which a test can kill
//! ```
//!
//! A vector that cannot be read is a fault of the repository, so everything here panics with the path
//! instead of returning errors.

#[cfg(feature = "clock")]
pub mod clock;
pub mod closed_port;
pub mod conformance;
#[cfg(feature = "http")]
pub mod echo;
pub mod fields;
pub mod frames;
pub mod hex;
pub mod live;
pub mod page_headers;
pub mod redis_cluster;
pub mod sequences;
pub mod shop_page;
#[cfg(feature = "http")]
pub mod tls;
pub mod transcripts;
pub mod vectors;
pub mod wait;
pub mod zlib;

// The unit test of spdy-cli's `shutdown.rs` still imports the former name.
#[doc(hidden)]
pub use self::wait as patience;
