//! The decoder: the peer's table, and sections that may have to wait for it (RFC 9204 §2.2).

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

use crate::qpack::dynamic_table::DynamicTable;
use crate::qpack::field::Field;
use crate::qpack::field_section::{
    SectionError, max_entries, read_lines, read_prefix, static_entry,
};
use crate::qpack::instructions::{
    DecoderInstruction, EncoderInstruction, InstructionBuffer, InstructionError,
};
use crate::qpack::primitives::Input;

/// Maximum number of streams whose sections wait for the table, in our SETTINGS. As in Chromium.
pub(crate) const MAX_BLOCKED_STREAMS: usize = 100;
/// Limit of bytes of all sections that wait for the table.
const MAX_BLOCKED_BYTES: usize = 256 * 1024;

/// The result of decoding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Decoded {
    /// The fields of the section.
    Fields(Vec<Field>),
    /// The section must be decoded again when this many insertions have arrived.
    Blocked {
        /// Required Insert Count.
        required: u64,
    },
}

/// The decoder of a connection.
#[derive(Debug)]
pub(crate) struct Decoder {
    table: DynamicTable<()>,
    /// In our SETTINGS, bytes.
    max_capacity: u64,
    buffer: InstructionBuffer,
    /// Blocked streams, with the Required Insert Count and the length of their sections.
    blocked: BTreeMap<u64, (u64, usize)>,
    /// Number of insertions that were acknowledged to the peer.
    acknowledged: u64,
    output: BytesMut,
}

impl Decoder {
    /// A decoder whose SETTINGS allow a table of `max_capacity` bytes.
    pub(crate) fn new(max_capacity: u64) -> Self {
        Self {
            table: DynamicTable::new(),
            max_capacity,
            buffer: InstructionBuffer::default(),
            blocked: BTreeMap::new(),
            acknowledged: 0,
            output: BytesMut::new(),
        }
    }

    /// Number of insertions that have arrived.
    pub(crate) fn insert_count(&self) -> u64 {
        self.table.insert_count()
    }

    /// Reads bytes of the peer's encoder stream. Returns the number of instructions.
    pub(crate) fn read_instructions(&mut self, bytes: &[u8]) -> Result<u32, InstructionError> {
        let (table, max_capacity) = (&mut self.table, self.max_capacity);
        // No string is longer than the largest table. `handle` checks an entry with the current capacity, when all of it has arrived.
        let longest = usize::try_from(max_capacity).unwrap_or(usize::MAX);
        let next = |input: &mut Input<'_>| EncoderInstruction::read(input, longest);
        let too_long = InstructionError::EntryTooLarge {
            capacity: max_capacity,
        };
        let handle = |instruction| handle(table, max_capacity, instruction);
        self.buffer.read(bytes, next, handle, too_long)
    }

    /// Decodes the next section of `stream`, of at most `limit` bytes. A section that is blocked is passed again later.
    pub(crate) fn decode(
        &mut self,
        stream: u64,
        section: &[u8],
        limit: usize,
    ) -> Result<Decoded, SectionError> {
        self.blocked.remove(&stream);
        let mut input = Input::whole(section);
        let inserted = self.insert_count();
        let prefix = read_prefix(&mut input, inserted, max_entries(self.max_capacity))?;
        let required = prefix.required;
        if required > inserted {
            self.block(stream, required, section.len())?;
            return Ok(Decoded::Blocked { required });
        }
        let fields = read_lines(&mut input, prefix, &self.table, limit)?;
        if required > 0 {
            DecoderInstruction::SectionAcknowledgment(stream).write(&mut self.output);
            self.acknowledged = self.acknowledged.max(required);
        }
        if self.acknowledged < inserted {
            let increment = inserted - self.acknowledged;
            DecoderInstruction::InsertCountIncrement(increment).write(&mut self.output);
            self.acknowledged = inserted;
        }
        Ok(Decoded::Fields(fields))
    }

    fn block(&mut self, stream: u64, required: u64, len: usize) -> Result<(), SectionError> {
        if self.blocked.len() >= MAX_BLOCKED_STREAMS {
            let limit = MAX_BLOCKED_STREAMS;
            return Err(SectionError::TooManyBlocked { limit });
        }
        let waiting: usize = self.blocked.values().map(|(_, len)| len).sum();
        if waiting + len > MAX_BLOCKED_BYTES {
            let limit = MAX_BLOCKED_BYTES;
            return Err(SectionError::TooManyBlockedBytes { limit });
        }
        self.blocked.insert(stream, (required, len));
        Ok(())
    }

    /// Sends a Stream Cancellation instruction for `stream`: it was reset, or the rest of it is not read.
    pub(crate) fn cancel(&mut self, stream: u64) {
        self.blocked.remove(&stream);
        DecoderInstruction::StreamCancellation(stream).write(&mut self.output);
    }

    /// The bytes for the decoder stream.
    pub(crate) fn take_output(&mut self) -> Bytes {
        self.output.split().freeze()
    }
}

fn handle(
    table: &mut DynamicTable<()>,
    limit: u64,
    instruction: EncoderInstruction,
) -> Result<(), InstructionError> {
    let last = table.insert_count();
    let entry = |index: u64| {
        let index = last.checked_sub(index.saturating_add(1));
        let entry = index.and_then(|index| table.get(index));
        entry.ok_or(InstructionError::MissingEntry)
    };
    let (name, value) = match instruction {
        EncoderInstruction::InsertWithStaticName(index, value) => {
            let (name, _) = static_entry(index).ok_or(InstructionError::MissingEntry)?;
            (Bytes::from_static(name.as_bytes()), value)
        }
        EncoderInstruction::InsertWithDynamicName(index, value) => {
            (entry(index)?.name.clone(), value)
        }
        EncoderInstruction::Insert(name, value) => (name, value),
        EncoderInstruction::Duplicate(index) => {
            let entry = entry(index)?;
            (entry.name.clone(), entry.value.clone())
        }
        EncoderInstruction::SetCapacity(found) if found > limit => {
            return Err(InstructionError::Capacity { limit, found });
        }
        EncoderInstruction::SetCapacity(capacity) => {
            table.set_capacity(capacity);
            return Ok(());
        }
    };
    let capacity = table.capacity();
    match table.insert(name, value, ()) {
        Some(_) => Ok(()),
        None => Err(InstructionError::EntryTooLarge { capacity }),
    }
}
