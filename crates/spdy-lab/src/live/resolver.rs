//! Name lookups in real time: the resolver behind the link, and its client.
//!
//! Messages are those of RFC 1035, with one question each. Our own queries have no EDNS: they have the length that virtual time
//! counts (`spdy_sim::network::dns`), and are repeated after the same times. The resolver has the hosts of one page. For such a host
//! it responds with the address, and for any other type with no records. For any other name it responds with NXDOMAIN, and stores the
//! name.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hickory_proto::op::{Edns, Message, MessageType, Metadata, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use parking_lot::Mutex;
use spdy::runtime::Runtime;
use spdy_sim::network::dns::{self, query_with_retries};
use tokio::net::UdpSocket;

/// The port of resolvers.
pub const PORT: u16 = 53;
/// TTL of a response in seconds; longer than any load.
const TTL: u32 = 7_200;
/// Maximum length of a message without EDNS.
const MAX_MESSAGE: usize = 512;
/// Maximum number of stored unknown names.
const MAX_UNKNOWN: usize = 1_000;

/// A resolver's names with their addresses, and the unknown names that were requested; clones are the same resolver.
#[derive(Clone, Debug, Default)]
pub struct Resolver {
    addresses: Arc<BTreeMap<String, Ipv4Addr>>,
    unknown: Arc<Mutex<BTreeSet<String>>>,
}

impl Resolver {
    /// Creates a resolver of these hosts.
    #[must_use]
    pub fn new(addresses: BTreeMap<String, Ipv4Addr>) -> Self {
        Self {
            addresses: Arc::new(addresses),
            ..Self::default()
        }
    }

    /// The address of `host`.
    #[must_use]
    pub fn address(&self, host: &str) -> Option<Ipv4Addr> {
        self.addresses.get(&dns::name(host)).copied()
    }

    /// Unknown names that were requested, sorted; at most a thousand.
    #[must_use]
    pub fn unknown(&self) -> Vec<String> {
        let unknown = self.unknown.lock();
        unknown.iter().cloned().collect()
    }

    /// Clears them.
    pub(crate) fn clear_unknown(&self) {
        let mut unknown = self.unknown.lock();
        unknown.clear();
    }

    /// The response to `question`; `None` if it is not a valid question.
    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let request = Message::from_vec(question).ok()?;
        if request.metadata.message_type != MessageType::Query {
            return None;
        }
        let mut answer = Message::response(request.metadata.id, request.metadata.op_code);
        answer.metadata = Metadata::response_from_request(&request.metadata);
        answer.metadata.recursion_available = true;
        answer.metadata.authoritative = true;
        for query in &request.queries {
            let name = query.name().to_ascii();
            let host = dns::name(&name);
            match self.address(&host) {
                Some(address) if query.query_type() == RecordType::A => {
                    let address = RData::A(address.into());
                    answer.add_answer(Record::from_rdata(query.name().clone(), TTL, address));
                }
                Some(_) => {}
                None => {
                    answer.metadata.response_code = ResponseCode::NXDomain;
                    let mut unknown = self.unknown.lock();
                    if unknown.len() < MAX_UNKNOWN {
                        unknown.insert(host);
                    }
                }
            }
        }
        answer.add_queries(request.queries);
        if request.edns.is_some() {
            answer.set_edns(Edns::new());
        }
        answer.to_vec().ok()
    }

    /// Responds to queries on `socket`, until it fails.
    pub(crate) async fn serve(self, socket: UdpSocket) -> io::Result<()> {
        let mut question = [0; MAX_MESSAGE];
        loop {
            let (len, from) = socket.recv_from(&mut question).await?;
            if let Some(answer) = self.answer(&question[..len]) {
                socket.send_to(&answer, from).await?;
            }
        }
    }
}

/// Queries `resolver` for the address of `host`, as often as in virtual time.
pub(crate) async fn lookup(
    runtime: &dyn Runtime,
    resolver: SocketAddr,
    host: &str,
) -> io::Result<Vec<IpAddr>> {
    let name = Name::from_ascii(host).map_err(|_| dns::unknown(host))?;
    let mut request = Message::query();
    request.metadata.recursion_desired = true;
    request.add_query(Query::query(name, RecordType::A));
    let id = request.metadata.id;
    let request = request.to_vec().map_err(io::Error::other)?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    socket.connect(resolver).await?;
    socket.writable().await?; // otherwise the first send may fail
    let answer = Box::pin(read_answer(&socket, id));
    let send_query = || {
        let _ = socket.try_send(&request); // an unsent query counts as lost
    };
    match query_with_retries(runtime, host, send_query, answer).await?? {
        addresses if addresses.is_empty() => Err(dns::unknown(host)),
        addresses => Ok(addresses),
    }
}

/// The addresses in the first response to the question `id`.
async fn read_answer(socket: &UdpSocket, id: u16) -> io::Result<Vec<IpAddr>> {
    let mut answer = [0; MAX_MESSAGE];
    loop {
        let len = socket.recv(&mut answer).await?;
        let Ok(message) = Message::from_vec(&answer[..len]) else {
            continue;
        };
        if message.metadata.id == id && message.metadata.message_type == MessageType::Response {
            let addresses = message
                .answers
                .iter()
                .filter_map(|record| match record.data {
                    RData::A(address) => Some(IpAddr::V4(address.into())),
                    _ => None,
                });
            return Ok(addresses.collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::clock::{LiveRuntime, block_on};

    const UDP_AND_IP: usize = 28;

    fn names() -> Resolver {
        let host = ("www.example.com".to_owned(), Ipv4Addr::new(192, 0, 2, 1));
        Resolver::new(BTreeMap::from([host]))
    }

    fn question(host: &str, kind: RecordType) -> Vec<u8> {
        let mut message = Message::query();
        message.add_query(Query::query(Name::from_ascii(host).expect("a name"), kind));
        message.to_vec().expect("it can be written")
    }

    #[test]
    fn messages_are_as_long_as_virtual_time_counts_them() {
        let request = question("www.example.com", RecordType::A);
        assert_eq!(
            request.len() + UDP_AND_IP,
            dns::query_len_bytes("www.example.com")
        );
        let answer = names().answer(&request).expect("it is a question");
        let address = [IpAddr::from([192, 0, 2, 1])];
        let expected = dns::answer_len_bytes("www.example.com", &address);
        assert_eq!(answer.len() + UDP_AND_IP, expected);
    }

    #[test]
    fn hosts_of_the_page_resolve_and_other_names_are_recorded() {
        let names = names();
        let resolve = |host: &str, kind| {
            let answer = names.answer(&question(host, kind)).expect("a question");
            let answer = Message::from_vec(&answer).expect("an answer");
            (answer.metadata.response_code, answer.answers.len())
        };
        assert_eq!(
            resolve("WWW.example.com.", RecordType::A),
            (ResponseCode::NoError, 1)
        );
        assert_eq!(
            resolve("www.example.com", RecordType::AAAA),
            (ResponseCode::NoError, 0)
        );
        assert_eq!(
            resolve("other.example.com", RecordType::A),
            (ResponseCode::NXDomain, 0)
        );
        assert_eq!(names.unknown(), ["other.example.com"]);
        assert_eq!(names.answer(b"query without a question"), None);
    }

    #[test]
    fn a_query_over_a_socket_gets_an_address_or_nxdomain() {
        let looked_up = block_on(async {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let resolver = socket.local_addr()?;
            tokio::spawn(names().serve(socket));
            let runtime = LiveRuntime::start();
            let found = lookup(&runtime, resolver, "www.example.com").await?;
            let unknown = lookup(&runtime, resolver, "unknown.test").await;
            Ok((found, unknown.map_err(|error| error.kind())))
        });
        let (found, unknown) = looked_up.expect("there is a socket");
        assert_eq!(found, [IpAddr::from([192, 0, 2, 1])]);
        assert_eq!(unknown, Err(io::ErrorKind::NotFound));
    }
}
