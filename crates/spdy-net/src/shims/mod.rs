//! Workarounds for features that h2 and hyper lack, implemented on the bytes below them. A shim is removed when its upstream issue
//! is solved.
//!
//! | file | reason | upstream |
//! | --- | --- | --- |
//! | `wire_observer.rs` | Base of others: shows the bytes below hyper and h2, and counts header bytes. Neither crate reports its wire sizes. | none found |
//! | `h2/write_coalescer.rs` | h2's encoder holds one DATA frame and flushes after each: one system call and one TLS record a frame. | hyperium/h2#902, PR #903 (open; h2 0.4.20 still has the single slot) |
//! | `h2/data_frame_splitter.rs` | h2 reads with `LengthDelimitedCodec`: it passes a DATA frame on only when its last byte is there. | none found (hyperium/h2#902 names the receiving side). `MIN_MEAN_PART` must respect the budget of small DATA frames of h2 PR #935 |
//! | `h2/write_scheduler.rs` | h2 sends streams in turn, without the priorities of RFC 9218. | hyperium/h2#340 (closed, not done) |
//! | `h2/window_tracker.rs` | h2 reports neither a stream's send window nor what left on it. Both distinguish a closed window from a stream behind others. | none found (near: hyperium/h2#857, receive side) |
//! | `hyper/head_timeout.rs` | `header_read_timeout` counts the idle time between requests and the time of a head as one, with a timer for each request. | hyperium/hyper#1628 (open), PR #3828 (open), PR #3743 (closed) |
//! | `hyper/head_size.rs` | A head that is complete within the read that passes the limit is accepted. | hyperium/hyper#4081, `max_header_size` of servers (PR #4093) reports no method and target of what it refuses; for clients #3832, PR #4183 (open) |
//!
//! Workarounds that are not on the wire are beside their subject: `interim/expect_continue.rs` of `spdy-net-core` (hyper#3833, hyper-util
//! PR #321), 103 over HTTP/2 in its `interim/early_hints.rs` (hyper#3991, #4114), host checks in `http1/request_check.rs`
//! (hyper#3777) and `head/request_head.rs` of `spdy-net-core` (h2 PR #372: h2 does not compare Host and `:authority`), and the end of a
//! connection in `http2/server.rs` (h2 PR #250: `graceful_shutdown` waits for a PONG). quinn's are in
//! `spdy-h3/src/quinn_shims/`.

pub(crate) mod h2;
pub(crate) mod hyper;
pub mod wire_observer;
