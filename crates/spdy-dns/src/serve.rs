//! The authoritative server's sockets: UDP, and TCP for what does not fit (RFC 7766).
//!
//! ```text
//!  UDP  datagram ──▶ rate_limit.rs ──▶ authoritative.rs ──▶ datagram, from the address that was queried
//!  TCP  length, question ──▶ authoritative.rs ──▶ length, answer      one after the other, with a limit per connection
//! ```
//!
//! `spdy-net` accepts the connections, within the limits of [`ServeLimits::admission`]; the other limits of a connection are also in
//! [`ServeLimits`]. The [`Runtime`](spdy::runtime::Runtime) supplies the time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{Either, select};
use hickory_proto::op::ResponseCode;
use parking_lot::Mutex;
use spdy::runtime::SharedRuntime;
use spdy_net::admission::{Admission, AdmissionLimits, Conduct};
use spdy_net::datagrams::{DatagramPeer, Datagrams, MAX_RECEIVE_BYTES};
use spdy_net::latch::Latch;
use spdy_net::limit::LimitHits;
use spdy_net::listen::sockets::Sockets;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::network::{BoxIo, DatagramSocket, SystemNetwork};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::authoritative;
use crate::authoritative::{Answer, MAX_REQUEST, Transport};
use crate::rate_limit::{RateLimiter, RateLimits, Verdict};
use crate::zones::SharedZones;

/// How long, and for how many bytes, a connection is still read after its last answer.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 256 * 1024;
/// Delay after a receive that failed.
const RECEIVE_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Limits for clients.
#[derive(Clone, Copy, Debug)]
pub struct ServeLimits {
    /// Answers by UDP.
    pub rate: RateLimits,
    /// TCP connections. Default: 1000 at once, 16 of one address, 50 new ones a second of one address.
    pub admission: AdmissionLimits,
    /// Timeout of each step on a connection: to wait for a question, to receive it, to send an answer. Default 10 s.
    pub idle_timeout: Duration,
    /// Questions over one connection; then it is closed. Default 1000.
    pub questions: u32,
    /// How long open connections have to end after the stop. Default 1 s.
    pub drain_timeout: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        let mut admission = AdmissionLimits::default();
        admission.connections = 1000;
        admission.evict_idle = false; // a connection is idle for ten seconds at most
        admission.per_address = 16;
        admission.rate = 50;
        Self {
            rate: RateLimits::default(),
            admission,
            idle_timeout: Duration::from_secs(10),
            questions: 1000,
            drain_timeout: Duration::from_secs(1),
        }
    }
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DnsStats {
    /// Answers with or without records: NOERROR.
    pub answered: u64,
    /// There is no such name: NXDOMAIN.
    pub no_such_name: u64,
    /// Not in our zones, another class, or a zone transfer: REFUSED.
    pub refused: u64,
    /// Error responses: FORMERR, NOTIMP, BADVERS, SERVFAIL.
    pub faults: u64,
    /// Messages that may not be answered.
    pub unanswered: u64,
    /// Answers that did not fit.
    pub truncated: u64,
    /// Sent to TCP by the rate limit.
    pub slipped: u64,
    /// Not answered by the rate limit.
    pub dropped: u64,
}

impl DnsStats {
    /// The number of questions by outcome, for metrics. Each question is counted once; truncated answers are included in the
    /// answered ones.
    #[must_use]
    pub fn by_outcome(&self) -> [(&'static str, u64); 7] {
        [
            ("noerror", self.answered),
            ("nxdomain", self.no_such_name),
            ("refused", self.refused),
            ("error", self.faults),
            ("ignored", self.unanswered),
            ("rate-slipped", self.slipped),
            ("rate-dropped", self.dropped),
        ]
    }
}

/// Counters, shared by all sockets.
#[derive(Debug, Default)]
struct Counters {
    answered: AtomicU64,
    no_such_name: AtomicU64,
    refused: AtomicU64,
    faults: AtomicU64,
    unanswered: AtomicU64,
    truncated: AtomicU64,
    slipped: AtomicU64,
    dropped: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counters {
    fn answer(&self, answer: Option<&Answer>) {
        let Some(answer) = answer else {
            return count(&self.unanswered);
        };
        if answer.truncated {
            count(&self.truncated);
        }
        count(match answer.code {
            ResponseCode::NoError => &self.answered,
            ResponseCode::NXDomain => &self.no_such_name,
            ResponseCode::Refused => &self.refused,
            _ => &self.faults,
        });
    }
}

/// Reads what a server has done. Clones read the same one.
#[derive(Clone, Debug, Default)]
pub struct StatsReader(Arc<Counters>);

impl StatsReader {
    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> DnsStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.0;
        DnsStats {
            answered: read(&counters.answered),
            no_such_name: read(&counters.no_such_name),
            refused: read(&counters.refused),
            faults: read(&counters.faults),
            unanswered: read(&counters.unanswered),
            truncated: read(&counters.truncated),
            slipped: read(&counters.slipped),
            dropped: read(&counters.dropped),
        }
    }
}

/// A server that has its sockets.
#[derive(Debug)]
pub struct DnsServer {
    /// The UDP socket, and the TCP listener for the same address.
    pairs: Vec<(DatagramSocket, Option<Listener>)>,
    service: Service,
}

/// What the sockets share.
#[derive(Clone, Debug)]
struct Service {
    zones: SharedZones,
    limits: ServeLimits,
    runtime: SharedRuntime,
    counters: Arc<Counters>,
    hits: LimitHits,
}

impl DnsServer {
    /// Binds UDP and TCP at each of `addresses`; port 0 lets the system choose one for both. `[::]` serves IPv4 too where
    /// the system does so. Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// An address is in use, not ours, or not permitted.
    pub fn bind(
        addresses: &[SocketAddr],
        zones: SharedZones,
        limits: ServeLimits,
        runtime: SharedRuntime,
    ) -> io::Result<Self> {
        Self::bind_or_inherit(addresses, &mut Sockets::default(), zones, limits, runtime)
    }

    /// Like [`bind`](Self::bind), but uses those of `sockets` that have these addresses.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    pub fn bind_or_inherit(
        addresses: &[SocketAddr],
        sockets: &mut Sockets,
        zones: SharedZones,
        limits: ServeLimits,
        runtime: SharedRuntime,
    ) -> io::Result<Self> {
        let pairs = addresses.iter().map(|&address| bind_pair(address, sockets));
        let pairs = pairs.collect::<io::Result<_>>()?;
        Ok(Self::over(pairs, zones, limits, runtime))
    }

    /// A server over datagram sockets of any network, without TCP: a response that does not fit is truncated, and cannot be requested again.
    #[must_use]
    pub fn over_datagrams(
        sockets: Vec<DatagramSocket>,
        zones: SharedZones,
        limits: ServeLimits,
        runtime: SharedRuntime,
    ) -> Self {
        let pairs = sockets.into_iter().map(|socket| (socket, None));
        Self::over(pairs.collect(), zones, limits, runtime)
    }

    fn over(
        pairs: Vec<(DatagramSocket, Option<Listener>)>,
        zones: SharedZones,
        limits: ServeLimits,
        runtime: SharedRuntime,
    ) -> Self {
        let service = Service {
            zones,
            limits,
            runtime,
            counters: Arc::default(),
            hits: LimitHits::default(),
        };
        Self { pairs, service }
    }

    /// Counts in `hits` the clients that reach a limit of TCP connections.
    #[must_use]
    pub fn with_limit_hits(mut self, hits: &LimitHits) -> Self {
        self.service.hits = hits.clone();
        self
    }

    /// Its listening addresses, the same for UDP and TCP.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let sockets = self.pairs.iter();
        sockets
            .filter_map(|(socket, _)| socket.local_addr().ok())
            .collect()
    }

    /// A handle that reads its counters while it runs.
    #[must_use]
    pub fn stats(&self) -> StatsReader {
        StatsReader(self.service.counters.clone())
    }

    /// Answers until `stop`; then open connections have `drain_timeout` to end.
    pub async fn run(self, stop: Latch) {
        let Self { pairs, service } = self;
        let admission = Admission::new(service.limits.admission, service.hits.clone());
        let mut options = ListenOptions::default();
        options.admission = admission;
        options.drain_timeout = service.limits.drain_timeout;
        // The limit counts a network's answers over all sockets.
        let limiter = Arc::new(Mutex::new(RateLimiter::new(service.limits.rate)));
        let served = pairs.into_iter().map(|(socket, listener)| {
            let (service, limiter) = (service.clone(), limiter.clone());
            let (options, stop) = (options.clone(), stop.clone());
            async move {
                let over_udp = service
                    .clone()
                    .serve_datagrams(socket, limiter, stop.clone());
                let Some(listener) = listener else {
                    return over_udp.await;
                };
                let stop_tcp = stop.clone();
                let over_tcp = listener.run(options, stop, move |io, from, _| {
                    service
                        .clone()
                        .serve_connection(io, from.address, stop_tcp.clone())
                });
                futures_util::future::join(over_udp, over_tcp).await;
            }
        });
        futures_util::future::join_all(served).await;
    }
}

fn bind_pair(
    address: SocketAddr,
    sockets: &mut Sockets,
) -> io::Result<(DatagramSocket, Option<Listener>)> {
    let (listener, socket) = sockets.tcp_and_udp(address)?;
    let socket = SystemNetwork::datagrams_from_std(socket)?;
    Ok((socket, Some(listener)))
}

impl Service {
    async fn serve_datagrams(
        self,
        socket: DatagramSocket,
        limiter: Arc<Mutex<RateLimiter>>,
        stop: Latch,
    ) {
        let mut datagrams = Datagrams::new(socket, MAX_RECEIVE_BYTES);
        let mut stopped = stop.wait();
        loop {
            let received = {
                let receiving = std::pin::pin!(datagrams.receive());
                match select(stopped, receiving).await {
                    Either::Left(_) => return,
                    Either::Right((received, waiting)) => {
                        stopped = waiting;
                        received.map(|(request, from)| {
                            (self.answer_datagram(&limiter, request, from), from)
                        })
                    }
                }
            };
            let (answer, to) = match received {
                Ok(received) => received,
                Err(error) => {
                    tracing::debug!(%error, "cannot receive a datagram");
                    let rest = self.runtime.now() + RECEIVE_RETRY_DELAY;
                    self.runtime.sleep_until(rest).await;
                    continue;
                }
            };
            let Some(answer) = answer else { continue };
            if let Err(error) = datagrams.reply(to, &answer).await {
                tracing::debug!(%error, to = %to.address, "cannot send a response");
            }
        }
    }

    fn answer_datagram(
        &self,
        limiter: &Mutex<RateLimiter>,
        request: &[u8],
        from: DatagramPeer,
    ) -> Option<Vec<u8>> {
        let verdict = {
            let mut limiter = limiter.lock();
            limiter.check(self.runtime.now(), from.address.ip())
        };
        let answer = match verdict {
            Verdict::Answer => {
                let answer = authoritative::answer(&self.zones.now(), request, Transport::Udp);
                self.counters.answer(answer.as_ref());
                answer
            }
            Verdict::Slip => {
                count(&self.counters.slipped);
                authoritative::answer_truncated(request)
            }
            Verdict::Drop => {
                count(&self.counters.dropped);
                None
            }
        };
        answer.map(|answer| answer.bytes)
    }

    /// Answers one connection's questions, one after the other.
    async fn serve_connection(self, mut io: BoxIo, from: SocketAddr, stop: Latch) -> Conduct {
        let mut question_count = 0;
        let is_cut_off = loop {
            if question_count == self.limits.questions {
                break true;
            }
            question_count += 1;
            let Some(len) = self.next_len(&mut io, &stop).await else {
                break false;
            };
            if len > MAX_REQUEST {
                tracing::debug!(%from, len, "ignored a datagram that is too long for a query");
                return Conduct::Abusive;
            }
            let mut request = vec![0; len];
            if self
                .with_timeout(io.read_exact(&mut request))
                .await
                .is_err()
            {
                break false;
            }
            let answer = authoritative::answer(&self.zones.now(), &request, Transport::Tcp);
            self.counters.answer(answer.as_ref());
            let Some(Answer { bytes, .. }) = answer else {
                break true; // not a question, so the bytes after it are none either
            };
            let Ok(len) = u16::try_from(bytes.len()) else {
                unreachable!("response has {} bytes, limit 65535", bytes.len())
            };
            let framed = [&len.to_be_bytes()[..], &bytes].concat();
            if self.with_timeout(io.write_all(&framed)).await.is_err() {
                break false;
            }
        };
        let is_shut = self.with_timeout(io.shutdown()).await.is_ok();
        if is_cut_off && is_shut {
            self.linger(io, &stop).await;
        }
        Conduct::Fair
    }

    /// Reads and discards bytes for a short time. A connection that is closed while it has unread bytes is reset, and answers that are
    /// under way are lost (RFC 9293 §3.6.1).
    async fn linger(&self, mut io: BoxIo, stop: &Latch) {
        let deadline = self.runtime.now() + LINGER;
        let reading = std::pin::pin!(async {
            let (mut thrown_away, mut bytes) = (0, vec![0; 4096]);
            while thrown_away < LINGER_BYTES {
                match io.read(&mut bytes).await {
                    Ok(0) | Err(_) => break,
                    Ok(len) => thrown_away += len,
                }
            }
        });
        let patience = select(stop.wait(), self.runtime.sleep_until(deadline));
        select(reading, patience).await;
    }

    /// The length of the next question; `None` if the connection ended, timed out, or has to stop.
    async fn next_len(&self, io: &mut BoxIo, stop: &Latch) -> Option<usize> {
        let mut len = [0; 2];
        {
            let reading = std::pin::pin!(self.with_timeout(io.read_exact(&mut len)));
            match select(stop.wait(), reading).await {
                Either::Left(_) | Either::Right((Err(_), _)) => return None,
                Either::Right((Ok(_), _)) => {}
            }
        }
        Some(usize::from(u16::from_be_bytes(len)))
    }

    async fn with_timeout<T>(&self, doing: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let deadline = self.runtime.now() + self.limits.idle_timeout;
        let doing = std::pin::pin!(doing);
        match select(doing, self.runtime.sleep_until(deadline)).await {
            Either::Left((done, _)) => done,
            Either::Right(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}
