//! Reads the streams of the peer's QPACK encoder and decoder (RFC 9204 §4.2).

use crate::compression::HeaderCompression;
use crate::control::critical_stream::{critical_error, critical_fault};
use crate::fault::Fault;
use crate::flood_budget::FloodBudget;

/// Maximum number of bytes taken from QUIC at once.
const CHUNK_BYTES: usize = 4096;

/// Reads the QPACK encoder's stream: insertions into the table of our decoder.
pub(super) async fn read_qpack_encoder(
    stream: quinn::RecvStream,
    floods: Option<FloodBudget>,
    compression: &HeaderCompression,
) -> Result<(), Fault> {
    let read = |bytes: &[u8]| compression.read_encoder_stream(bytes);
    read_instructions(stream, floods, read).await
}

/// Reads the QPACK decoder's stream: acknowledgments for our encoder.
pub(super) async fn read_qpack_decoder(
    stream: quinn::RecvStream,
    floods: Option<FloodBudget>,
    compression: &HeaderCompression,
) -> Result<(), Fault> {
    let read = |bytes: &[u8]| compression.read_decoder_stream(bytes);
    read_instructions(stream, floods, read).await
}

async fn read_instructions(
    mut stream: quinn::RecvStream,
    floods: Option<FloodBudget>,
    read: impl Fn(&[u8]) -> Result<u32, Fault>,
) -> Result<(), Fault> {
    while let Some(chunk) = stream
        .read_chunk(CHUNK_BYTES, true)
        .await
        .map_err(critical_error)?
    {
        let count = read(&chunk.bytes)?;
        if let Some(floods) = &floods {
            // A chunk with a part of an instruction counts as one, too.
            floods.qpack_instructions(count.max(1))?;
        }
    }
    Err(critical_fault("closed"))
}
