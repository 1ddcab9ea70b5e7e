//! Whole connections, both directions, between two implementations.

use serde::Deserialize;

use crate::fields::Fields;
use crate::vectors;

/// A recorded connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Name of the vector.
    pub id: String,
    /// "2", "3", "3.1", or "3 framing under Upgrade: SPDY/3.1".
    pub version: String,
    /// What the client wrote.
    pub client: Direction,
    /// What the server wrote.
    pub server: Direction,
}

/// One direction of a [`Connection`].
#[derive(Clone, Debug)]
pub struct Direction {
    /// Bytes of HTTP/1.1 before the first frame, where the session began by Upgrade.
    pub http_head: Vec<u8>,
    /// Every byte from the first frame on.
    pub bytes: Vec<u8>,
    /// What the frames mean.
    pub frames: Vec<Fields>,
}

/// All recorded connections.
///
/// # Panics
///
/// If a file is shorter than its HTTP head.
#[must_use]
pub fn all() -> Vec<Connection> {
    #[derive(Deserialize)]
    struct File {
        connections: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        id: String,
        version: String,
        c2s: Half,
        s2c: Half,
    }
    #[derive(Deserialize)]
    struct Half {
        file: String,
        #[serde(default)]
        http_head_bytes: usize,
        frames: Vec<Frame>,
    }
    #[derive(Deserialize)]
    struct Frame {
        fields: Fields,
    }
    let direction = |half: Half| {
        let mut http_head = vectors::bytes(&format!("spec/{}", half.file));
        let bytes = http_head.split_off(half.http_head_bytes);
        let frames = half.frames.into_iter().map(|frame| frame.fields).collect();
        Direction {
            http_head,
            bytes,
            frames,
        }
    };
    let entries = vectors::json::<File>("spec/live.json").connections;
    let connection = |Entry {
                          id,
                          version,
                          c2s,
                          s2c,
                      }| Connection {
        id,
        version,
        client: direction(c2s),
        server: direction(s2c),
    };
    entries.into_iter().map(connection).collect()
}
