//! Two harnesses: [`Script`], one machine against frames written by hand, and [`pair::Pair`], two
//! machines in virtual time.
//!
//! The output and events of a machine become short lines, so that a test reads like a conversation:
//! `"RST_STREAM 1 CANCEL"`, `"Opened 1 fin"`.

#![allow(unreachable_pub)]

pub mod pair;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use spdy_clock::Instant;
use spdy_frame::compress::{Compression, Deflater, Inflater};
use spdy_frame::decoder::{Decoder, Limits};
use spdy_frame::frame::{
    Data, Frame, GoAway, Headers, Ping, RstStream, Setting, SettingId, Settings, SynReply,
    SynStream, WindowUpdate,
};
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::priority::Priority;
use spdy_frame::status::{GoAwayStatus, RstStatus};
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};
use spdy_session::event::{Event, ResetCause};
use spdy_session::session::{Session, StreamOptions};

/// Bytes of the initial window (SPDY/3.1 §2.6.8).
pub const WINDOW: usize = 65_536;

pub fn id(raw: u32) -> StreamId {
    StreamId::new(raw)
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A small header block.
pub fn some_headers() -> HeaderBlock {
    let mut headers = HeaderBlock::new();
    headers.push("name", "value");
    headers
}

pub fn bytes(len: usize) -> Bytes {
    Bytes::from(vec![b'x'; len])
}

/// One session machine, with a peer that the test plays.
pub struct Script {
    pub session: Session,
    pub now: Instant,
    version: Version,
    deflater: Deflater,
    inflater: Inflater,
    decoder: Decoder,
}

impl Script {
    pub fn server() -> Self {
        Self::new(Config::new(Role::Server, Version::V31))
    }

    pub fn client() -> Self {
        Self::new(Config::new(Role::Client, Version::V31))
    }

    pub fn version(role: Role, version: Version) -> Self {
        Self::new(Config::new(role, version))
    }

    /// A machine that has already written its greeting.
    pub fn new(config: Config) -> Self {
        let mut script = Self::before_greeting(config);
        script.output();
        script
    }

    pub fn before_greeting(config: Config) -> Self {
        let (version, now) = (config.version, Instant::from_millis(1_000));
        Self {
            session: Session::new(config, now),
            now,
            version,
            deflater: Deflater::new(version, Compression::Zlib(6)),
            inflater: Inflater::new(version, BlockLimits::default()),
            decoder: Decoder::new(version, Limits::default()),
        }
    }

    /// Opens a stream with [`some_headers`] and FIN.
    pub fn open_fin(&mut self) -> StreamId {
        let options = StreamOptions {
            fin: true,
            ..StreamOptions::default()
        };
        let opened = self.session.open(&some_headers(), options);
        opened.expect("the session opens a stream")
    }

    /// The peer sends a frame.
    pub fn send(&mut self, frame: &Frame) {
        let mut wire = BytesMut::new();
        frame.encode(self.version, &mut wire);
        self.session.handle_input(self.now, &wire);
    }

    /// The bytes of a header block, as the peer's compressor makes them.
    pub fn block(&mut self, headers: &HeaderBlock) -> Bytes {
        let mut block = BytesMut::new();
        self.deflater.deflate(headers, &mut block);
        block.freeze()
    }

    /// A SYN_STREAM to change before it is sent.
    pub fn syn_frame(&mut self, stream: u32) -> SynStream {
        SynStream {
            stream_id: id(stream),
            associated_to: StreamId::ZERO,
            priority: Priority::new(3),
            fin: false,
            unidirectional: false,
            block: self.block(&some_headers()),
        }
    }

    /// SYN_STREAM with that block.
    pub fn syn_with(&mut self, stream: u32, block: Bytes) {
        self.send(&Frame::SynStream(SynStream {
            stream_id: id(stream),
            associated_to: StreamId::ZERO,
            priority: Priority::new(3),
            fin: false,
            unidirectional: false,
            block,
        }));
    }

    pub fn syn(&mut self, stream: u32) {
        let frame = self.syn_frame(stream);
        self.send(&Frame::SynStream(frame));
    }

    pub fn syn_fin(&mut self, stream: u32) {
        let frame = SynStream {
            fin: true,
            ..self.syn_frame(stream)
        };
        self.send(&Frame::SynStream(frame));
    }

    /// A push as it should be.
    pub fn push(&mut self, stream: u32, parent: u32) {
        let frame = SynStream {
            associated_to: id(parent),
            unidirectional: true,
            ..self.syn_frame(stream)
        };
        self.send(&Frame::SynStream(frame));
    }

    pub fn reply(&mut self, stream: u32, fin: bool) {
        let block = self.block(&some_headers());
        self.send(&Frame::SynReply(SynReply {
            stream_id: id(stream),
            fin,
            block,
        }));
    }

    pub fn headers(&mut self, stream: u32, fin: bool) {
        let block = self.block(&some_headers());
        self.send(&Frame::Headers(Headers {
            stream_id: id(stream),
            fin,
            block,
        }));
    }

    /// A block that inflates, but to no headers.
    pub fn bad_block(&mut self) -> Bytes {
        // an upper-case name is as malformed as any, and HeaderBlock lets us write it
        let mut headers = HeaderBlock::new();
        headers.push("UPPER", "case");
        self.block(&headers)
    }

    pub fn data(&mut self, stream: u32, len: usize, fin: bool) {
        self.send(&Frame::Data(Data {
            stream_id: id(stream),
            payload: bytes(len),
            fin,
        }));
    }

    pub fn rst(&mut self, stream: u32, status: RstStatus) {
        self.send(&Frame::RstStream(RstStream {
            stream_id: id(stream),
            status,
        }));
    }

    pub fn window_update(&mut self, stream: u32, delta: u32) {
        self.send(&Frame::WindowUpdate(WindowUpdate {
            stream_id: id(stream),
            delta,
        }));
    }

    pub fn setting(&mut self, setting: SettingId, value: u32) {
        let entries = vec![Setting::new(setting, value)];
        self.send(&Frame::Settings(Settings {
            entries,
            ..Settings::default()
        }));
    }

    pub fn ping(&mut self, ping: u32) {
        self.send(&Frame::Ping(Ping { id: ping }));
    }

    pub fn goaway(&mut self, last_good: u32) {
        let status = (self.version != Version::V2).then_some(GoAwayStatus::OK);
        self.send(&Frame::GoAway(GoAway {
            last_good: id(last_good),
            status,
        }));
    }

    /// Advances the time; timeouts are handled one by one.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.session.poll_timeout().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            self.session.handle_timeout(self.now);
            assert!(
                self.session.poll_timeout().is_none_or(|next| next > due)
                    || self.session.is_closed(),
                "the deadline at {due} stays due"
            );
        }
        self.now = end;
    }

    /// The frames that the machine has to write, a line each; the transport takes them at once.
    pub fn output(&mut self) -> Vec<String> {
        let output = self.output_untransmitted();
        self.session.handle_transmitted(self.now);
        output
    }

    /// The same, and the transport has not taken them yet.
    pub fn output_untransmitted(&mut self) -> Vec<String> {
        let mut wire = BytesMut::new();
        while self.session.poll_transmit(self.now, &mut wire) {}
        self.read(&mut wire)
    }

    /// At most `frames` frames.
    pub fn output_frames(&mut self, frames: usize) -> Vec<String> {
        let mut wire = BytesMut::new();
        for _ in 0..frames {
            self.session.poll_transmit(self.now, &mut wire);
        }
        self.read(&mut wire)
    }

    fn read(&mut self, wire: &mut BytesMut) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(frame) = self
            .decoder
            .decode(wire)
            .expect("the session writes valid frames")
        {
            lines.push(self.line(&frame));
        }
        assert!(
            wire.is_empty() && self.decoder.is_between_frames(),
            "the session wrote a partial frame"
        );
        lines
    }

    fn line(&mut self, frame: &Frame) -> String {
        let fin = |fin: bool| if fin { " fin" } else { "" };
        match frame {
            Frame::Data(data) => {
                format!(
                    "DATA {} {}{}",
                    data.stream_id,
                    data.payload.len(),
                    fin(data.fin)
                )
            }
            Frame::SynStream(syn) => {
                self.inflate(&syn.block);
                let of = match syn.associated_to.value() {
                    0 => String::new(),
                    parent => format!(" of {parent}"),
                };
                format!("SYN_STREAM {}{of}{}", syn.stream_id, fin(syn.fin))
            }
            Frame::SynReply(reply) => {
                self.inflate(&reply.block);
                format!("SYN_REPLY {}{}", reply.stream_id, fin(reply.fin))
            }
            Frame::Headers(headers) => {
                self.inflate(&headers.block);
                format!("HEADERS {}{}", headers.stream_id, fin(headers.fin))
            }
            Frame::RstStream(rst) => format!("RST_STREAM {} {}", rst.stream_id, rst.status),
            Frame::Settings(settings) => {
                let entries = settings
                    .entries
                    .iter()
                    .map(|entry| format!(" {}={}", entry.id.0, entry.value));
                format!("SETTINGS{}", entries.collect::<String>())
            }
            Frame::Ping(ping) => format!("PING {}", ping.id),
            Frame::GoAway(goaway) => match goaway.status {
                Some(status) => format!("GOAWAY {} {status}", goaway.last_good),
                None => format!("GOAWAY {}", goaway.last_good),
            },
            Frame::WindowUpdate(update) => {
                format!("WINDOW_UPDATE {} {}", update.stream_id, update.delta)
            }
            other => format!("{other:?}"),
        }
    }

    fn inflate(&mut self, block: &Bytes) {
        let inflated = self
            .inflater
            .inflate(block)
            .expect("the session's blocks inflate in order");
        inflated
            .headers
            .expect("the session's blocks are valid headers");
    }

    /// The events for the owner, a line each.
    pub fn events(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.session.poll_event())
            .map(|event| event_line(&event))
            .collect()
    }
}

/// An event as a line.
pub fn event_line(event: &Event) -> String {
    let fin = |fin: &bool| if *fin { " fin" } else { "" };
    match event {
        Event::Opened {
            id,
            unidirectional,
            fin: end,
            ..
        } => {
            let one_way = if *unidirectional { " one-way" } else { "" };
            format!("Opened {id}{one_way}{}", fin(end))
        }
        Event::Reply { id, fin: end, .. } => format!("Reply {id}{}", fin(end)),
        Event::Headers { id, fin: end, .. } => format!("Headers {id}{}", fin(end)),
        Event::Data { id, data, fin: end } => format!("Data {id} {}{}", data.len(), fin(end)),
        Event::Reset { id, cause } => match cause {
            ResetCause::ByPeer(status) => format!("Reset {id} by peer: {status}"),
            ResetCause::ByUs(status) => format!("Reset {id} by us: {status}"),
            ResetCause::Stalled { waited } => format!("Reset {id} by us: stalled for {waited:?}"),
            ResetCause::NotProcessed => format!("Reset {id}: not processed"),
            ResetCause::SessionLost(_) => format!("Reset {id}: session lost"),
        },
        Event::Writable { id } => format!("Writable {id}"),
        Event::CanOpen => "CanOpen".into(),
        Event::Pong { rtt } => format!("Pong {rtt:?}"),
        Event::GoAway { last_good, .. } => format!("GoAway {last_good}"),
        Event::Closed { error: None } => "Closed".into(),
        Event::Closed { error: Some(error) } => format!("Closed: {error}"),
    }
}
