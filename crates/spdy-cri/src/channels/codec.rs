//! Encodes and decodes the messages of channels.

use bytes::{Buf, Bytes};
use data_encoding::{BASE64, DecodeError, DecodeKind};
use tokio_tungstenite::tungstenite::Message;

use crate::protocol::ChannelProtocol;

/// The first byte of the message that ends a channel.
const CLOSE: u8 = 255;

/// The content of a message.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Piece {
    /// Bytes of a channel.
    Data {
        /// Number of the channel.
        channel: u8,
        /// The bytes; may be empty.
        data: Bytes,
    },
    /// The sender has no more for this channel.
    Close {
        /// Number of the channel.
        channel: u8,
    },
}

/// A message that violates the sub-protocol. (The kubelet ignores the first kind, and loses its bytes.)
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum BadMessage {
    /// The payload is not valid base64.
    #[error("message on channel {channel} is not base64: {reason}")]
    Base64 {
        /// Number of the channel.
        channel: u8,
        /// The decoder's error.
        reason: DecodeError,
    },
    /// A channel close message has exactly two bytes.
    #[error("channel close message has {found} bytes, expected 2")]
    Close {
        /// Length of the message, bytes.
        found: usize,
    },
}

/// Decodes a message; an empty one has no content.
pub(crate) fn decode(
    protocol: ChannelProtocol,
    mut message: Bytes,
) -> Result<Option<Piece>, BadMessage> {
    let Some(&first) = message.first() else {
        return Ok(None);
    };
    if protocol.has_close() && first == CLOSE {
        return match message[..] {
            [_, channel] => Ok(Some(Piece::Close { channel })),
            _ => Err(BadMessage::Close {
                found: message.len(),
            }),
        };
    }
    message.advance(1);
    if !protocol.is_base64() {
        let (channel, data) = (first, message);
        return Ok(Some(Piece::Data { channel, data }));
    }
    let channel = first.wrapping_sub(b'0');
    let decoded = decode_base64(&message);
    let data = decoded.map_err(|reason| BadMessage::Base64 { channel, reason })?;
    let data = data.into();
    Ok(Some(Piece::Data { channel, data }))
}

/// Decodes padded base64. `data_encoding` alone also accepts several padded texts one after another.
fn decode_base64(text: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let until_padding = &text[..text.len().saturating_sub(2)];
    match until_padding.iter().position(|&byte| byte == b'=') {
        Some(position) => Err(DecodeError {
            position,
            kind: DecodeKind::Padding,
        }),
        None => BASE64.decode(text),
    }
}

/// Encodes a message.
pub(crate) fn encode(protocol: ChannelProtocol, piece: &Piece) -> Message {
    match piece {
        Piece::Data { channel, data } if protocol.is_base64() => {
            let mut text = String::with_capacity(1 + data.len().div_ceil(3) * 4);
            // An ASCII digit; more channels than that are never opened.
            text.push(char::from(b'0'.wrapping_add(*channel)));
            BASE64.encode_append(data, &mut text);
            Message::text(text)
        }
        Piece::Data { channel, data } => {
            let mut bytes = Vec::with_capacity(1 + data.len());
            bytes.push(*channel);
            bytes.extend_from_slice(data);
            Message::binary(bytes)
        }
        Piece::Close { channel } => Message::binary(vec![CLOSE, *channel]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(channel: u8, data: &'static [u8]) -> Piece {
        let data = Bytes::from_static(data);
        Piece::Data { channel, data }
    }

    #[test]
    fn messages_are_those_of_the_kubelets_documentation() {
        let cases = [
            (ChannelProtocol::V1, data(0, b"foo\n"), &b"\0foo\n"[..]),
            (ChannelProtocol::V1, data(1, b"\n"), b"\x01\n"),
            (ChannelProtocol::V1, data(255, b"\0"), b"\xff\0"),
            (ChannelProtocol::V1Base64, data(0, b"foo\n"), b"0Zm9vCg=="),
            (ChannelProtocol::V4Base64, data(1, b"\n"), b"1Cg=="),
            (ChannelProtocol::V4, data(3, b""), b"\x03"),
            (ChannelProtocol::V5, Piece::Close { channel: 0 }, b"\xff\0"),
        ];
        for (protocol, piece, wire) in cases {
            let message = encode(protocol, &piece);
            assert_eq!(message.is_text(), protocol.is_base64(), "{piece:?}");
            assert_eq!(message.into_data(), wire, "{protocol:?} {piece:?}");
            let back = decode(protocol, Bytes::from_static(wire));
            assert_eq!(back, Ok(Some(piece)), "{protocol:?}");
        }
    }

    #[test]
    fn an_invalid_message_is_an_error() {
        for wire in [&b"\xff"[..], b"\xff\0\0"] {
            let found = wire.len();
            let read = decode(ChannelProtocol::V5, Bytes::from_static(wire));
            assert_eq!(read, Err(BadMessage::Close { found }));
        }
        for wire in [&b"0Zm9vCg="[..], b"0Zm9v!", b"0Zm9vCgo==", b"0Cg==Cg=="] {
            let read = decode(ChannelProtocol::V4Base64, Bytes::from_static(wire));
            assert!(
                matches!(read, Err(BadMessage::Base64 { channel: 0, .. })),
                "{read:?}"
            );
        }
        assert_eq!(decode(ChannelProtocol::V5, Bytes::new()), Ok(None));
    }
}
