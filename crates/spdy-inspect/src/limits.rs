//! Limits on the memory that a capture can use.

/// Limits on one inspection.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum length of a record or block of a capture file, bytes. Default 16 MiB.
    pub record_bytes: usize,
    /// Interfaces of a pcapng section. Default 1024.
    pub interfaces: usize,
    /// TCP connections that are followed at a time. Past it the eighth part that was idle longest is dropped, and reported as if the
    /// capture had ended. A connection with SPDY uses about 100 KB for its two inflaters. Default 4096.
    pub connections: usize,
    /// Bytes stored behind a hole in one direction of a connection; past it the hole is reported as a gap. Default 4 MiB.
    pub held_bytes: usize,
    /// The same for all connections together. Default 64 MiB.
    pub total_held_bytes: usize,
    /// Bytes of one direction that wait for the other: for a ServerHello, or for the response to an Upgrade. Default 1 MiB.
    pub waiting_bytes: usize,
    /// Maximum length of an HTTP/1.1 head before an Upgrade. Default 64 KiB.
    pub http_head_bytes: usize,
    /// Maximum length of a TLS handshake message. Default 128 KiB.
    pub handshake_message_bytes: usize,
    /// Maximum number of secrets of a key log. Default 1,000,000.
    pub secrets: usize,
    /// Streams of a session that the timeline distinguishes; frames of later ones are still reported. Default 16,384.
    pub streams: usize,
    /// Findings of a session that are reported one by one; the rest are counted. Default 1000.
    pub findings: usize,
    /// First bytes of a DATA frame's payload in an event. Default 0: lengths only.
    pub payload_shown_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            record_bytes: 16 << 20,
            interfaces: 1024,
            connections: 4096,
            held_bytes: 4 << 20,
            total_held_bytes: 64 << 20,
            waiting_bytes: 1 << 20,
            http_head_bytes: 64 << 10,
            handshake_message_bytes: 128 << 10,
            secrets: 1_000_000,
            streams: 16_384,
            findings: 1000,
            payload_shown_bytes: 0,
        }
    }
}
