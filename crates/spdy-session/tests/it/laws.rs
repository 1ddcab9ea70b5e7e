//! Properties of the session machine that hold for any input and any schedule.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use spdy_clock::Instant;
use spdy_frame::compress::{Compression, Deflater};
use spdy_frame::frame::{
    Data, Frame, GoAway, Headers, Ping, RstStream, Setting, SettingId, Settings, SynReply,
    SynStream, WindowUpdate,
};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::{GoAwayStatus, RstStatus};
use spdy_frame::version::Version;
use spdy_session::config::{Config, PushPolicy, Role};
use spdy_session::event::Event;
use spdy_session::session::{Session, StreamOptions};

use crate::support::{self, id, ms, some_headers};

/// A frame of a script; its header block is compressed when the script is written.
#[derive(Clone, Debug)]
enum Line {
    Syn {
        stream: u32,
        parent: u32,
        fin: bool,
        one_way: bool,
    },
    Reply {
        stream: u32,
        fin: bool,
    },
    Headers {
        stream: u32,
        fin: bool,
        bad: bool,
    },
    Data {
        stream: u32,
        len: usize,
        fin: bool,
    },
    Rst(u32),
    WindowUpdate(u32, u32),
    Setting(u32, u32),
    Ping(u32),
    GoAway(u32),
    Junk(Vec<u8>),
}

fn any_line() -> impl Strategy<Value = Line> {
    let stream = || 1..12u32;
    let deltas = prop_oneof![Just(0), 1..5_000u32, Just(0x7fff_ffff)];
    prop_oneof![
        6 => (1..30u32, 0..4u32, any::<bool>(), any::<bool>())
            .prop_map(|(stream, parent, fin, one_way)| Line::Syn { stream, parent, fin, one_way }),
        4 => (stream(), any::<bool>()).prop_map(|(stream, fin)| Line::Reply { stream, fin }),
        4 => (stream(), any::<bool>(), any::<bool>())
            .prop_map(|(stream, fin, bad)| Line::Headers { stream, fin, bad }),
        8 => (stream(), 0..30_000usize, any::<bool>())
            .prop_map(|(stream, len, fin)| Line::Data { stream, len, fin }),
        2 => stream().prop_map(Line::Rst),
        2 => (0..12u32, deltas).prop_map(|(stream, delta)| Line::WindowUpdate(stream, delta)),
        2 => (1..9u32, any::<u32>()).prop_map(|(id, value)| Line::Setting(id, value)),
        2 => any::<u32>().prop_map(Line::Ping),
        1 => any::<u32>().prop_map(Line::GoAway),
        1 => prop::collection::vec(any::<u8>(), 1..40).prop_map(Line::Junk),
    ]
}

/// The bytes of a script, as a peer of `version` sends them.
fn write(version: Version, lines: &[Line]) -> BytesMut {
    let mut deflater = Deflater::new(version, Compression::Zlib(6));
    let mut wire = BytesMut::new();
    for line in lines {
        let mut block = |bad: bool| {
            let mut headers = HeaderBlock::new();
            headers.push(if bad { "BAD" } else { "name" }, "value");
            let mut block = BytesMut::new();
            deflater.deflate(&headers, &mut block);
            block.freeze()
        };
        let frame = match line.clone() {
            Line::Syn {
                stream,
                parent,
                fin,
                one_way,
            } => Frame::SynStream(SynStream {
                stream_id: id(stream),
                associated_to: id(parent),
                priority: Priority::new(1),
                fin,
                unidirectional: one_way,
                block: block(false),
            }),
            Line::Reply { stream, fin } => Frame::SynReply(SynReply {
                stream_id: id(stream),
                fin,
                block: block(false),
            }),
            Line::Headers { stream, fin, bad } => Frame::Headers(Headers {
                stream_id: id(stream),
                fin,
                block: block(bad),
            }),
            Line::Data { stream, len, fin } => {
                let payload = (0..len).map(|n| n as u8).collect::<Bytes>();
                Frame::Data(Data {
                    stream_id: id(stream),
                    payload,
                    fin,
                })
            }
            Line::Rst(stream) => Frame::RstStream(RstStream {
                stream_id: id(stream),
                status: RstStatus::CANCEL,
            }),
            Line::WindowUpdate(stream, delta) => Frame::WindowUpdate(WindowUpdate {
                stream_id: id(stream),
                delta,
            }),
            Line::Setting(setting, value) => {
                let entries = vec![Setting::new(SettingId(setting), value)];
                Frame::Settings(Settings {
                    entries,
                    ..Settings::default()
                })
            }
            Line::Ping(id) => Frame::Ping(Ping { id }),
            Line::GoAway(last) => Frame::GoAway(GoAway {
                last_good: id(last),
                status: (version != Version::V2).then_some(GoAwayStatus::OK),
            }),
            Line::Junk(bytes) => {
                wire.extend_from_slice(&bytes);
                continue;
            }
        };
        frame.encode(version, &mut wire);
    }
    wire
}

/// A session with open streams: a client has sent requests, a server can push.
fn machine(role: Role, version: Version) -> Session {
    let mut config = Config::new(role, version);
    config.push = PushPolicy::Accept;
    config.initial_window_bytes = 65_536;
    config.session_window_bytes = Some(100_000);
    let mut session = Session::new(config, Instant::ZERO);
    if role == Role::Client {
        for _ in 0..3 {
            session
                .open(
                    &some_headers(),
                    StreamOptions {
                        fin: true,
                        ..StreamOptions::default()
                    },
                )
                .unwrap();
        }
    }
    session
}

/// Events with DATA put together again: pieces are no part of what happened.
fn drain_events(session: &mut Session) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    while let Some(event) = session.poll_event() {
        if let (
            Some(Event::Data { id, data, fin }),
            Event::Data {
                id: same,
                data: next,
                fin: end,
            },
        ) = (events.last_mut(), &event)
            && id == same
        {
            *data = [&data[..], &next[..]].concat().into();
            *fin |= end;
            continue;
        }
        events.push(event);
    }
    events
}

fn written_bytes(session: &mut Session, now: Instant) -> BytesMut {
    let mut out = BytesMut::new();
    while session.poll_transmit(now, &mut out) {}
    out
}

fn any_role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Client), Just(Role::Server)]
}

fn any_version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V2), Just(Version::V3), Just(Version::V31)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// How the transport splits the bytes changes neither events nor output.
    #[test]
    fn any_split_of_the_input_gives_the_same_events(
        role in any_role(),
        version in any_version(),
        lines in prop::collection::vec(any_line(), 0..40),
        cuts in prop::collection::vec(1..3_000usize, 1..20),
    ) {
        let wire = write(version, &lines);
        let now = Instant::ZERO;
        let mut uncut = machine(role, version);
        written_bytes(&mut uncut, now);
        uncut.handle_input(now, &wire);

        let mut cut = machine(role, version);
        written_bytes(&mut cut, now);
        let (mut rest, mut cuts) = (&wire[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            cut.handle_input(now, piece);
            rest = tail;
        }
        prop_assert_eq!(drain_events(&mut cut), drain_events(&mut uncut));
        prop_assert_eq!(written_bytes(&mut cut, now), written_bytes(&mut uncut, now));
        prop_assert_eq!(cut.stats(), uncut.stats());
    }

    /// Input from the driver's own buffer has the same effect as copied input.
    #[test]
    fn a_shared_buffer_gives_the_same_events(
        lines in prop::collection::vec(any_line(), 0..40),
        cut in 1..3_000usize,
    ) {
        let wire = write(Version::V31, &lines);
        let now = Instant::ZERO;
        let mut copying = machine(Role::Server, Version::V31);
        copying.handle_input(now, &wire);
        let mut shared = machine(Role::Server, Version::V31);
        let mut buffer = BytesMut::new();
        for piece in wire.chunks(cut) {
            buffer.extend_from_slice(piece);
            shared.handle_input_buffer(now, &mut buffer);
        }
        prop_assert_eq!(drain_events(&mut shared), drain_events(&mut copying));
    }

    /// Bytes of no meaning, with time passing and an owner that does things: no panic, and
    /// a session that ended stays so.
    #[test]
    fn arbitrary_bytes_do_not_panic(
        role in any_role(),
        version in any_version(),
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..10),
    ) {
        let mut session = machine(role, version);
        let mut now = Instant::ZERO;
        for chunk in chunks {
            session.handle_input(now, &chunk);
            while session.poll_event().is_some() {}
            written_bytes(&mut session, now);
            now += ms(7_000);
            session.handle_timeout(now);
        }
        session.handle_eof(now);
        prop_assert!(session.is_closed());
    }

    /// Valid frames, mutated: no panic either, and an owner that answers, consumes and resets on
    /// any event finds no invalid state.
    #[test]
    fn modified_frames_do_not_panic(
        role in any_role(),
        version in any_version(),
        lines in prop::collection::vec(any_line(), 0..60),
        bends in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut wire = write(version, &lines);
        for (at, with) in bends {
            if !wire.is_empty() {
                let at = at.index(wire.len());
                wire[at] = with;
            }
        }
        let mut session = machine(role, version);
        let mut now = Instant::ZERO;
        for chunk in wire.chunks(5_000) {
            session.handle_input(now, chunk);
            while let Some(event) = session.poll_event() {
                match event {
                    Event::Opened { id, .. } => {
                        session.reply(id, &some_headers(), false);
                        session.send_data(id, support::bytes(20_000), id.value() % 3 == 0);
                        let push =
                            StreamOptions { associated_to: id, unidirectional: true, ..StreamOptions::default() };
                        let _ = session.open(&some_headers(), push);
                    }
                    Event::Data { id, data, .. } if id.value() % 5 != 0 => {
                        session.consume(id, data.len());
                    }
                    Event::Data { id, .. } => session.reset(id, RstStatus::CANCEL),
                    _ => {}
                }
            }
            written_bytes(&mut session, now);
            now += ms(30);
            session.handle_timeout(now);
        }
        session.shutdown(now);
        session.abort(now);
        written_bytes(&mut session, now);
        prop_assert!(session.is_closed());
    }
}

/// One action of a schedule.
#[derive(Clone, Debug)]
enum Act {
    /// The client requests so many bytes, at a priority.
    Request { len: usize, priority: u8 },
    /// The client sends so many bytes more on a stream, and ends it or not.
    Upload {
        stream: usize,
        len: usize,
        fin: bool,
    },
    /// Bytes move, as many as this each way.
    Move { bytes: usize },
    /// The owner of a side consumes what it holds of a stream.
    Consume { client: bool, stream: usize },
    /// A side resets a stream.
    Reset { client: bool, stream: usize },
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0..200_000usize, 0..8u8).prop_map(|(len, priority)| Act::Request { len, priority }),
        3 => (0..8usize, 0..80_000usize, any::<bool>())
            .prop_map(|(stream, len, fin)| Act::Upload { stream, len, fin }),
        6 => (1..60_000usize).prop_map(|bytes| Act::Move { bytes }),
        4 => (any::<bool>(), 0..8usize)
            .prop_map(|(client, stream)| Act::Consume { client, stream }),
        1 => (any::<bool>(), 0..8usize).prop_map(|(client, stream)| Act::Reset { client, stream }),
    ]
}

/// One side of a schedule, with its owner.
struct Side {
    session: Session,
    /// Written and not yet carried over.
    wire: BytesMut,
    /// Received on each stream.
    received: BTreeMap<u32, (Vec<u8>, bool)>,
    /// Not yet consumed of it.
    unconsumed: BTreeMap<u32, usize>,
    /// Handed to `send_data` for each stream.
    sent: BTreeMap<u32, (Vec<u8>, bool)>,
    lost: Vec<u32>,
    closed_count: usize,
}

impl Side {
    fn new(role: Role, version: Version, window: u32) -> Self {
        let mut config = Config::new(role, version);
        (config.initial_window_bytes, config.session_window_bytes) =
            (window, Some(window.max(65_536)));
        (config.write_timeout, config.idle_timeout) = (None, None);
        Self {
            session: Session::new(config, Instant::ZERO),
            wire: BytesMut::new(),
            received: BTreeMap::new(),
            unconsumed: BTreeMap::new(),
            sent: BTreeMap::new(),
            lost: Vec::new(),
            closed_count: 0,
        }
    }

    fn send(&mut self, stream: u32, len: usize, fin: bool) {
        let entry = self.sent.entry(stream).or_default();
        let from = entry.0.len();
        let data: Vec<u8> = (from..from + len)
            .map(|n| (n * 31 + stream as usize) as u8)
            .collect();
        if self.session.send_data(id(stream), data.clone().into(), fin) {
            entry.0.extend(data);
            entry.1 |= fin;
        }
    }

    fn consume(&mut self, stream: u32) {
        if let Some(len) = self.unconsumed.remove(&stream) {
            self.session.consume(id(stream), len);
        }
    }

    /// Delivers up to `bytes` to `to`, and lets its owner handle the events.
    fn carry(&mut self, to: &mut Self, now: Instant, bytes: usize) -> bool {
        while self.wire.len() < bytes && self.session.poll_transmit(now, &mut self.wire) {}
        let piece = self.wire.split_to(bytes.min(self.wire.len()));
        if !piece.is_empty() {
            to.session.handle_input(now, &piece);
        }
        self.listen();
        to.listen();
        !piece.is_empty()
    }

    fn listen(&mut self) {
        while let Some(event) = self.session.poll_event() {
            assert_eq!(self.closed_count, 0, "{event:?} after Closed");
            match event {
                Event::Opened {
                    id, headers, fin, ..
                } => {
                    let len = headers
                        .get("len")
                        .map(|len| String::from_utf8_lossy(len).into_owned());
                    let len = len
                        .and_then(|len| len.parse().ok())
                        .expect("the plan has a length");
                    self.received.entry(id.value()).or_default().1 = fin;
                    self.session.reply(id, &some_headers(), false);
                    self.send(id.value(), len, true);
                }
                Event::Reply { id, fin, .. } => {
                    self.received.entry(id.value()).or_default().1 = fin;
                }
                Event::Data { id, data, fin } => {
                    let stream_data = self.received.entry(id.value()).or_default();
                    assert!(!stream_data.1, "DATA after FIN on {id}");
                    stream_data.0.extend_from_slice(&data);
                    stream_data.1 = fin;
                    *self.unconsumed.entry(id.value()).or_default() += data.len();
                }
                Event::Reset { id, .. } => self.lost.push(id.value()),
                Event::Closed { error } => {
                    assert_eq!(error, None);
                    self.closed_count += 1;
                }
                Event::Headers { .. }
                | Event::Writable { .. }
                | Event::CanOpen
                | Event::Pong { .. }
                | Event::GoAway { .. } => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Under any schedule every byte arrives once and in order, and the session ends.
    #[test]
    fn two_machines_deliver_every_byte_once_in_order_and_end(
        version in any_version(),
        window in prop_oneof![Just(65_536u32), Just(100_000), Just(1 << 20), Just(20_000)],
        acts in prop::collection::vec(any_act(), 0..60),
    ) {
        let mut client = Side::new(Role::Client, version, window);
        let mut server = Side::new(Role::Server, version, window);
        let (mut now, mut open_streams): (Instant, Vec<u32>) = (Instant::ZERO, Vec::new());
        let pick = |streams: &[u32], stream: usize| streams.get(stream % streams.len().max(1)).copied();
        for act in acts {
            match act {
                Act::Request { len, priority } => {
                    let mut headers = HeaderBlock::new();
                    headers.push("len", len.to_string());
                    let open = StreamOptions { priority: Priority::new(priority), ..StreamOptions::default() };
                    if let Ok(id) = client.session.open(&headers, open) {
                        open_streams.push(id.value());
                    }
                }
                Act::Upload { stream, len, fin } => {
                    if let Some(stream) = pick(&open_streams, stream) {
                        client.send(stream, len, fin);
                    }
                }
                Act::Move { bytes } => {
                    client.carry(&mut server, now, bytes);
                    server.carry(&mut client, now, bytes);
                    now += ms(1);
                }
                Act::Consume { client: by_client, stream } => {
                    if let Some(stream) = pick(&open_streams, stream) {
                        if by_client { &mut client } else { &mut server }.consume(stream);
                    }
                }
                Act::Reset { client: by_client, stream } => {
                    if let Some(stream) = pick(&open_streams, stream) {
                        let side = if by_client { &mut client } else { &mut server };
                        side.session.reset(id(stream), RstStatus::CANCEL);
                        side.lost.push(stream);
                    }
                }
            }
        }
        // every owner ends what it began and reads what it gets
        for &stream in &open_streams {
            client.send(stream, 0, true);
        }
        client.session.shutdown(now);
        let mut quiet = 0;
        while quiet < 3 {
            let has_carried = [
                client.carry(&mut server, now, usize::MAX),
                server.carry(&mut client, now, usize::MAX),
            ];
            for side in [&mut client, &mut server] {
                for stream in side.unconsumed.keys().copied().collect::<Vec<_>>() {
                    side.consume(stream);
                }
                side.session.handle_timeout(now);
            }
            now += ms(100);
            if client.session.is_closed() && client.wire.is_empty() {
                server.session.handle_eof(now); // a closed client closes its transport
                server.listen();
            }
            quiet = if has_carried.contains(&true) { 0 } else { quiet + 1 };
        }
        prop_assert!(client.session.is_closed() && server.session.is_closed());
        prop_assert_eq!((client.closed_count, server.closed_count), (1, 1));
        for &stream in &open_streams {
            if client.lost.contains(&stream) || server.lost.contains(&stream) {
                continue;
            }
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (sent_data, received_data) = (&from.sent[&stream], &to.received[&stream]);
                prop_assert_eq!((received_data.0.len(), received_data.1), (sent_data.0.len(), true), "stream {}", stream);
                prop_assert!(received_data.0 == sent_data.0, "stream {} arrived out of order", stream);
            }
        }
    }
}
