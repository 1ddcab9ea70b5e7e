//! Streams and windows of a session over time, and findings.
//!
//! ```text
//! credit of a sender on a stream = initial window + WINDOW_UPDATEs - bytes of DATA   (SPDY/3.1 §2.6.8)
//!
//! DATA ─▶ credit 0 ─── stalled ───▶ WINDOW_UPDATE or SETTINGS ─▶ DATA     a stall, if DATA follows
//! ```
//!
//! All times are those at the capture: near the receiver a stall looks longer by the transit of the WINDOW_UPDATE, and near the
//! sender it is the sender's own.

use std::collections::BTreeMap;

use spdy_clock::Instant;
use spdy_frame::frame::{Frame, SettingId};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::{GoAwayStatus, RstStatus};
use spdy_frame::version::Version;

use crate::direction::Direction;
use crate::event::{FrameRecord, SessionInfo};
use crate::finding::Finding;
use crate::limits::Limits;
use crate::reassembly::Segments;

/// Initial size of every window, bytes (SPDY/3.1 §2.6.8).
pub const INITIAL_WINDOW: i64 = 64 * 1024;

/// A receiver with flow control has sent WINDOW_UPDATE by then. Most send one at half a window.
const UPDATE_EXPECTED_BYTES: u64 = 64 * 1024;

/// Summary of a session.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Peers and detection; `version` is the finally detected one.
    pub info: SessionInfo,
    /// Time of the first byte.
    pub began: Instant,
    /// Time of the last frame.
    pub last_frame: Instant,
    /// True if times are meaningful: raw streams have none.
    pub timed: bool,
    /// Frames to the server, to the client.
    pub frames: [u64; 2],
    /// Bytes of DATA payload to the server, to the client.
    pub data_bytes: [u64; 2],
    /// Streams by id, up to [`Limits::streams`].
    pub streams: BTreeMap<u32, StreamTimeline>,
    /// Number of streams past the limit.
    pub omitted_streams: u64,
    /// Stalls of the session's window, by direction of the data.
    pub session_stalls: [Stalls; 2],
    /// WINDOW_UPDATE frames sent by the client, by the server.
    pub window_updates: [u64; 2],
    /// Findings, in the order of observation.
    pub findings: Vec<Finding>,
    /// Number of findings past [`Limits::findings`].
    pub omitted_findings: u64,
    /// Statistics of TCP segments, to the server and to the client.
    pub segments: [Segments; 2],
}

/// One stream.
#[derive(Clone, Debug, Default)]
pub struct StreamTimeline {
    /// Time of its SYN_STREAM; `None` if that is not in the capture.
    pub opened: Option<Instant>,
    /// Direction of its SYN_STREAM.
    pub opened_by: Option<Direction>,
    /// The request: method and URL, or the headers of a stream without them.
    pub request: String,
    /// Time of its SYN_REPLY.
    pub replied: Option<Instant>,
    /// The response: the status.
    pub answered: String,
    /// Times of the client's and the server's FIN.
    pub finished: [Option<Instant>; 2],
    /// RST_STREAM: time, direction, status.
    pub reset: Option<(Instant, Direction, RstStatus)>,
    /// Bytes of DATA payload to the server, to the client.
    pub bytes: [u64; 2],
    /// Stalls of the client and of the server on this stream.
    pub stalls: [Stalls; 2],
    /// Credit beyond the initial window for each sender, by WINDOW_UPDATE and changed initial windows.
    granted: [i64; 2],
    gauge: [Gauge; 2],
    is_overrun_reported: [bool; 2],
}

/// Number and duration of times in which a sender had data but no credit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stalls {
    /// Stalls that ended with more data.
    pub count: u64,
    /// Their total duration, nanoseconds.
    pub nanos: u64,
    /// The longest, nanoseconds.
    pub longest_nanos: u64,
    /// Start of a stall that is still open at the end of the capture.
    pub open_since: Option<Instant>,
}

/// Observes one window.
#[derive(Clone, Copy, Debug, Default)]
struct Gauge {
    empty_since: Option<Instant>,
    /// When it got credit, if no data has followed yet.
    refilled: Option<Instant>,
}

impl Gauge {
    /// Updates the stall state after the window changed to `credit` at `at`.
    fn update_credit(&mut self, at: Instant, credit: i64) {
        if let (true, Some(since), None) = (credit > 0, self.empty_since, self.refilled) {
            self.refilled = Some(at.max(since));
        }
    }

    /// Handles sent data after which `credit` is left.
    fn sent(
        &mut self,
        at: Instant,
        credit: i64,
        stalls: &mut Stalls,
    ) -> Option<(Instant, Instant)> {
        let stall = self.empty_since.zip(self.refilled);
        if let Some((from, to)) = stall {
            let nanos = to.as_nanos().saturating_sub(from.as_nanos());
            stalls.count += 1;
            stalls.nanos = stalls.nanos.saturating_add(nanos);
            stalls.longest_nanos = stalls.longest_nanos.max(nanos);
            *self = Self::default();
        }
        if credit <= 0 && self.empty_since.is_none() {
            self.empty_since = Some(at);
        }
        stall
    }

    fn open_since(&self) -> Option<Instant> {
        self.empty_since.filter(|_| self.refilled.is_none())
    }
}

/// Observes a session.
#[derive(Debug)]
pub(crate) struct TimeLine {
    summary: Summary,
    limits: Limits,
    has_windows: bool,
    /// Initial window of streams, by direction of the data.
    initial: [i64; 2],
    /// When it was set.
    initial_at: [Instant; 2],
    /// Credit of the session, by direction of the data, if this is SPDY/3.1.
    session_credit: [i64; 2],
    session_gauge: [Gauge; 2],
    is_session_overrun_reported: [bool; 2],
    session_findings: Vec<Finding>,
    is_headers_reported: [bool; 2],
    /// The highest stream ID past the limit, so that each stream is counted once.
    highest_omitted: u32,
    goaways: Vec<Finding>,
}

impl TimeLine {
    pub(crate) fn new(
        begun: SessionInfo,
        wire: Version,
        timed: bool,
        at: Instant,
        limits: &Limits,
    ) -> Self {
        Self {
            summary: Summary {
                info: begun,
                began: at,
                last_frame: at,
                timed,
                frames: [0; 2],
                data_bytes: [0; 2],
                streams: BTreeMap::new(),
                omitted_streams: 0,
                session_stalls: Default::default(),
                window_updates: [0; 2],
                findings: Vec::new(),
                omitted_findings: 0,
                segments: Default::default(),
            },
            limits: limits.clone(),
            has_windows: wire.has_stream_windows(),
            initial: [INITIAL_WINDOW; 2],
            initial_at: [at; 2],
            session_credit: [INITIAL_WINDOW; 2],
            session_gauge: Default::default(),
            is_session_overrun_reported: [false; 2],
            session_findings: Vec::new(),
            is_headers_reported: [false; 2],
            highest_omitted: 0,
            goaways: Vec::new(),
        }
    }

    pub(crate) fn add_finding(&mut self, finding: Finding) {
        if self.summary.findings.len() < self.limits.findings {
            self.summary.findings.push(finding);
        } else {
            self.summary.omitted_findings += 1;
        }
    }

    /// The timeline of a stream. A stream without a SYN_STREAM in the capture gets one too, and a finding.
    fn stream(&mut self, at: Instant, id: u32, seen: &FrameRecord) -> Option<&mut StreamTimeline> {
        let streams = &self.summary.streams;
        if !streams.contains_key(&id) {
            if streams.len() >= self.limits.streams {
                if id > self.highest_omitted {
                    self.highest_omitted = id;
                    self.summary.omitted_streams += 1;
                }
                return None;
            }
            if !matches!(seen.frame, Frame::SynStream(_)) {
                self.add_finding(Finding::UnknownStream {
                    stream: id,
                    direction: seen.direction,
                    at,
                });
            }
        }
        Some(self.summary.streams.entry(id).or_default())
    }

    pub(crate) fn frame(&mut self, at: Instant, seen: &FrameRecord) {
        let direction = seen.direction;
        let which = direction.index();
        self.summary.frames[which] += 1;
        self.summary.last_frame = at;
        match &seen.frame {
            Frame::SynStream(frame) => {
                let id = frame.stream_id.value();
                let request = text_of(seen, request_text);
                if let Some(line) = self.stream(at, id, seen) {
                    line.opened = line.opened.or(Some(at));
                    line.opened_by = line.opened_by.or(Some(direction));
                    line.request = request;
                    if frame.unidirectional {
                        line.finished[direction.back().index()] = Some(at);
                    }
                }
                self.fin(at, id, seen, frame.fin);
                self.headers(id, seen);
            }
            Frame::SynReply(frame) => {
                let id = frame.stream_id.value();
                let answered = text_of(seen, answered);
                if let Some(line) = self.stream(at, id, seen) {
                    line.replied = line.replied.or(Some(at));
                    line.answered = answered;
                }
                self.fin(at, id, seen, frame.fin);
                self.headers(id, seen);
            }
            Frame::Headers(frame) => {
                let id = frame.stream_id.value();
                let answered = text_of(seen, answered);
                if let Some(line) = self.stream(at, id, seen)
                    && line.answered.is_empty()
                {
                    line.answered = answered;
                }
                self.fin(at, id, seen, frame.fin);
                self.headers(id, seen);
            }
            Frame::Data(frame) => {
                self.data(at, frame.stream_id.value(), seen);
                self.fin(at, frame.stream_id.value(), seen, frame.fin);
            }
            Frame::CompressedData { stream_id, .. } => self.data(at, stream_id.value(), seen),
            Frame::RstStream(frame) => {
                let (stream, status) = (frame.stream_id.value(), frame.status);
                if let Some(line) = self.stream(at, stream, seen) {
                    line.reset = line.reset.or(Some((at, direction, status)));
                }
                self.add_finding(Finding::Reset {
                    stream,
                    direction,
                    status,
                    at,
                });
            }
            Frame::Settings(frame) => {
                if let Some(value) = frame.value(SettingId::INITIAL_WINDOW_SIZE) {
                    // Streams apply it at their next DATA, because there may be thousands of streams.
                    let data = direction.back().index();
                    self.initial[data] = i64::from(value);
                    self.initial_at[data] = at;
                }
            }
            Frame::WindowUpdate(frame) => {
                self.window_update(at, seen, frame.stream_id.value(), i64::from(frame.delta));
            }
            Frame::GoAway(frame) => {
                let last_good = frame.last_good.value();
                self.goaways.push(Finding::GoAway {
                    direction,
                    last_good,
                    status: frame.status,
                    unprocessed_streams: 0,
                    at,
                });
                // A GOAWAY that repeats an earlier one is ignored.
                self.goaways.truncate(2);
            }
            Frame::Noop | Frame::Ping(_) | Frame::Skipped { .. } => {}
        }
    }

    fn headers(&mut self, stream: u32, seen: &FrameRecord) {
        let is_reported = &mut self.is_headers_reported[seen.direction.index()];
        if let Some(Err(reason)) = &seen.headers
            && !*is_reported
        {
            // Reported once for each direction: after the first error, all later blocks fail too.
            *is_reported = true;
            self.add_finding(Finding::Headers {
                stream,
                direction: seen.direction,
                reason: reason.clone(),
            });
        }
    }

    fn fin(&mut self, at: Instant, id: u32, seen: &FrameRecord, fin: bool) {
        if fin && let Some(line) = self.stream(at, id, seen) {
            let finished = &mut line.finished[seen.direction.index()];
            *finished = finished.or(Some(at));
        }
    }

    fn data(&mut self, at: Instant, id: u32, seen: &FrameRecord) {
        let direction = seen.direction;
        let which = direction.index();
        let len = seen.len_bytes as u64;
        self.summary.data_bytes[which] += len;
        let counts = self.has_windows && self.summary.timed && len > 0;
        if counts {
            self.session_data(at, direction, len as i64);
        }
        let (initial, initial_at) = (self.initial[which], self.initial_at[which]);
        let Some(line) = self.stream(at, id, seen) else {
            return;
        };
        line.bytes[which] += len;
        if !counts {
            return;
        }
        let credit = line.credit(which, initial);
        // SETTINGS may have opened the windows of all streams at once.
        line.gauge[which].update_credit(initial_at, credit + len as i64);
        let stall = line.gauge[which].sent(at, credit, &mut line.stalls[which]);
        let overrun =
            credit < 0 && !std::mem::replace(&mut line.is_overrun_reported[which], credit < 0);
        if let Some((from, to)) = stall {
            self.add_finding(Finding::Stall {
                stream: Some(id),
                direction,
                from,
                to: Some(to),
            });
        }
        if overrun {
            self.add_finding(Finding::Overrun {
                stream: Some(id),
                direction,
                bytes: credit.unsigned_abs(),
                at,
            });
        }
    }

    /// Handles DATA for the session's window. Evaluated at the end, when it is known whether there is one.
    fn session_data(&mut self, at: Instant, direction: Direction, len: i64) {
        let which = direction.index();
        self.session_credit[which] = self.session_credit[which].saturating_sub(len);
        let credit = self.session_credit[which];
        let stalls = &mut self.summary.session_stalls[which];
        let stall = self.session_gauge[which].sent(at, credit, stalls);
        if self.session_findings.len() < self.limits.findings {
            self.session_findings
                .extend(stall.map(|(from, to)| Finding::Stall {
                    stream: None,
                    direction,
                    from,
                    to: Some(to),
                }));
        }
        if credit < 0 && !std::mem::replace(&mut self.is_session_overrun_reported[which], true) {
            self.session_findings.push(Finding::Overrun {
                stream: None,
                direction,
                bytes: credit.unsigned_abs(),
                at,
            });
        }
    }

    fn window_update(&mut self, at: Instant, seen: &FrameRecord, id: u32, delta: i64) {
        let data = seen.direction.back().index();
        self.summary.window_updates[seen.direction.index()] += 1;
        if id == 0 {
            if self.summary.info.version.is_none() {
                self.summary.info.version = Some(Version::V31);
            }
            let credit = &mut self.session_credit[data];
            *credit = credit.saturating_add(delta);
            self.session_gauge[data].update_credit(at, *credit);
            return;
        }
        let initial = self.initial[data];
        if let Some(line) = self.stream(at, id, seen) {
            line.granted[data] = line.granted[data].saturating_add(delta);
            let credit = line.credit(data, initial);
            line.gauge[data].update_credit(at, credit);
        }
    }

    pub(crate) fn finish(mut self, at: Instant, whole: bool) -> Summary {
        // SPDY/3 and 3.1 have the same frames; without a session window it is SPDY/3.
        let version = *self.summary.info.version.get_or_insert(Version::V3);
        let mut later = Vec::new();
        if version.has_session_window() {
            later.append(&mut self.session_findings);
            for direction in Direction::BOTH {
                let which = direction.index();
                let open = self.session_gauge[which].open_since();
                let waits = self.summary.streams.values().any(|line| line.sends(which));
                if let Some(from) = open.filter(|_| waits) {
                    self.summary.session_stalls[which].open_since = Some(from);
                    later.push(Finding::Stall {
                        stream: None,
                        direction,
                        from,
                        to: None,
                    });
                }
            }
        } else {
            self.summary.session_stalls = Default::default();
        }
        for direction in Direction::BOTH {
            let which = direction.index();
            let initial = self.initial[which];
            for (id, line) in &mut self.summary.streams {
                let waits = line.sends(which) && line.credit(which, initial) <= 0;
                let open = line.gauge[which].open_since().filter(|_| waits);
                line.stalls[which].open_since = open;
                if let Some(from) = open {
                    later.push(Finding::Stall {
                        stream: Some(*id),
                        direction,
                        from,
                        to: None,
                    });
                }
            }
            let (bytes, updates) = (
                self.summary.data_bytes[which],
                self.summary.window_updates[direction.back().index()],
            );
            if self.has_windows && updates == 0 && bytes > UPDATE_EXPECTED_BYTES {
                later.push(Finding::NoWindowUpdates { direction, bytes });
            }
        }
        for (id, line) in &self.summary.streams {
            let requester = line.opened_by.map(Direction::index);
            let is_requested =
                requester.is_some_and(|requester| line.finished[requester].is_some());
            let answerable =
                requester.is_some_and(|requester| line.finished[1 - requester].is_none());
            if whole && is_requested && answerable && line.replied.is_none() && line.reset.is_none()
            {
                later.push(Finding::NeverReplied { stream: *id });
            }
        }
        for mut goaway in std::mem::take(&mut self.goaways) {
            let Finding::GoAway {
                direction,
                last_good,
                status,
                unprocessed_streams,
                ..
            } = &mut goaway
            else {
                continue;
            };
            // Streams of the other side after the last good stream.
            let other = direction.back();
            let lost = |(id, line): &(&u32, &StreamTimeline)| {
                **id > *last_good && line.opened_by == Some(other) && line.replied.is_none()
            };
            *unprocessed_streams = self.summary.streams.iter().filter(lost).count() as u64;
            if *unprocessed_streams > 0 || status.is_some_and(|status| status != GoAwayStatus::OK) {
                later.push(goaway);
            }
        }
        for finding in later {
            self.add_finding(finding);
        }
        if self.summary.last_frame < self.summary.began {
            self.summary.last_frame = at;
        }
        self.summary
    }
}

impl StreamTimeline {
    fn credit(&self, which: usize, initial: i64) -> i64 {
        let sent = i64::try_from(self.bytes[which]).unwrap_or(i64::MAX);
        initial
            .saturating_add(self.granted[which])
            .saturating_sub(sent)
    }

    /// True if the sender of `which` may still have data.
    fn sends(&self, which: usize) -> bool {
        self.finished[which].is_none() && self.reset.is_none()
    }
}

fn text_of(seen: &FrameRecord, of: impl Fn(&HeaderBlock) -> String) -> String {
    match &seen.headers {
        Some(Ok(block)) => of(block),
        _ => String::new(),
    }
}

/// Maximum length of a request's or response's text, characters.
const TEXT_CHARS: usize = 200;

fn first(block: &HeaderBlock, names: [&str; 2]) -> Option<String> {
    let value = names.iter().find_map(|name| block.get(name))?;
    Some(
        String::from_utf8_lossy(value)
            .chars()
            .take(TEXT_CHARS)
            .collect(),
    )
}

/// SPDY/3 names have a colon, SPDY/2 names have none.
fn request_text(block: &HeaderBlock) -> String {
    let method = first(block, [":method", "method"]);
    let path = first(block, [":path", "url"]);
    let host = first(block, [":host", "host"]);
    match (method, path) {
        (Some(method), Some(path)) => format!("{method} {}{path}", host.unwrap_or_default()),
        _ => {
            let pair = |(name, value): (&[u8], &[u8])| {
                format!(
                    "{}={}",
                    String::from_utf8_lossy(name),
                    String::from_utf8_lossy(value)
                )
            };
            let pairs: Vec<_> = block.iter().take(8).map(pair).collect();
            pairs.join(" ").chars().take(TEXT_CHARS).collect()
        }
    }
}

fn answered(block: &HeaderBlock) -> String {
    first(block, [":status", "status"]).unwrap_or_default()
}
