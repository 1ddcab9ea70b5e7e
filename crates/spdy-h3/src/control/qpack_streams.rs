//! Reads the streams of the peer's QPACK encoder and decoder (RFC 9204 §4.2).

use bytes::Bytes;

use crate::code::Code;
use crate::control::critical_stream::{critical_error, critical_fault};
use crate::fault::Fault;
use crate::flood_budget::FloodBudget;

/// Reads the QPACK encoder's stream: it may only set the capacity to zero, its current value, and insert nothing.
pub(crate) async fn read_qpack_encoder(
    mut stream: quinn::RecvStream,
    floods: Option<FloodBudget>,
) -> Result<(), Fault> {
    while let Some(bytes) = next_chunk(&mut stream, &floods).await? {
        if bytes.iter().any(|byte| *byte != 0b0010_0000) {
            let reason = "insertion into a dynamic table with capacity 0".to_owned();
            return Err(Fault::Connection(Code::QPACK_ENCODER_STREAM_ERROR, reason));
        }
    }
    Err(critical_fault("closed"))
}

/// Reads the QPACK decoder's stream: it may only cancel streams. There is nothing to acknowledge, because our blocks use no dynamic
/// table.
pub(crate) async fn read_qpack_decoder(
    mut stream: quinn::RecvStream,
    floods: Option<FloodBudget>,
) -> Result<(), Fault> {
    let mut instructions = DecoderInstructions::default();
    while let Some(bytes) = next_chunk(&mut stream, &floods).await? {
        instructions.read(&bytes)?;
    }
    Err(critical_fault("closed"))
}

/// Reads a decoder's instructions, however they are split (RFC 9204 §4.4).
///
/// ```text
///   1 stream ID 7+     Section Acknowledgment
///   0 1 stream ID 6+   Stream Cancellation
///   0 0 increment 6+   Insert Count Increment
/// ```
#[derive(Debug, Default)]
struct DecoderInstructions {
    /// Number of bytes of a stream ID after the first; `None` between instructions.
    continued: Option<u32>,
}

impl DecoderInstructions {
    /// Maximum number of bytes of a 62-bit integer after the first.
    const MAX_CONTINUED: u32 = 9;

    fn read(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let error = |reason: &str| {
            let code = Code::QPACK_DECODER_STREAM_ERROR;
            Err(Fault::Connection(code, reason.to_owned()))
        };
        for &byte in bytes {
            self.continued = match (self.continued, byte) {
                (None, 0b1000_0000..) => {
                    let reason =
                        "Section Acknowledgment, but no field section used a dynamic table";
                    return error(reason);
                }
                (None, 0b0100_0000..) => (byte & 0b0011_1111 == 0b0011_1111).then_some(0),
                (None, _) => {
                    return error("Insert Count Increment, but nothing was inserted");
                }
                (Some(Self::MAX_CONTINUED), _) => {
                    return error("Stream Cancellation with an ID of more than 62 bits");
                }
                (Some(_), 0..0b1000_0000) => None,
                (Some(continued), _) => Some(continued + 1),
            };
        }
        Ok(())
    }
}

/// The next chunk of a QPACK stream.
async fn next_chunk(
    stream: &mut quinn::RecvStream,
    floods: &Option<FloodBudget>,
) -> Result<Option<Bytes>, Fault> {
    let chunk = stream
        .read_chunk(1024, true)
        .await
        .map_err(critical_error)?;
    if let Some(floods) = floods {
        floods.empty_frame()?;
    };
    Ok(chunk.map(|chunk| chunk.bytes))
}
