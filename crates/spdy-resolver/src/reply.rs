//! A question to a recursive server, and the contents of its reply (RFC 1035 §7.3, RFC 2308). Pure.

use std::net::IpAddr;
use std::time::Duration;

use hickory_proto::op::{Edns, Header, Message, MessageType, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};
use rand_chacha::rand_core::Rng;

use crate::cache::NegativeAnswer;
use crate::spoof_budget::Mismatch;

/// Largest reply over UDP that a query permits: it fits in one packet on any path (RFC 9715).
const MAX_UDP_REPLY_BYTES: u16 = 1232;
/// Largest TTL (RFC 2181 §8).
const MAX_TTL: u32 = 0x7fff_ffff;
/// Addresses of one type that are used from a reply; further ones are ignored.
pub(crate) const MAX_ADDRESSES: usize = 64;

/// A question as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    id: u16,
    query: Query,
}

impl Question {
    /// A question for addresses of `kind`. `random` draws the ID and the case of each letter of the name. A reply must repeat both, and
    /// an attacker that cannot see the question must guess them (draft-vixie-dnsext-dns0x20).
    pub(crate) fn new(name: &Name, kind: RecordType, random: &mut impl Rng) -> Self {
        Self {
            id: (random.next_u32() & 0xffff) as u16,
            query: Query::query(in_random_case(name, random), kind),
        }
    }

    /// The message: recursion desired, and replies of up to [`MAX_UDP_REPLY_BYTES`] permitted.
    pub(crate) fn message(&self) -> Vec<u8> {
        let mut message = Message::query();
        message.metadata.id = self.id;
        message.metadata.recursion_desired = true;
        message.add_query(self.query.clone());
        let mut edns = Edns::new();
        edns.set_max_payload(MAX_UDP_REPLY_BYTES);
        message.set_edns(edns);
        match message.to_vec() {
            Ok(bytes) => bytes,
            Err(error) => unreachable!("a DNS query can be encoded: {error}, {message:?}"),
        }
    }

    /// Reads a reply to this question that came over `transport`.
    ///
    /// # Errors
    ///
    /// `bytes` are a reply to another question, or not a reply.
    pub(crate) fn reply(&self, bytes: &[u8], transport: QueryTransport) -> Result<Reply, Mismatch> {
        // The head first: a forged reply costs no further parsing.
        let head = Header::read(&mut BinDecoder::new(bytes)).map_err(|_| Mismatch::Header)?;
        if head.metadata.id != self.id || head.metadata.message_type != MessageType::Response {
            return Err(Mismatch::Header);
        }
        if head.counts.queries != 1 {
            return Err(Mismatch::Question);
        }
        let Ok(message) = Message::from_vec(bytes) else {
            // A truncated message may end anywhere.
            let cut = head.metadata.truncation.then_some(Reply::Truncated);
            return cut.ok_or(Mismatch::Question);
        };
        let found = message.queries.first().ok_or(Mismatch::Question)?;
        let query = &self.query;
        if !found.name().eq_ignore_root(query.name())
            || found.query_type() != query.query_type()
            || found.query_class() != query.query_class()
        {
            return Err(Mismatch::Question);
        }
        if transport == QueryTransport::Udp && !found.name().eq_ignore_root_case(query.name()) {
            return Err(Mismatch::Case);
        }
        if message.metadata.truncation {
            return Ok(Reply::Truncated);
        }
        Ok(match message.metadata.response_code {
            ResponseCode::NoError | ResponseCode::NXDomain => self.follow(&message),
            code => Reply::Failed(code),
        })
    }

    /// Follows the aliases within the reply to addresses.
    fn follow(&self, message: &Message) -> Reply {
        let mut name = self.query.name().clone();
        let mut ttl = u32::MAX;
        // The number of steps is limited, so that a loop of aliases ends.
        let mut through = Vec::new();
        for _ in 0..=message.answers.len() {
            let of_name = || {
                let answers = message.answers.iter();
                let class = self.query.query_class();
                answers
                    .filter(move |record| record.dns_class == class)
                    .filter(|record| record.name.eq_ignore_root(&name))
            };
            let addresses = of_name().filter_map(|record| {
                let address = match (&record.data, self.query.query_type()) {
                    (RData::A(address), RecordType::A) => IpAddr::V4(address.0),
                    (RData::AAAA(address), RecordType::AAAA) => IpAddr::V6(address.0),
                    _ => return None,
                };
                Some((address, record.ttl))
            });
            let found: Vec<(IpAddr, u32)> = addresses.take(MAX_ADDRESSES).collect();
            if !found.is_empty() {
                let ttl = found.iter().map(|(_, ttl)| *ttl).fold(ttl, u32::min);
                return Reply::Addresses {
                    addresses: found.into_iter().map(|(address, _)| address).collect(),
                    ttl: seconds(ttl),
                    through,
                };
            }
            let mut targets = of_name().filter_map(|record| match &record.data {
                RData::CNAME(target) => Some((target.0.clone(), record.ttl)),
                _ => None,
            });
            let Some((target, alias_ttl)) = targets.next() else {
                let nothing = match message.metadata.response_code {
                    ResponseCode::NXDomain => NegativeAnswer::Name,
                    _ => NegativeAnswer::Address,
                };
                // Without an SOA, the last alias leads out of this reply, and needs another query.
                let soa = message
                    .authorities
                    .iter()
                    .find_map(|record| match &record.data {
                        RData::SOA(soa) => Some(record.ttl.min(soa.minimum)),
                        _ => None,
                    });
                return match soa {
                    None if !through.is_empty() && nothing == NegativeAnswer::Address => {
                        Reply::Alias {
                            ttl: seconds(ttl),
                            through,
                        }
                    }
                    _ => Reply::Nothing {
                        nothing,
                        ttl: seconds(soa.unwrap_or(0).min(ttl)),
                    },
                };
            };
            through.push(target.clone());
            name = target;
            ttl = ttl.min(alias_ttl);
        }
        Reply::AliasLoop
    }
}

/// How a question is sent. Over TCP an attacker off the path cannot reply, so the case of the name does not count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum QueryTransport {
    Udp,
    Tcp,
}

/// `name` with a random case for each letter.
fn in_random_case(name: &Name, random: &mut impl Rng) -> Name {
    let mut letter = |byte: u8| match byte.is_ascii_alphabetic() && random.next_u32() & 1 == 1 {
        true => byte ^ 0x20,
        false => byte,
    };
    let labels = name.iter();
    let labels = labels.map(|label| label.iter().copied().map(&mut letter).collect::<Vec<u8>>());
    let labels: Vec<Vec<u8>> = labels.collect();
    match Name::from_labels(labels.iter().map(Vec::as_slice)) {
        Ok(name) => name,
        Err(error) => unreachable!("{name} has labels of the same lengths: {error}"),
    }
}

/// TTLs with their highest bit set count as 0 (RFC 2181 §8).
fn seconds(ttl: u32) -> Duration {
    let ttl = if ttl > MAX_TTL { 0 } else { ttl };
    Duration::from_secs(ttl.into())
}

/// The contents of a reply.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Reply {
    Addresses {
        addresses: Vec<IpAddr>,
        ttl: Duration,
        /// Targets of the aliases that lead to them.
        through: Vec<Name>,
    },
    /// Aliases to a name that needs another query: the last of them.
    Alias { ttl: Duration, through: Vec<Name> },
    Nothing {
        nothing: NegativeAnswer,
        ttl: Duration,
    },
    /// The aliases form a loop.
    AliasLoop,
    /// The reply was truncated.
    Truncated,
    /// The server returned an error.
    Failed(ResponseCode),
}

#[cfg(test)]
mod tests {
    use hickory_proto::rr::rdata::CNAME;
    use hickory_proto::rr::{DNSClass, Record};
    use proptest::prelude::*;
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    fn question() -> Question {
        Question::new(&name("a.test."), RecordType::A, &mut random(7))
    }

    fn random(seed: u64) -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(seed)
    }

    fn reply(question: &Question, aliases: &[(&str, &str)]) -> Result<Reply, Mismatch> {
        let mut message = Message::from_vec(&question.message()).unwrap();
        message.metadata.message_type = MessageType::Response;
        for (from, to) in aliases {
            let data = RData::CNAME(CNAME(name(to)));
            message.add_answer(Record::from_rdata(name(from), 60, data));
        }
        question.reply(&message.to_vec().unwrap(), QueryTransport::Udp)
    }

    #[test]
    fn records_of_another_class_are_none_of_an_answer() {
        let question = question();
        for (class, is_one) in [(DNSClass::IN, true), (DNSClass::CH, false)] {
            let mut message = Message::from_vec(&question.message()).unwrap();
            message.metadata.message_type = MessageType::Response;
            let data = RData::A(std::net::Ipv4Addr::new(192, 0, 2, 1).into());
            let mut record = Record::from_rdata(name("a.test."), 60, data);
            record.dns_class = class;
            message.add_answer(record);
            let reply = question.reply(&message.to_vec().unwrap(), QueryTransport::Udp);
            assert_eq!(
                matches!(reply, Ok(Reply::Addresses { .. })),
                is_one,
                "{class}: {reply:?}"
            );
        }
    }

    #[test]
    fn aliases_are_followed_in_whatever_order_they_stand_and_circles_end() {
        let question = question();
        let through = ["b.test.", "c.test."].map(name).to_vec();
        let ttl = Duration::from_secs(60);
        assert_eq!(
            reply(&question, &[("B.test.", "c.test."), ("a.test.", "b.test.")]),
            Ok(Reply::Alias { ttl, through })
        );
        for circle in [
            &[("a.test.", "a.test.")][..],
            &[("a.test.", "b.test."), ("b.test.", "a.test.")],
        ] {
            assert_eq!(reply(&question, circle), Ok(Reply::AliasLoop), "{circle:?}");
        }
    }

    #[test]
    fn a_cut_reply_is_cut_however_it_ends() {
        let question = question();
        let mut cut = question.message();
        cut[2] |= 0x82; // a response, and truncated
        for len in 12..=cut.len() {
            let reply = question.reply(&cut[..len], QueryTransport::Udp);
            assert_eq!(reply, Ok(Reply::Truncated), "{len}");
        }
    }

    #[test]
    fn each_question_has_a_new_id_and_case() {
        let mut random = random(1);
        let long = name("abcdefgh-0123.origin.test.");
        let drawn: std::collections::BTreeSet<_> = (0..1000)
            .map(|_| Question::new(&long, RecordType::A, &mut random))
            .map(|question| (question.id, question.query.name().to_ascii()))
            .collect();
        assert_eq!(drawn.len(), 1000);
        let names: std::collections::BTreeSet<_> = drawn.iter().map(|(_, name)| name).collect();
        assert!(names.len() > 990, "{} of 2^18 cases in 1,000", names.len());
        assert!(
            names
                .iter()
                .all(|name| name.eq_ignore_ascii_case(&long.to_ascii()))
        );
    }

    #[test]
    fn a_reply_in_another_case_counts_over_tcp_alone() {
        let question = question();
        let mut message = Message::from_vec(&question.message()).unwrap();
        message.metadata.message_type = MessageType::Response;
        let text = question.query.name().to_ascii();
        let other = match text.strip_prefix('a') {
            Some(rest) => format!("A{rest}"),
            None => format!("a{}", &text[1..]),
        };
        message.queries[0].name = name(&other);
        let bytes = message.to_vec().unwrap();
        assert_eq!(
            question.reply(&bytes, QueryTransport::Udp),
            Err(Mismatch::Case)
        );
        assert!(question.reply(&bytes, QueryTransport::Tcp).is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..29_usize) {
            let question = question();
            let mut near = question.message();
            near[2] |= 0x80;
            near.splice(at.min(near.len()).., bytes.iter().copied());
            let _ = question.reply(&near, QueryTransport::Udp);
            let _ = question.reply(&bytes, QueryTransport::Tcp);
        }
    }
}
