//! Answers DNS queries for the configured zones. This is the authoritative server without its sockets.
//!
//! | query | response |
//! | --- | --- |
//! | a name in our zones | its records, also through aliases within our zones |
//! | a type that the name does not have | no records, with the SOA (NODATA, RFC 2308) |
//! | a name that does not exist | NXDOMAIN, with the SOA |
//! | ANY | one small HINFO record (RFC 8482) |
//! | a name outside our zones, another class, AXFR, IXFR | REFUSED |
//! | another operation | NOTIMP |
//! | another version of EDNS than 0 | BADVERS |
//! | not exactly one question, unexpected records, trailing bytes | FORMERR |
//! | no complete header, or a response | no response |
//!
//! The response repeats the question with the same upper and lower case (0x20), also in the names of its records. A response
//! without records is no longer than its query, so a forged sender address gains no amplification.

use hickory_proto::op::{
    Edns, Header, Message, MessageType, Metadata, OpCode, Query, ResponseCode,
};
use hickory_proto::rr::rdata::HINFO;
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};

use crate::zones::{Node, Zones};

/// Largest message over UDP, if the client accepts that size: it fits in one packet on any path (RFC 9715).
pub const MAX_UDP: u16 = 1232;
/// Largest message over UDP to a client that states no size (RFC 1035 §4.2.1).
pub const DEFAULT_UDP: u16 = 512;
/// Largest question that is read. One with a name of 255 octets and EDNS is below 300.
pub const MAX_REQUEST: usize = 4096;
/// Aliases that are followed within our zones.
pub const MAX_ALIASES: usize = 8;
/// Limit of additional records in a question: EDNS, and a signature, which is ignored.
const MAX_ADDITIONALS: u16 = 2;
/// The length of a head.
const HEAD: usize = 12;
/// The bit of a head's third octet that marks a truncated message (RFC 1035 §4.1.1).
const TRUNCATED: u8 = 2;
/// TTL of the response to ANY, seconds (RFC 8482 §4.2 recommends a large one).
const ANY_TTL: u32 = 3600;

/// How a query was received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    /// Datagrams: their sender may be forged.
    Udp,
    /// A connection: its client is genuine, and an answer may have 64 KiB.
    Tcp,
}

/// An answer, with its response code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// The message.
    pub bytes: Vec<u8>,
    /// Its response code.
    pub code: ResponseCode,
    /// Whether the client has to request the rest over TCP.
    pub truncated: bool,
}

/// Answers `request` from `zones`; `None` if no response may be sent.
#[must_use]
pub fn answer(zones: &Zones, request: &[u8], transport: Transport) -> Option<Answer> {
    let parsed = match read(request)? {
        Ok(parsed) => parsed,
        Err(fault) => return Some(fault.answer()),
    };
    let mut message = parsed.response();
    let limit = parsed.limit(transport);
    if let Err(code) = parsed.check_supported() {
        message.metadata.response_code = code;
    } else {
        fill(&mut message, zones, &parsed.query);
    }
    Some(fit(message, limit))
}

/// A truncated response without records, so that a client that [`rate_limit`](crate::rate_limit) limits retries over TCP.
#[must_use]
pub fn answer_truncated(request: &[u8]) -> Option<Answer> {
    match read(request)? {
        Ok(parsed) => {
            let mut message = parsed.response();
            message.metadata.truncation = true;
            Some(fit(message, parsed.limit(Transport::Udp)))
        }
        Err(fault) => Some(fault.answer()),
    }
}

/// A question that could be read.
struct ParsedQuery {
    head: Metadata,
    query: Query,
    edns: Option<Edns>,
}

/// A question that could not be read.
struct QueryError {
    head: Metadata,
    code: ResponseCode,
}

/// Parses `request`; `None` if no response may be sent.
fn read(request: &[u8]) -> Option<Result<ParsedQuery, QueryError>> {
    let mut decoder = BinDecoder::new(request);
    let Header {
        metadata: head,
        counts,
    } = Header::read(&mut decoder).ok()?;
    if head.message_type != MessageType::Query {
        return None;
    }
    let fault = |code| Some(Err(QueryError { head, code }));
    if head.op_code != OpCode::Query {
        return fault(ResponseCode::NotImp);
    }
    // The counts are checked first: the parser allocates memory for the records that the header announces.
    let expected_counts = (1, 0, 0);
    if (counts.queries, counts.answers, counts.authorities) != expected_counts
        || counts.additionals > MAX_ADDITIONALS
        || request.len() > MAX_REQUEST
    {
        return fault(ResponseCode::FormErr);
    }
    let Ok(query) = Query::read(&mut decoder) else {
        return fault(ResponseCode::FormErr);
    };
    // A compression pointer in the only question would point into the header, and make the answer longer than the query.
    let plain = query.name().iter().map(|label| label.len() + 1);
    if decoder.index() != HEAD + plain.sum::<usize>() + 1 + 4 {
        return fault(ResponseCode::FormErr);
    }
    let additionals = usize::from(counts.additionals);
    let rest = Message::read_records(&mut decoder, additionals, true, head.op_code);
    match rest {
        Ok((_, edns, _)) if decoder.is_empty() => Some(Ok(ParsedQuery { head, query, edns })),
        _ => fault(ResponseCode::FormErr),
    }
}

impl QueryError {
    /// A head and nothing else.
    fn answer(&self) -> Answer {
        let mut message = Message::response(self.head.id, self.head.op_code);
        message.metadata = Metadata::response_from_request(&self.head);
        message.metadata.response_code = self.code;
        fit(message, DEFAULT_UDP)
    }
}

impl ParsedQuery {
    /// An answer without records.
    fn response(&self) -> Message {
        let mut message = Message::response(self.head.id, self.head.op_code);
        message.metadata = Metadata::response_from_request(&self.head);
        message.add_query(self.query.clone());
        if let Some(query_edns) = &self.edns {
            let mut edns = Edns::new();
            edns.set_max_payload(MAX_UDP);
            edns.set_dnssec_ok(query_edns.flags().dnssec_ok); // RFC 3225 §3
            message.set_edns(edns);
        }
        message
    }

    /// Bytes that an answer may have.
    fn limit(&self, transport: Transport) -> u16 {
        match transport {
            Transport::Tcp => u16::MAX,
            Transport::Udp => self.edns.as_ref().map_or(DEFAULT_UDP, |edns| {
                edns.max_payload().clamp(DEFAULT_UDP, MAX_UDP)
            }),
        }
    }

    fn check_supported(&self) -> Result<(), ResponseCode> {
        if self.edns.as_ref().is_some_and(|edns| edns.version() > 0) {
            return Err(ResponseCode::BADVERS);
        }
        let transfer = matches!(self.query.query_type(), RecordType::AXFR | RecordType::IXFR);
        if self.query.query_class() != DNSClass::IN || transfer {
            return Err(ResponseCode::Refused);
        }
        Ok(())
    }
}

/// Answers `query` from `zones`: adds records to `message`, and sets its response code.
fn fill(message: &mut Message, zones: &Zones, query: &Query) {
    let kind = query.query_type();
    let mut name = query.name().clone();
    for alias in 0..=MAX_ALIASES {
        let Some(zone) = zones.zone_of(&name) else {
            if alias == 0 {
                message.metadata.response_code = ResponseCode::Refused;
            }
            return; // the client follows an alias to elsewhere
        };
        message.metadata.authoritative = true;
        let Some(node) = zones.find(zone, &name) else {
            message.metadata.response_code = ResponseCode::NXDomain;
            message.add_authority(zone.soa.clone());
            return;
        };
        if kind == RecordType::ANY {
            let little = HINFO::new("RFC8482".to_owned(), String::new());
            let little = Record::from_rdata(name, ANY_TTL, RData::HINFO(little));
            message.add_answer(little);
            return;
        }
        let before = message.answers.len();
        message.add_answers(records(node, kind, &name));
        if message.answers.len() > before {
            add_servers(message, zones, kind);
            return;
        }
        let Some(aliased) = records(node, RecordType::CNAME, &name).next() else {
            message.add_authority(zone.soa.clone());
            return;
        };
        let RData::CNAME(target) = &aliased.data else {
            unreachable!("not a CNAME record: {aliased:?}")
        };
        name = target.0.clone();
        message.add_answer(aliased);
    }
    // The configuration has a loop of aliases, or too many in a chain: the answer is SERVFAIL without records.
    message.metadata.response_code = ResponseCode::ServFail;
    message.answers.clear();
}

/// The records of one type, with `name` as their owner: `node` may be a wildcard.
fn records<'a>(
    node: &'a Node,
    kind: RecordType,
    name: &'a Name,
) -> impl Iterator<Item = Record> + 'a {
    node.of(kind).map(|record| {
        let mut record = record.clone();
        record.name.clone_from(name);
        record
    })
}

/// Adds to an answer of NS records the addresses of those servers that are in our zones.
fn add_servers(message: &mut Message, zones: &Zones, kind: RecordType) {
    if kind != RecordType::NS {
        return;
    }
    let servers = message
        .answers
        .iter()
        .filter_map(|record| match &record.data {
            RData::NS(server) => Some(server.0.clone()),
            _ => None,
        });
    for server in servers.collect::<Vec<_>>() {
        let zone = zones.zone_of(&server);
        if let Some(node) = zone.and_then(|zone| zones.find(zone, &server)) {
            message.add_additionals(records(node, RecordType::A, &server));
            message.add_additionals(records(node, RecordType::AAAA, &server));
        }
    }
}

/// Encodes `message` in at most `limit` bytes: first without optional records, then without any records.
fn fit(mut message: Message, limit: u16) -> Answer {
    let mut bytes = write(&message);
    // The codec itself truncates a message above 64 KiB, within a record, and sets the bit in the head.
    let fits = |bytes: &[u8]| bytes.len() <= usize::from(limit) && bytes[2] & TRUNCATED == 0;
    if !fits(&bytes) && !message.additionals.is_empty() {
        message.additionals.clear();
        bytes = write(&message);
    }
    if !fits(&bytes) {
        message = message.truncate();
        bytes = write(&message);
    }
    Answer {
        bytes,
        code: message.metadata.response_code,
        truncated: message.metadata.truncation,
    }
}

fn write(message: &Message) -> Vec<u8> {
    match message.to_vec() {
        Ok(bytes) => bytes,
        Err(error) => {
            unreachable!("a DNS response can be encoded: {error}, {message:?}")
        }
    }
}
