//! Recorded connections, and what another reader made of them.

use serde::Deserialize;

use crate::hex::Hex;
use crate::vectors;

/// A recorded connection.
#[derive(Clone, Debug)]
pub struct Transcript {
    /// Its name.
    pub name: String,
    /// "2" or "3.1".
    pub version: &'static str,
    /// What the client wrote.
    pub client: Side,
    /// What the server wrote.
    pub server: Side,
}

/// One direction of a [`Transcript`].
#[derive(Clone, Debug)]
pub struct Side {
    /// Every byte.
    pub bytes: Vec<u8>,
    /// Bytes that came at once, one after the other.
    pub pieces: Vec<usize>,
    /// Its frames.
    pub frames: Vec<ReferenceFrame>,
}

/// A frame, as the other reader saw it; fields that its type has not are 0.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReferenceFrame {
    /// "SYN_STREAM" and so on.
    pub r#type: String,
    /// All flags.
    pub flags: u8,
    /// Bytes behind the head.
    pub length: usize,
    /// Stream.
    pub stream: u32,
    /// Stream it belongs to.
    pub associated: u32,
    /// As a number of its version.
    pub priority: u8,
    /// Name and value in the order of the wire; `None` where it is no block, or an empty one.
    pub headers: Option<Vec<(String, String)>>,
    /// Entries of SETTINGS.
    pub settings: Vec<Entry>,
    /// The same as bytes, where the reader did not take them apart.
    pub raw_entries: Vec<Hex>,
    /// Id of a PING.
    pub ping: u32,
    /// Of RST_STREAM and GOAWAY.
    pub status: u32,
    /// Of GOAWAY.
    pub last_good: u32,
    /// Of WINDOW_UPDATE.
    pub delta: u32,
    /// The error of tshark, if it could not decode the block.
    pub tshark_error: Option<String>,
    version: u16,
    dir: String,
    t: f64,
}

/// An entry of SETTINGS.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Entry {
    /// Id.
    pub id: u32,
    /// Value.
    pub value: u32,
    /// The flag PERSIST_VALUE.
    pub persist_value: u8,
    /// The flag PERSISTED.
    pub persisted: u8,
}

/// All that are in `vectors/transcripts`, by name.
///
/// # Panics
///
/// If one cannot be read.
#[must_use]
pub fn all() -> Vec<Transcript> {
    let directory = vectors::directory().join("transcripts");
    let entries = std::fs::read_dir(&directory);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("the folder can be read").file_name())
        .filter_map(|name| Some(name.to_str()?.strip_suffix(".json")?.to_owned()))
        .collect();
    names.sort();
    names.iter().map(|name| read(name)).collect()
}

fn read(name: &str) -> Transcript {
    #[derive(Deserialize)]
    struct File {
        name: String,
        pieces: Vec<(String, usize)>,
        frames: Frames,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Frames {
        InOrder(Vec<ReferenceFrame>),
        BySide {
            c2s: Vec<ReferenceFrame>,
            s2c: Vec<ReferenceFrame>,
        },
    }
    let file: File = vectors::json(&format!("transcripts/{name}.json"));
    assert_eq!(file.name, name);
    let (c2s, s2c) = match file.frames {
        Frames::InOrder(frames) => frames.into_iter().partition(|frame| frame.dir == "c2s"),
        Frames::BySide { c2s, s2c } => (c2s, s2c),
    };
    let side = |direction: &str, frames| Side {
        bytes: vectors::bytes(&format!("transcripts/{name}.{direction}.bin")),
        pieces: file
            .pieces
            .iter()
            .filter(|(of, _)| of == direction)
            .map(|(_, bytes)| *bytes)
            .collect(),
        frames,
    };
    Transcript {
        name: name.to_owned(),
        version: if name.contains("_spdy2_") { "2" } else { "3.1" },
        client: side("c2s", c2s),
        server: side("s2c", s2c),
    }
}
