//! The instructions of encoder and decoder streams, however their bytes are split (RFC 9204 §4.3, §4.4).
//!
//! ```text
//! encoder  1 T index 6+ | H length 7+ value                    insert with a name of a table (T: the static one)
//!          0 1 H length 5+ name | H length 7+ value            insert
//!          0 0 1 capacity 5+                                   set the capacity
//!          0 0 0 index 5+                                      duplicate
//! decoder  1 stream ID 7+                                      Section Acknowledgment
//!          0 1 stream ID 6+                                    Stream Cancellation
//!          0 0 increment 6+                                    Insert Count Increment
//! ```
//!
//! Indexes of the dynamic table are relative: 0 is the entry that was inserted last.

use bytes::{Bytes, BytesMut};

use crate::qpack::primitives::{Input, ReadError, put_integer, put_string};

/// A fault in the instructions of the peer, which ends the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum InstructionError {
    /// An integer has more than 62 bits, or Huffman coding is invalid.
    #[error("QPACK instruction with an invalid integer or string")]
    Invalid,
    /// The capacity exceeds that of our SETTINGS.
    #[error("dynamic table of {found} bytes, limit {limit}")]
    Capacity {
        /// The limit.
        limit: u64,
        /// The capacity in the instruction.
        found: u64,
    },
    /// An entry does not fit the table, or a string would fit no table that our SETTINGS allow.
    #[error("insertion of more than {capacity} bytes, the capacity of the dynamic table")]
    EntryTooLarge {
        /// The current capacity; of a string, the one in our SETTINGS.
        capacity: u64,
    },
    /// An insertion refers to an entry that does not exist.
    #[error("insertion that refers to an entry that does not exist")]
    MissingEntry,
    /// No section of the stream is unacknowledged.
    #[error("Section Acknowledgment of stream {stream}, which has no section to acknowledge")]
    Acknowledgment {
        /// The stream.
        stream: u64,
    },
    /// The increment is 0, or acknowledges more than was inserted.
    #[error(
        "Insert Count Increment of {increment}, but {unacknowledged} insertions are unacknowledged"
    )]
    Increment {
        /// The increment.
        increment: u64,
        /// The largest valid one.
        unacknowledged: u64,
    },
}

/// An instruction of an encoder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum EncoderInstruction {
    InsertWithStaticName(u64, Bytes),
    InsertWithDynamicName(u64, Bytes),
    Insert(Bytes, Bytes),
    SetCapacity(u64),
    Duplicate(u64),
}

impl EncoderInstruction {
    /// Reads the next instruction. No string of more than `limit` bytes is waited for.
    pub(super) fn read(input: &mut Input<'_>, limit: usize) -> Result<Self, ReadError> {
        let first = input.peek()?;
        Ok(match first {
            0b1000_0000.. => {
                let index = input.integer(6)?;
                let value = input.string(7, limit)?;
                match first & 0b0100_0000 != 0 {
                    true => Self::InsertWithStaticName(index, value),
                    false => Self::InsertWithDynamicName(index, value),
                }
            }
            0b0100_0000.. => {
                let name = input.string(5, limit)?;
                Self::Insert(name, input.string(7, limit)?)
            }
            0b0010_0000.. => Self::SetCapacity(input.integer(5)?),
            _ => Self::Duplicate(input.integer(5)?),
        })
    }

    /// Appends the instruction.
    pub(super) fn write(&self, out: &mut BytesMut) {
        match self {
            Self::InsertWithStaticName(index, value) => {
                put_integer(out, 0b1100_0000, 6, *index);
                put_string(out, 0, 7, value);
            }
            Self::InsertWithDynamicName(index, value) => {
                put_integer(out, 0b1000_0000, 6, *index);
                put_string(out, 0, 7, value);
            }
            Self::Insert(name, value) => {
                put_string(out, 0b0100_0000, 5, name);
                put_string(out, 0, 7, value);
            }
            Self::SetCapacity(capacity) => put_integer(out, 0b0010_0000, 5, *capacity),
            Self::Duplicate(index) => put_integer(out, 0, 5, *index),
        }
    }
}

/// An instruction of a decoder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DecoderInstruction {
    SectionAcknowledgment(u64),
    StreamCancellation(u64),
    InsertCountIncrement(u64),
}

impl DecoderInstruction {
    /// Reads the next instruction.
    pub(super) fn read(input: &mut Input<'_>) -> Result<Self, ReadError> {
        Ok(match input.peek()? {
            0b1000_0000.. => Self::SectionAcknowledgment(input.integer(7)?),
            0b0100_0000.. => Self::StreamCancellation(input.integer(6)?),
            _ => Self::InsertCountIncrement(input.integer(6)?),
        })
    }

    /// Appends the instruction.
    pub(super) fn write(self, out: &mut BytesMut) {
        match self {
            Self::SectionAcknowledgment(stream) => put_integer(out, 0b1000_0000, 7, stream),
            Self::StreamCancellation(stream) => put_integer(out, 0b0100_0000, 6, stream),
            Self::InsertCountIncrement(increment) => put_integer(out, 0, 6, increment),
        }
    }
}

/// The start of an instruction whose rest has not arrived.
#[derive(Debug, Default)]
pub(super) struct InstructionBuffer {
    partial: BytesMut,
}

impl InstructionBuffer {
    /// Reads instructions by `next` from `bytes`, and passes them to `handle`. Returns their number.
    pub(super) fn read<I>(
        &mut self,
        bytes: &[u8],
        next: impl Fn(&mut Input<'_>) -> Result<I, ReadError>,
        mut handle: impl FnMut(I) -> Result<(), InstructionError>,
        too_long: InstructionError,
    ) -> Result<u32, InstructionError> {
        self.partial.extend_from_slice(bytes);
        let mut count = 0;
        let mut used = 0;
        while used < self.partial.len() {
            let mut input = Input::stream(&self.partial[used..]);
            match next(&mut input) {
                Ok(instruction) => handle(instruction)?,
                Err(ReadError::Incomplete) => break,
                Err(ReadError::Invalid) => return Err(InstructionError::Invalid),
                Err(ReadError::TooLong) => return Err(too_long),
            }
            used = self.partial.len() - input.len();
            count += 1;
        }
        let _ = self.partial.split_to(used);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_instruction() -> impl Strategy<Value = EncoderInstruction> {
        let text = || prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from);
        let integer = || 0..1_u64 << 62;
        prop_oneof![
            (integer(), text()).prop_map(|(i, v)| EncoderInstruction::InsertWithStaticName(i, v)),
            (integer(), text()).prop_map(|(i, v)| EncoderInstruction::InsertWithDynamicName(i, v)),
            (text(), text()).prop_map(|(n, v)| EncoderInstruction::Insert(n, v)),
            integer().prop_map(EncoderInstruction::SetCapacity),
            integer().prop_map(EncoderInstruction::Duplicate),
        ]
    }

    proptest! {
        #[test]
        fn instructions_read_back_with_any_split(
            instructions in prop::collection::vec(any_instruction(), 0..9), step in 1_usize..9
        ) {
            let mut wire = BytesMut::new();
            instructions.iter().for_each(|it| it.write(&mut wire));
            let (mut buffer, mut read) = (InstructionBuffer::default(), Vec::new());
            for chunk in wire.chunks(step) {
                let next = |input: &mut Input<'_>| EncoderInstruction::read(input, 40);
                let handle = |it| { read.push(it); Ok(()) };
                buffer.read(chunk, next, handle, InstructionError::Invalid).unwrap();
            }
            prop_assert_eq!(read, instructions);
            prop_assert!(buffer.partial.is_empty());
        }

        #[test]
        fn acknowledgments_read_back(stream in 0..1_u64 << 62) {
            for instruction in [
                DecoderInstruction::SectionAcknowledgment(stream),
                DecoderInstruction::StreamCancellation(stream),
                DecoderInstruction::InsertCountIncrement(stream),
            ] {
                let mut wire = BytesMut::new();
                instruction.write(&mut wire);
                let mut input = Input::stream(&wire);
                prop_assert_eq!(DecoderInstruction::read(&mut input), Ok(instruction));
                prop_assert_eq!(input.len(), 0);
            }
        }
    }
}
