//! Replies over UDP that do not match the question: counts them, and decides when a look-up stops using UDP.
//!
//! An attacker off the path must spoof the source address, and guess the port, the ID (16 bits) and the case of each letter of the name
//! (0x20). Every wrong guess that arrives before the right reply counts towards a limit, so a look-up under attack continues over TCP long
//! before a guess is likely to be right. A packet from another address cannot be accepted, however many come. It is counted in the metrics
//! only: otherwise any host could push look-ups to TCP without spoofing, and fail those to servers without TCP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Why a reply does not match its question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mismatch {
    /// It came from another address or port than the question went to.
    Source,
    /// It has another ID, or is no reply.
    Header,
    /// It is to another name, type or class.
    Question,
    /// Its name has letters of another case than the question: forged, or of a server that does not preserve case.
    Case,
}

impl Mismatch {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Source, Self::Header, Self::Question, Self::Case];

    /// The label of its counter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Header => "header",
            Self::Question => "question",
            Self::Case => "case",
        }
    }
}

/// Counts mismatched replies of one or more resolvers. Clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct MismatchedReplies(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// In the order of [`Mismatch::ALL`].
    replies: [AtomicU64; 4],
    switched_to_tcp: AtomicU64,
}

impl MismatchedReplies {
    /// How many replies had this mismatch.
    #[must_use]
    pub fn of(&self, mismatch: Mismatch) -> u64 {
        self.0.replies[mismatch as usize].load(Ordering::Relaxed)
    }

    /// Look-ups that continued over TCP only, because they had received too many mismatched replies.
    #[must_use]
    pub fn switched_to_tcp(&self) -> u64 {
        self.0.switched_to_tcp.load(Ordering::Relaxed)
    }
}

/// The mismatched replies of one look-up.
#[derive(Debug)]
pub(crate) struct SpoofBudget {
    /// Those that count towards `limit`.
    seen: AtomicU32,
    limit: u32,
    counted: MismatchedReplies,
}

impl SpoofBudget {
    /// Starts at zero. More than `limit` mismatched replies with the server's address as their source end the use of UDP.
    pub(crate) fn new(limit: u32, counted: MismatchedReplies) -> Self {
        Self {
            seen: AtomicU32::new(0),
            limit,
            counted,
        }
    }

    /// Counts a reply with `mismatch`: in the metrics, and towards the limit if it came from the address of the server.
    pub(crate) fn note(&self, mismatch: Mismatch) {
        self.counted.0.replies[mismatch as usize].fetch_add(1, Ordering::Relaxed);
        tracing::debug!(
            reason = mismatch.name(),
            "a DNS response does not match its query"
        );
        if mismatch == Mismatch::Source {
            return;
        }
        let before = self.seen.fetch_add(1, Ordering::Relaxed);
        if before == self.limit {
            self.counted
                .0
                .switched_to_tcp
                .fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                limit = self.limit,
                "too many DNS responses do not match their query: the lookup continues over TCP"
            );
        }
    }

    /// Whether more than `limit` mismatched replies came from the address of the server. Then UDP is no longer used.
    pub(crate) fn is_past_limit(&self) -> bool {
        self.seen.load(Ordering::Relaxed) > self.limit
    }
}
