//! Timelines: lifetimes of streams, durations of stalls, and findings.

use spdy_frame::frame::{Frame, GoAway, RstStream};
use spdy_frame::status::{GoAwayStatus, RstStatus};
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_inspect::direction::Direction::{ToClient, ToServer};
use spdy_inspect::inspector::Options;
use spdy_inspect::limits::Limits;

use crate::support::Inspection;
use crate::support::file::pcap;
use crate::support::frames::Writer;
use crate::support::tcp::Wire;

const MS: u64 = 1_000_000;

struct Conversation {
    wire: Wire,
    start: u64,
    client: Writer,
    server: Writer,
}

impl Conversation {
    fn new() -> Self {
        let mut wire = Wire::new(101, false);
        wire.connect();
        Self {
            start: 1_700_000_000_000_000_000,
            wire,
            client: Writer::new(Version::V31),
            server: Writer::new(Version::V31),
        }
    }

    /// Sets the time of later packets to `ms` from the first packet.
    fn at(&mut self, ms: u64) -> &mut Self {
        self.wire.now = self.start + ms * MS;
        self
    }

    fn up(&mut self, bytes: &[u8]) {
        self.wire.send(ToServer, bytes, 60_000);
    }

    fn down(&mut self, bytes: &[u8]) {
        self.wire.send(ToClient, bytes, 60_000);
    }

    fn inspect(&self, options: Options) -> Inspection {
        Inspection::of_file(
            &pcap(&self.wire.packets, 101, false, true),
            options,
            1 << 20,
        )
    }
}

#[test]
fn a_stream_has_its_times_and_bytes() {
    let mut conversation = Conversation::new();
    let (open, reply) = (
        conversation.client.open(1, true),
        conversation.server.reply(1, false),
    );
    conversation.at(10).up(&open);
    conversation.at(20).down(&reply);
    let data = conversation.server.data(1, 700, true);
    conversation.at(30).down(&data);
    conversation.wire.close();
    let inspection = conversation.inspect(Options::default());
    let line = &inspection.summary().streams[&1];
    let ms = |at: Option<spdy_clock::Instant>| at.map(|at| at.as_nanos() / MS);
    assert_eq!(
        (ms(line.opened), ms(line.replied), line.finished.map(ms)),
        (Some(10), Some(20), [Some(10), Some(30)])
    );
    assert_eq!((line.bytes, &line.answered[..]), ([0, 700], "200 OK"));
    assert_eq!(line.request, "GET site.test/index.html");
    assert_eq!(inspection.findings(), Vec::<String>::new());
    // Neither side enlarged the session's window, so nothing indicates SPDY/3.1.
    assert_eq!(inspection.summary().info.version, Some(Version::V3));
}

#[test]
fn a_sender_without_credit_is_a_stall_if_data_follows() {
    let mut conversation = Conversation::new();
    let (open, reply) = (
        conversation.client.open(1, true),
        conversation.server.reply(1, false),
    );
    conversation.at(0).up(&open);
    conversation.at(10).down(&reply);
    let (full, rest) = (
        conversation.server.data(1, 65_536, false),
        conversation.server.data(1, 10, true),
    );
    conversation.at(20).down(&full);
    let updates = [
        conversation.client.update(0, 65_536),
        conversation.client.update(1, 65_536),
    ]
    .concat();
    conversation.at(120).up(&updates);
    conversation.at(130).down(&rest);
    conversation.wire.close();
    let inspection = conversation.inspect(Options::default());
    let line = &inspection.summary().streams[&1];
    assert_eq!(line.stalls[1].count, 1);
    // The second of the two segments of the full window used it up.
    assert_eq!(line.stalls[1].nanos, 100 * MS - 1000);
    assert_eq!(inspection.summary().info.version, Some(Version::V31));
    assert_eq!(inspection.summary().session_stalls[1].count, 1);
    let findings = inspection.findings();
    assert!(
        findings
            .iter()
            .any(|text| text.starts_with("stream 1: the server had no credit for 99.999 ms")),
        "{findings:?}"
    );
    assert!(
        findings
            .iter()
            .any(|text| text.starts_with("session: the server had no credit")),
        "{findings:?}"
    );
}

#[test]
fn a_window_used_up_exactly_at_the_end_is_no_stall() {
    let mut conversation = Conversation::new();
    let (open, reply) = (
        conversation.client.open(1, true),
        conversation.server.reply(1, false),
    );
    conversation.up(&open);
    conversation.down(&reply);
    let data = conversation.server.data(1, 65_536, true);
    conversation.down(&data);
    conversation.wire.close();
    assert_eq!(
        conversation.inspect(Options::default()).findings(),
        Vec::<String>::new()
    );
}

#[test]
fn an_unended_stall_is_reported_as_open() {
    let mut conversation = Conversation::new();
    let (open, reply) = (
        conversation.client.open(1, true),
        conversation.server.reply(1, false),
    );
    conversation.up(&open);
    conversation.down(&reply);
    let data = conversation.server.data(1, 65_536, false);
    conversation.at(50).down(&data);
    let inspection = conversation.inspect(Options::default());
    assert!(
        inspection.summary().streams[&1].stalls[1]
            .open_since
            .is_some()
    );
    let findings = inspection.findings();
    assert!(
        findings
            .iter()
            .any(|text| text.contains("and the client granted none")),
        "{findings:?}"
    );
}

#[test]
fn a_peer_without_flow_control_is_reported() {
    let mut conversation = Conversation::new();
    let (open, reply) = (
        conversation.client.open(1, true),
        conversation.server.reply(1, false),
    );
    conversation.up(&open);
    conversation.down(&reply);
    let data = conversation.server.data(1, 65_537, true);
    conversation.down(&data);
    conversation.wire.close();
    let findings = conversation.inspect(Options::default()).findings();
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(
        findings[0].starts_with("stream 1: the server sent 1 bytes beyond the window"),
        "{findings:?}"
    );
    assert!(
        findings[1].contains("sent no WINDOW_UPDATE"),
        "{findings:?}"
    );
}

#[test]
fn resets_and_goaways_with_open_streams_are_reported() {
    let mut conversation = Conversation::new();
    let open = [
        conversation.client.open(1, true),
        conversation.client.open(3, true),
    ]
    .concat();
    conversation.up(&open);
    let end = [
        conversation.server.frame(&Frame::RstStream(RstStream {
            stream_id: StreamId::new(1),
            status: RstStatus::REFUSED_STREAM,
        })),
        conversation.server.frame(&Frame::GoAway(GoAway {
            last_good: StreamId::new(1),
            status: Some(GoAwayStatus::OK),
        })),
    ]
    .concat();
    conversation.down(&end);
    conversation.wire.close();
    let findings = conversation.inspect(Options::default()).findings();
    assert!(
        findings[0].contains("reset it with REFUSED_STREAM"),
        "{findings:?}"
    );
    assert!(
        findings
            .iter()
            .any(|text| text.contains("sent GOAWAY with OK") && text.contains("1 later streams")),
        "{findings:?}"
    );
    assert!(
        findings
            .iter()
            .any(|text| text.contains("stream 3: complete request without a reply")),
        "{findings:?}"
    );
}

#[test]
fn streams_and_findings_past_their_limits_are_counted() {
    let mut conversation = Conversation::new();
    for id in [1, 3, 5] {
        let open = conversation.client.open(id, true);
        conversation.up(&open);
        let reset = conversation.server.frame(&Frame::RstStream(RstStream {
            stream_id: StreamId::new(id),
            status: RstStatus::CANCEL,
        }));
        conversation.down(&reset);
    }
    conversation.wire.close();
    let inspection = conversation.inspect(Options {
        limits: Limits {
            streams: 2,
            findings: 2,
            ..Limits::default()
        },
        ..Options::default()
    });
    let summary = inspection.summary();
    assert_eq!((summary.streams.len(), summary.omitted_streams), (2, 1));
    assert_eq!((summary.findings.len(), summary.omitted_findings), (2, 1));
}
