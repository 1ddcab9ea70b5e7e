//! The encoder: our table, which the peer follows by our instructions (RFC 9204 §2.1).
//!
//! It is the policy of Chromium. A section may refer to entries whose insertion the peer has not acknowledged, unless more streams could
//! then be blocked than the peer allows. An entry is not evicted if it is unacknowledged, or if an unacknowledged section refers to it.
//! The oldest quarter of the table is not referred to: such an entry is duplicated, so that the old one can be evicted.
//!
//! A section never refers to an insertion that QUIC has not accepted. Otherwise the peer's flow control could stop the instruction
//! behind a body whose head waits for it (RFC 9204 §2.1.3).

use bytes::{Bytes, BytesMut};

use crate::qpack::MAX_TABLE_BYTES;
use crate::qpack::dynamic_table::{DynamicTable, Entry, entry_len};
use crate::qpack::field::{Field, section_len};
use crate::qpack::field_section::{Line, max_entries, write_section};
use crate::qpack::indexing::{Indexing, host, with_crumbs};
use crate::qpack::instructions::{
    DecoderInstruction, EncoderInstruction, InstructionBuffer, InstructionError,
};
use crate::qpack::static_table::{TableMatch, find};
use crate::qpack::unacknowledged::UnacknowledgedSections;

/// What an entry of our table may be used for.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Use {
    /// Its name.
    Name,
    /// Name and value.
    Public,
    /// Name and value, in requests to this host.
    Private(Bytes),
}

/// The limits of a section.
#[derive(Clone, Copy, Debug)]
struct SectionRules {
    /// Entries below this index are the oldest of the table.
    draining: u64,
    /// True if the stream may be blocked.
    may_block: bool,
}

/// The encoder of a connection.
#[derive(Debug)]
pub(crate) struct Encoder {
    table: DynamicTable<Use>,
    buffer: InstructionBuffer,
    /// In the peer's SETTINGS; 0 before they arrive.
    max_entries: u64,
    max_blocked: u64,
    /// The capacity that is to be announced before the first insertion.
    unannounced_capacity: Option<u64>,
    /// Number of insertions that QUIC has accepted.
    sent: u64,
    /// Number of insertions that the peer has acknowledged: its Known Received Count.
    known_received: u64,
    unacknowledged: UnacknowledgedSections,
    /// Host and value.
    last_referer: Option<(Bytes, Bytes)>,
}

impl Encoder {
    /// An encoder that uses no dynamic table, until the peer's SETTINGS allow one.
    pub(crate) fn new() -> Self {
        Self {
            table: DynamicTable::new(),
            buffer: InstructionBuffer::default(),
            max_entries: 0,
            max_blocked: 0,
            unannounced_capacity: None,
            sent: 0,
            known_received: 0,
            unacknowledged: UnacknowledgedSections::default(),
            last_referer: None,
        }
    }

    /// Applies the peer's SETTINGS.
    pub(crate) fn configure(&mut self, max_capacity: u64, max_blocked: u64) {
        self.max_entries = max_entries(max_capacity);
        self.max_blocked = max_blocked;
        let capacity = max_capacity.min(MAX_TABLE_BYTES);
        if capacity > 0 {
            self.table.set_capacity(capacity);
            self.unannounced_capacity = Some(capacity);
        }
    }

    /// All instructions so far were accepted by QUIC.
    pub(crate) fn all_sent(&mut self) {
        self.sent = self.table.insert_count();
    }

    /// Encodes `fields` as a section of `stream`; the peer accepts sections of `limit` bytes. `send` gets the instructions that the section
    /// needs before it, and returns whether QUIC accepted all of them. If it did not, [`all_sent`](Self::all_sent) reports that
    /// later.
    pub(crate) fn encode(
        &mut self,
        stream: u64,
        fields: &[Field],
        limit: u64,
        send: impl FnOnce(Bytes) -> bool,
    ) -> Bytes {
        if self.table.capacity() == 0 || self.unacknowledged.is_full() {
            return self.write(stream, fields, |encoder, field| encoder.static_line(field));
        }
        let crumbs = Some(with_crumbs(fields)).filter(|it| section_len(it) <= limit);
        let fields = crumbs.as_deref().unwrap_or(fields);
        let host = host(fields);
        self.note_referer(fields, &host);
        let quarter = self.table.capacity() / 4;
        let rules = SectionRules {
            draining: self.table.first_not_evicted_by(quarter),
            may_block: self
                .unacknowledged
                .may_block(stream, self.known_received, self.max_blocked),
        };
        // While earlier instructions wait for the peer's flow control, more of them would only queue up.
        if rules.may_block && self.sent == self.table.insert_count() {
            let instructions = self.insert(fields, &host, rules);
            if instructions.is_empty() || send(instructions) {
                self.all_sent();
            }
        }
        self.write(stream, fields, |encoder, field| {
            encoder.line(field, &host, rules)
        })
    }

    /// A referer may be in the table only while it is the last one. Otherwise an attacker could try a range of addresses.
    fn note_referer(&mut self, fields: &[Field], host: &Bytes) {
        for field in fields.iter().filter(|it| it.name == "referer") {
            let referer = Some((host.clone(), field.value.clone()));
            if self.last_referer != referer {
                self.last_referer = referer;
                self.table.for_each_mut(|entry| {
                    if entry.name == "referer" {
                        entry.note = Use::Name;
                    }
                });
            }
        }
    }

    /// Inserts those fields that may be in the table and are not. Returns the instructions.
    fn insert(&mut self, fields: &[Field], host: &Bytes, rules: SectionRules) -> Bytes {
        // The oldest entry that must stay.
        let oldest_reference = self.unacknowledged.oldest_reference();
        let mut first_kept = oldest_reference.min(self.known_received);
        let mut out = BytesMut::new();
        for field in fields {
            let indexing = Indexing::of(field);
            let static_match = find(&field.name, &field.value);
            let (found, value) = match (indexing, static_match) {
                (Indexing::Name, Some(_)) | (_, Some(TableMatch::Field(_))) => continue,
                (Indexing::Name, None) => (self.find_name(&field.name), Bytes::new()),
                _ => (self.find_field(field, indexing, host), field.value.clone()),
            };
            if let Some(index) = found.filter(|index| *index >= rules.draining) {
                first_kept = first_kept.min(index);
                continue;
            }
            let name = match static_match {
                Some(TableMatch::Field(index) | TableMatch::Name(index)) => Ok(index as u64),
                None => Err(self.find_name(&field.name)),
            };
            // The entry that the instruction refers to.
            let source = found.or(name.err().flatten());
            let len = entry_len(&field.name, &value);
            let kept = source.map_or(first_kept, |index| first_kept.min(index));
            // One entry must not replace most of the table.
            if len > self.table.capacity() / 4 * 3 || len > self.table.room_before(kept) {
                continue;
            }
            let relative = |index: u64| self.table.insert_count() - 1 - index;
            let is_same = |index: &u64| {
                let entry = self.table.get(*index);
                entry.is_some_and(|entry| entry.value == value)
            };
            let instruction = match (found.filter(is_same), name) {
                (Some(index), _) => EncoderInstruction::Duplicate(relative(index)),
                (None, Ok(index)) => EncoderInstruction::InsertWithStaticName(index, value.clone()),
                (None, Err(Some(index))) => {
                    EncoderInstruction::InsertWithDynamicName(relative(index), value.clone())
                }
                (None, Err(None)) => EncoderInstruction::Insert(field.name.clone(), value.clone()),
            };
            if let Some(capacity) = self.unannounced_capacity.take() {
                EncoderInstruction::SetCapacity(capacity).write(&mut out);
            }
            instruction.write(&mut out);
            let note = match indexing {
                Indexing::Name => Use::Name,
                Indexing::Public => Use::Public,
                Indexing::Private => Use::Private(host.clone()),
            };
            let inserted = self.table.insert(field.name.clone(), value, note);
            first_kept = inserted.map_or(first_kept, |index| first_kept.min(index));
        }
        out.freeze()
    }

    /// The newest entry that is `field` and may be used for it.
    fn find_field(&self, field: &Field, indexing: Indexing, host: &Bytes) -> Option<u64> {
        let is_usable = |entry: &Entry<Use>| match (&entry.note, indexing) {
            (Use::Public, Indexing::Public) => true,
            (Use::Private(of), Indexing::Private) => of == host,
            _ => false,
        };
        let mut entries = self.table.newest_first();
        let found = entries.find(|(_, entry)| {
            entry.value == field.value && entry.name == field.name && is_usable(entry)
        });
        found.map(|(index, _)| index)
    }

    /// The newest entry with `name`.
    fn find_name(&self, name: &[u8]) -> Option<u64> {
        let mut entries = self.table.newest_first();
        let found = entries.find(|(_, entry)| entry.name == name);
        found.map(|(index, _)| index)
    }

    /// The line of `field` without the dynamic table.
    fn static_line<'a>(&self, field: &'a Field) -> Line<'a> {
        match find(&field.name, &field.value) {
            Some(TableMatch::Field(index)) if !field.is_sensitive => Line::Static(index),
            Some(TableMatch::Field(index) | TableMatch::Name(index)) => {
                Line::StaticName(index, field)
            }
            None => Line::Literal(field),
        }
    }

    /// The shortest line of `field` that `rules` allow.
    fn line<'a>(&self, field: &'a Field, host: &Bytes, rules: SectionRules) -> Line<'a> {
        let is_usable = |index: &u64| {
            let arrives = *index < self.known_received || (rules.may_block && *index < self.sent);
            arrives && *index >= rules.draining
        };
        let line = self.static_line(field);
        if let Line::Static(_) = line {
            return line;
        }
        let indexing = Indexing::of(field);
        let found = self.find_field(field, indexing, host);
        match (found.filter(is_usable), line) {
            (Some(index), _) => Line::Dynamic(index),
            (None, Line::Literal(_)) => match self.find_name(&field.name).filter(is_usable) {
                Some(index) => Line::DynamicName(index, field),
                None => line,
            },
            (None, _) => line,
        }
    }

    fn write<'a>(
        &mut self,
        stream: u64,
        fields: &'a [Field],
        line: impl Fn(&Self, &'a Field) -> Line<'a>,
    ) -> Bytes {
        let lines: Vec<_> = fields.iter().map(|field| line(self, field)).collect();
        let references = || lines.iter().filter_map(Line::reference);
        let required = references().max().map_or(0, |newest| newest + 1);
        if let Some(oldest) = references().min() {
            self.unacknowledged.push(stream, oldest, required);
        }
        write_section(&lines, required, self.max_entries)
    }

    /// Reads bytes of the peer's decoder stream. Returns the number of instructions.
    pub(crate) fn read_instructions(&mut self, bytes: &[u8]) -> Result<u32, InstructionError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let handle = |instruction| self.handle(instruction);
        let too_long = InstructionError::Invalid; // there are no strings
        let count = buffer.read(bytes, DecoderInstruction::read, handle, too_long);
        self.buffer = buffer;
        count
    }

    fn handle(&mut self, instruction: DecoderInstruction) -> Result<(), InstructionError> {
        match instruction {
            DecoderInstruction::SectionAcknowledgment(stream) => {
                let required = self.unacknowledged.acknowledge(stream);
                let required = required.ok_or(InstructionError::Acknowledgment { stream })?;
                self.known_received = self.known_received.max(required);
            }
            DecoderInstruction::StreamCancellation(stream) => {
                self.unacknowledged.cancel(stream);
            }
            DecoderInstruction::InsertCountIncrement(increment) => {
                let unacknowledged = self.table.insert_count() - self.known_received;
                if increment == 0 || increment > unacknowledged {
                    return Err(InstructionError::Increment {
                        increment,
                        unacknowledged,
                    });
                }
                self.known_received += increment;
            }
        }
        Ok(())
    }
}
