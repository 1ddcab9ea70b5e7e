//! A session, its owner, and the properties of their behaviour.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use spdy_clock::Instant;
use spdy_frame::compress::Inflater;
use spdy_frame::decoder::{Decoder, Limits};
use spdy_frame::frame::Frame;
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role, SettingsTiming};
use spdy_session::event::Event;
use spdy_session::limit::Limit;
use spdy_session::session::{Session, Stats, StreamOptions};

use crate::choices::Choices;

/// Default window of the specification, in bytes, which is the smallest that is enforced.
const WINDOW: usize = 65_536;

/// The payload that the owner sends: shared, so that it needs no memory.
static PAYLOAD: [u8; 90_000] = [b'x'; 90_000];

/// A call of the owner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    verb: u8,
    stream: StreamId,
    amount: u8,
}

impl Command {
    pub(super) fn read(choices: &mut Choices<'_>) -> Self {
        Self {
            verb: choices.byte(),
            stream: StreamId::new(u32::from(choices.byte() % 16)),
            amount: choices.byte(),
        }
    }

    fn fin(self) -> bool {
        self.verb & 0x80 != 0
    }
}

pub(super) struct Machine {
    session: Session,
    /// The driver's buffer, for the machine that shares it.
    buffer: BytesMut,
    /// Bytes delivered but not consumed, by stream.
    unread: BTreeMap<StreamId, usize>,
    /// Streams whose DATA is not counted there.
    uncounted: BTreeSet<StreamId>,
    closed: bool,
    written: OutputChecker,
    written_bytes: usize,
}

/// The result of one step: events with DATA joined, and the written bytes.
pub(super) type StepOutput = (Vec<Event>, BytesMut);

impl Machine {
    pub(super) fn new(config: Config, now: Instant) -> Self {
        let written = OutputChecker::new(&config);
        let mut session = Session::new(config, now);
        if session.config().role == Role::Client {
            for fin in [true, false, true] {
                let open = StreamOptions {
                    fin,
                    ..StreamOptions::default()
                };
                let _ = session.open(&headers(3), open);
            }
        }
        Self {
            session,
            buffer: BytesMut::new(),
            unread: BTreeMap::new(),
            uncounted: BTreeSet::new(),
            closed: false,
            written,
            written_bytes: 0,
        }
    }

    pub(super) fn accepts_input(&self) -> bool {
        self.session.accepts_input()
    }

    /// Plain bytes of the received header blocks.
    pub(super) fn plain_bytes(&self) -> usize {
        self.session.stats().received_block_plain_bytes as usize
    }

    /// Maximum number of bytes written at once.
    pub(super) fn written_bytes(&self) -> usize {
        self.written_bytes
    }

    /// The peer's bytes, through the call that copies them.
    pub(super) fn input(&mut self, now: Instant, pieces: &[&[u8]]) {
        for piece in pieces {
            self.session.handle_input(now, piece);
        }
    }

    /// The peer's bytes, through the call that shares them.
    pub(super) fn input_shared(&mut self, now: Instant, pieces: &[&[u8]]) {
        for piece in pieces {
            self.buffer.extend_from_slice(piece);
            self.session.handle_input_buffer(now, &mut self.buffer);
        }
    }

    /// Advances the time to `now`; deadlines before it are handled one by one.
    pub(super) fn pass(&mut self, now: Instant) {
        while let Some(due) = self.session.poll_timeout().filter(|&due| due <= now) {
            self.session.handle_timeout(due);
            let next = self.session.poll_timeout();
            assert!(
                next.is_none_or(|next| next > due),
                "deadline {due} is not cleared: {:?}",
                self.session
            );
        }
        self.session.handle_timeout(now);
    }

    /// The transport ends.
    pub(super) fn end(&mut self, now: Instant) {
        self.session.handle_eof(now);
        assert!(self.session.is_closed(), "{:?}", self.session);
        assert_eq!(self.session.active_streams(), (0, 0), "{:?}", self.session);
    }

    pub(super) fn command(&mut self, now: Instant, command: Command) {
        let Command { stream, amount, .. } = command;
        let (fin, session) = (command.fin(), &mut self.session);
        match command.verb & 15 {
            0 | 1 => {
                session.reply(stream, &headers(amount), fin);
            }
            2 => {
                session.headers(stream, &headers(amount), fin);
            }
            3..=5 => {
                let room = session.send_capacity(stream);
                let len = match amount {
                    small @ ..200 => usize::from(small),
                    200..228 => room.min(PAYLOAD.len()),
                    _ => PAYLOAD.len(),
                };
                session.send_data(stream, Bytes::from_static(&PAYLOAD[..len]), fin);
            }
            6 | 7 => {
                let unread = self.unread.get_mut(&stream);
                let most = unread.as_ref().map_or(9, |unread| **unread);
                let used = if amount < 128 {
                    most
                } else {
                    most.min(usize::from(amount) * 100)
                };
                session.consume(stream, used);
                if let Some(unread) = unread {
                    *unread -= used;
                }
            }
            8 => {
                session.reset(stream, RstStatus(u32::from(amount)));
                self.unread.remove(&stream);
            }
            9 => {
                session.finish_and_reset(stream, RstStatus::CANCEL);
                // The session does not report whether that was at once, so the stream is no longer counted.
                self.unread.remove(&stream);
                self.uncounted.insert(stream);
            }
            10 | 11 => {
                let open = StreamOptions {
                    priority: Priority::new(amount % 8),
                    associated_to: if amount & 8 == 0 {
                        StreamId::ZERO
                    } else {
                        stream
                    },
                    unidirectional: amount & 16 != 0,
                    fin,
                };
                let _ = session.open(&headers(amount), open);
            }
            12 => session.ping(now),
            13 if amount < 64 => session.shutdown(now),
            14 if amount < 16 => session.abort(now),
            15 if amount < 16 => session.handle_eof(now),
            _ => session.handle_timeout(now),
        }
    }

    /// Drains all output of the machine.
    pub(super) fn drain(&mut self, now: Instant) -> StepOutput {
        let mut wire = BytesMut::new();
        while self.session.poll_transmit(now, &mut wire) {
            assert!(
                wire.len() < 1 << 26,
                "the output does not end: {:?}",
                self.session
            );
        }
        let mut events: Vec<Event> = Vec::new();
        while let Some(event) = self.session.poll_event() {
            assert!(!self.closed, "{event:?} after Closed");
            self.note(&event);
            match (events.last_mut(), event) {
                (
                    Some(Event::Data { id, data, fin }),
                    Event::Data {
                        id: same,
                        data: more,
                        fin: end,
                    },
                ) if *id == same => {
                    *data = [&data[..], &more[..]].concat().into();
                    *fin |= end;
                }
                (_, event) => events.push(event),
            }
        }
        assert_eq!(self.closed, self.session.is_closed(), "{:?}", self.session);
        self.assert_within_windows();
        self.written.check(&wire);
        self.written_bytes = self.written_bytes.max(wire.len());
        (events, wire)
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::Data { id, data, .. } if !self.uncounted.contains(id) => {
                *self.unread.entry(*id).or_default() += data.len();
            }
            Event::Reset { id, .. } => {
                self.unread.remove(id);
            }
            Event::Closed { .. } => self.closed = true,
            _ => {}
        }
    }

    /// The owner holds no more than the peer was allowed to send.
    fn assert_within_windows(&self) {
        let config = self.session.config();
        if !config.flow_control || self.closed {
            return;
        }
        let windowed = |announced: u32| match config.settings_timing {
            SettingsTiming::Never => WINDOW,
            _ => (announced as usize).max(WINDOW),
        };
        if config.version != Version::V2 {
            let window = windowed(config.initial_window_bytes);
            for (id, unread) in &self.unread {
                assert!(
                    *unread <= window,
                    "{unread} unread bytes on stream {id}, limit {window}"
                );
            }
        }
        if config.version == Version::V31 {
            let window = (config.session_window_size() as usize).max(WINDOW);
            // A peer may also move the session's window by updates for streams, so the same amount is
            // tolerated.
            let window = window + windowed(config.initial_window_bytes) - WINDOW;
            let unread: usize = self.unread.values().sum();
            assert!(
                unread <= window,
                "{unread} unread bytes in total, limit {window}"
            );
        }
    }

    /// All queries return the same on both.
    pub(super) fn assert_alike(&self, other: &Self) {
        let (one, other) = (&self.session, &other.session);
        assert_eq!(counted(one), counted(other));
        assert_eq!(one.active_streams(), other.active_streams());
        assert_eq!(one.poll_timeout(), other.poll_timeout());
        assert_eq!(one.accepts_input(), other.accepts_input());
        assert_eq!(one.is_closed(), other.is_closed());
        assert_eq!(one.max_open_streams(), other.max_open_streams());
        for id in (0..16).map(StreamId::new) {
            assert_eq!(
                one.send_capacity(id),
                other.send_capacity(id),
                "send capacity of stream {id}"
            );
        }
    }
}

/// The counters, except for the queues that stop reading: those are checked once per read, and a piece of DATA
/// is an event.
fn counted(session: &Session) -> (Stats, Vec<(Limit, u32)>) {
    let mut stats = session.stats();
    let limits = std::mem::take(&mut stats.limits);
    // If the session ended at a frame, the count depends on how much of it had arrived.
    if session.is_closed() {
        stats.received_data_bytes = 0;
    }
    let queue = |limit| matches!(limit, Limit::EventQueue | Limit::ControlQueue);
    let limits = limits.iter().filter(|(limit, _)| !queue(*limit));
    (stats, limits.collect())
}

/// A strict decoder of a machine's output.
struct OutputChecker {
    version: Version,
    role: Role,
    decoder: Decoder,
    inflater: Inflater,
    /// Streams that the machine ended.
    ended: BTreeSet<StreamId>,
    last_opened: StreamId,
}

impl OutputChecker {
    fn new(config: &Config) -> Self {
        Self {
            version: config.version,
            role: config.role,
            decoder: Decoder::new(config.version, Limits::default()),
            inflater: Inflater::new(config.version, BlockLimits::default()),
            ended: BTreeSet::new(),
            last_opened: StreamId::ZERO,
        }
    }

    fn check(&mut self, wire: &[u8]) {
        let mut wire = BytesMut::from(wire);
        while let Some(frame) = self
            .decoder
            .decode(&mut wire)
            .expect("the output has valid frames")
        {
            let (id, fin, block) = match &frame {
                Frame::Data(data) => (data.stream_id, data.fin, None),
                Frame::SynStream(syn) => {
                    assert!(syn.stream_id > self.last_opened, "{syn:?}");
                    let odd = syn.stream_id.value() % 2 == 1;
                    assert_eq!(odd, self.role == Role::Client, "{syn:?}");
                    self.last_opened = syn.stream_id;
                    (syn.stream_id, syn.fin, Some(&syn.block))
                }
                Frame::SynReply(reply) => (reply.stream_id, reply.fin, Some(&reply.block)),
                Frame::Headers(headers) => (headers.stream_id, headers.fin, Some(&headers.block)),
                // A reply to frames of an unknown stream, which may still be opened later.
                Frame::RstStream(rst) if rst.status == RstStatus::INVALID_STREAM => continue,
                Frame::RstStream(rst) => {
                    self.ended.insert(rst.stream_id);
                    continue;
                }
                Frame::WindowUpdate(update) => {
                    assert_ne!(update.delta, 0, "{update:?}");
                    assert_ne!(self.version, Version::V2, "{update:?}");
                    continue;
                }
                Frame::Settings(_) | Frame::Ping(_) | Frame::GoAway(_) => continue,
                odd => panic!("unexpected frame in the output: {odd:?}"),
            };
            assert!(
                !self.ended.contains(&id),
                "{frame:?} after the end of its stream"
            );
            if fin {
                self.ended.insert(id);
            }
            if let Some(block) = block {
                let inflated = self
                    .inflater
                    .inflate(block)
                    .expect("the output's blocks inflate in order");
                inflated.headers.expect("the output's headers are valid");
            }
        }
        assert!(
            wire.is_empty() && self.decoder.is_between_frames(),
            "the output ends with a partial frame"
        );
    }
}

/// Headers that differ by `amount`, one of them secret.
fn headers(amount: u8) -> HeaderBlock {
    let mut headers = HeaderBlock::new();
    headers.push(
        "name",
        vec![b'a' + amount % 26; 1 + usize::from(amount) / 4],
    );
    if amount.is_multiple_of(3) {
        headers.push("cookie", vec![b'c'; usize::from(amount)]);
    }
    headers
}
