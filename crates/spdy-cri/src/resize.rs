//! Sizes of a terminal: a sequence of JSON objects, `{"Width":80,"Height":24}`.

use bytes::{Buf, BytesMut};
use serde::{Deserialize, Serialize};

use crate::error::StreamError;
use crate::stdio::{Input, Output};

/// Maximum length of one size, bytes; one more ends the stream of sizes.
const SIZE_BYTES: usize = 1024;

/// A terminal's size, in characters.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// The terminal sizes that a client sends.
#[derive(Debug)]
pub struct ResizeEvents {
    channel: Input,
    buffer: BytesMut,
}

impl ResizeEvents {
    pub(crate) fn new(channel: Input) -> Self {
        let buffer = BytesMut::new();
        Self { channel, buffer }
    }

    /// The next size; `None` after the last. Cancel safe.
    pub async fn next(&mut self) -> Option<TerminalSize> {
        loop {
            match next_size(&mut self.buffer) {
                Ok(Some(size)) => return Some(size),
                Ok(None) => {}
                Err(reason) => {
                    tracing::debug!(%reason, "the resize stream has no valid size");
                    return None;
                }
            }
            match self.channel.receive().await {
                Some(Ok(bytes)) => self.buffer.extend_from_slice(&bytes),
                Some(Err(_)) | None => return None,
            }
        }
    }
}

/// Takes the first size from `buffer`, if it is complete.
fn next_size(buffer: &mut BytesMut) -> Result<Option<TerminalSize>, String> {
    let mut sizes = serde_json::Deserializer::from_slice(buffer).into_iter::<TerminalSize>();
    match sizes.next() {
        Some(Ok(size)) => {
            let used = sizes.byte_offset();
            buffer.advance(used);
            Ok(Some(size))
        }
        Some(Err(error)) if error.is_eof() => match buffer.len() > SIZE_BYTES {
            true => Err(format!("incomplete after {SIZE_BYTES} bytes")),
            false => Ok(None),
        },
        Some(Err(error)) => Err(error.to_string()),
        None => {
            buffer.clear(); // white space
            Ok(None)
        }
    }
}

/// Sends a terminal's size to the server.
#[derive(Debug)]
pub struct Resizer {
    channel: Output,
}

impl Resizer {
    pub(crate) fn new(channel: Output) -> Self {
        Self { channel }
    }

    /// Sends `size` as the new size of the terminal.
    ///
    /// # Errors
    ///
    /// Why the stream ended: the command or the session has ended.
    pub async fn resize(&mut self, size: TerminalSize) -> Result<(), StreamError> {
        let mut json = match serde_json::to_vec(&size) {
            Ok(json) => json,
            Err(error) => unreachable!("two numbers are JSON: {error}"),
        };
        json.push(b'\n');
        self.channel.send(json.into()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_with_any_split() {
        let wire = b"{\"Width\":80,\"Height\":24}\n{\"Width\":132,\"Height\":43}\n";
        for size in 1..wire.len() {
            let (mut buffer, mut sizes) = (BytesMut::new(), Vec::new());
            for piece in wire.chunks(size) {
                buffer.extend_from_slice(piece);
                while let Some(size) = next_size(&mut buffer).expect("the sizes are valid") {
                    sizes.push((size.width, size.height));
                }
            }
            assert_eq!(sizes, [(80, 24), (132, 43)], "in pieces of {size}");
        }
    }

    #[test]
    fn an_invalid_or_endless_size_is_an_error() {
        for wire in [&b"{\"Width\":65536,\"Height\":1}"[..], b"[]", b"x"] {
            assert!(next_size(&mut BytesMut::from(wire)).is_err());
        }
        let mut long = BytesMut::from(&b"{\"Width\":1,"[..]);
        long.resize(SIZE_BYTES, b' ');
        assert_eq!(next_size(&mut long), Ok(None));
        long.extend_from_slice(b" ");
        assert!(next_size(&mut long).is_err());
    }
}
