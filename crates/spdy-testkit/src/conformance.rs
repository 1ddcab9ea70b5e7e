//! Inputs to a receiver, legal, malformed or abusive, and the outcomes that are right for each.

use serde::Deserialize;

use crate::hex::Hex;
use crate::vectors;

/// Which end of a connection is under test.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Receiver {
    /// A server that knows `/ok`, `/hold`, `/sink` and `/big`.
    Server,
    /// A client that has opened stream 1 with `GET /` and FIN.
    Client,
}

/// One input.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// Name of the case.
    pub id: String,
    /// The side under test.
    pub receiver: Receiver,
    /// "2", "3" or "3.1".
    pub version: String,
    /// What is done to it.
    pub title: String,
    /// Outcomes that are right, the best first.
    pub expect: Vec<String>,
    /// Sent first, to be answered before the rest.
    pub setup: Bytes,
    /// The bytes in question.
    pub input: Bytes,
    /// Sent last, to check whether the session lives; empty if that is not possible.
    pub then: Bytes,
}

/// Bytes to send, runs of one byte unfolded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Option<Vec<Piece>>")]
pub struct Bytes(pub Vec<u8>);

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Run { byte: Hex, count: usize },
    Plain { hex: Hex },
}

impl From<Option<Vec<Piece>>> for Bytes {
    fn from(pieces: Option<Vec<Piece>>) -> Self {
        let unfolded = |piece| match piece {
            Piece::Run { byte, count } => byte.repeat(count),
            Piece::Plain { hex } => hex.0,
        };
        Self(pieces.into_iter().flatten().flat_map(unfolded).collect())
    }
}

/// All inputs.
#[must_use]
pub fn all() -> Vec<Case> {
    #[derive(Deserialize)]
    struct File {
        cases: Vec<Case>,
    }
    vectors::json::<File>("spec/conformance.json").cases
}
