//! The vocabulary of `expect`: what each outcome requires of a run.

use spdy::{Frame, GoAwayStatus, HeaderBlock, RstStatus, StreamId, Version};
use spdy_testkit::conformance::{Case, Receiver};

use super::run_result::{ReceivedFrame, Run, decode, version};

/// True if `run` ended in `outcome`.
pub(crate) fn is(outcome: &str, case: &Case, run: &Run) -> bool {
    let words: Vec<&str> = outcome.split(':').collect();
    let look = Look { case, run };
    match words[..] {
        ["accept" | "ignore_flags"] => {
            let parts = [&case.setup, &case.input].map(|part| part.0.as_slice());
            look.resets().is_empty() && look.lives() && look.all_served(&parts.concat())
        }
        ["ignore"] => look.resets().is_empty() && look.lives() && look.all_served(&case.setup.0),
        ["rst", stream, code] if !code.contains(' ') => {
            look.resets() == [(id(stream), status(code))] && look.lives()
        }
        // `rst:1:CODE then accept:3`
        ["rst", stream, code, other_stream] => {
            let code = code.trim_end_matches(" then accept");
            look.resets() == [(id(stream), status(code))]
                && look.lives()
                && look.is_served(id(other_stream))
        }
        ["session", name] => look.closed_with(name),
        ["http", code, stream] => {
            look.resets().is_empty()
                && look.lives()
                && look.reply(id(stream)).is_some_and(|status| status == code)
        }
        ["echo", ping] => look.echoes(number(ping)),
        ["close_stream", stream] => {
            look.resets().is_empty() && look.lives() && look.reply(id(stream)).is_none()
        }
        ["retry_stream", "1"] => {
            matches!(&run.response, Some(Err(failed)) if failed.retry_safe)
        }
        ["accept", "reply_only"] => {
            look.resets().is_empty() && look.reply(id("1")).is_some() && look.data_bytes() == 0
        }
        ["accept", "window_updates"] => {
            look.granted(id("1")) && (version(case) != Version::V31 || look.granted(StreamId::ZERO))
        }
        ["accept", data] => {
            let bytes = data.trim_start_matches("data_");
            look.resets().is_empty() && look.data_bytes() == number(bytes) as usize
        }
        ["accept_if_window_was_raised"] => {
            look.resets().is_empty() && !look.has_goaway() && look.raised_windows()
        }
        _ => panic!("{}: unknown outcome {outcome}", case.id),
    }
}

fn number(word: &str) -> u32 {
    word.parse().expect("a number")
}

fn id(word: &str) -> StreamId {
    StreamId::new(number(word))
}

fn status(name: &str) -> RstStatus {
    match name {
        "PROTOCOL_ERROR" => RstStatus::PROTOCOL_ERROR,
        "INVALID_STREAM" => RstStatus::INVALID_STREAM,
        "REFUSED_STREAM" => RstStatus::REFUSED_STREAM,
        "UNSUPPORTED_VERSION" => RstStatus::UNSUPPORTED_VERSION,
        "CANCEL" => RstStatus::CANCEL,
        "FLOW_CONTROL_ERROR" => RstStatus::FLOW_CONTROL_ERROR,
        "STREAM_IN_USE" => RstStatus::STREAM_IN_USE,
        "STREAM_ALREADY_CLOSED" => RstStatus::STREAM_ALREADY_CLOSED,
        "FRAME_TOO_LARGE" => RstStatus::FRAME_TOO_LARGE,
        other => panic!("unknown status {other}"),
    }
}

/// Questions about a run.
struct Look<'a> {
    case: &'a Case,
    run: &'a Run,
}

impl Look<'_> {
    fn any(&self, mut is_match: impl FnMut(&Frame) -> bool) -> bool {
        self.run
            .frames
            .iter()
            .any(|received| is_match(&received.frame))
    }

    fn resets(&self) -> Vec<(StreamId, RstStatus)> {
        let reset = |received: &ReceivedFrame| match &received.frame {
            Frame::RstStream(rst) => Some((rst.stream_id, rst.status)),
            _ => None,
        };
        self.run.frames.iter().filter_map(reset).collect()
    }

    fn has_goaway(&self) -> bool {
        self.any(|frame| matches!(frame, Frame::GoAway(_)))
    }

    fn echoes(&self, ping: u32) -> bool {
        self.any(|frame| matches!(frame, Frame::Ping(seen) if seen.id == ping))
    }

    fn granted(&self, stream: StreamId) -> bool {
        self.any(|frame| matches!(frame, Frame::WindowUpdate(seen) if seen.stream_id == stream))
    }

    fn raised_windows(&self) -> bool {
        self.any(|frame| {
            let window = spdy_frame::frame::SettingId::INITIAL_WINDOW_SIZE;
            matches!(frame, Frame::Settings(settings)
                if settings.value(window).is_some_and(|bytes| bytes > 65_536))
        })
    }

    fn data_bytes(&self) -> usize {
        let length = |received: &ReceivedFrame| match &received.frame {
            Frame::Data(data) => data.payload.len(),
            _ => 0,
        };
        self.run.frames.iter().map(length).sum()
    }

    /// The status that a stream was answered with.
    fn reply(&self, stream: StreamId) -> Option<&str> {
        let reply = self.run.frames.iter().find(
            |received| matches!(&received.frame, Frame::SynReply(reply) if reply.stream_id == stream),
        )?;
        let names = [":status", "status"];
        let status = names.iter().find_map(|name| reply.headers.get(name))?;
        std::str::from_utf8(status.get(..3)?).ok()
    }

    /// True if a stream was answered with 200, and completed.
    fn is_served(&self, stream: StreamId) -> bool {
        let has_fin = self.any(|frame| match frame {
            Frame::SynReply(reply) => reply.stream_id == stream && reply.fin,
            Frame::Data(data) => data.stream_id == stream && data.fin,
            _ => false,
        });
        has_fin && self.reply(stream) == Some("200")
    }

    /// True if the session went on as before: it answered the request in `then`.
    fn lives(&self) -> bool {
        match self.case.receiver {
            // After the peer's GOAWAY it may have drained, and ended in order.
            _ if self.case.then.0.is_empty() || self.peer_left() => !self.failed(),
            Receiver::Server => !self.has_goaway() && self.echoes(101) && self.is_served(id("101")),
            Receiver::Client => !self.has_goaway() && self.echoes(102),
        }
    }

    fn peer_left(&self) -> bool {
        let parts = [&self.case.setup, &self.case.input].map(|part| part.0.as_slice());
        let frames = decode(version(self.case), &parts.concat());
        frames
            .iter()
            .any(|received| matches!(received.frame, Frame::GoAway(_)))
    }

    /// True if the session ended with an error. (GOAWAY of SPDY/2 has no reason.)
    fn failed(&self) -> bool {
        let is_failure = |frame: &Frame| match frame {
            Frame::GoAway(goaway) => goaway
                .status
                .is_some_and(|status| status != GoAwayStatus::OK),
            _ => false,
        };
        self.any(is_failure)
    }

    /// Whether every request in `bytes` that may be answered was, and a client's request too.
    fn all_served(&self, bytes: &[u8]) -> bool {
        if self.case.receiver == Receiver::Client {
            return matches!(self.run.response, Some(Ok(_)));
        }
        let frames = decode(version(self.case), bytes);
        let has_fin = |stream_id: StreamId| {
            frames.iter().any(|received| match &received.frame {
                Frame::SynStream(syn) => syn.stream_id == stream_id && syn.fin,
                Frame::Data(data) => data.stream_id == stream_id && data.fin,
                Frame::Headers(headers) => headers.stream_id == stream_id && headers.fin,
                _ => false,
            })
        };
        let was_reset = |stream_id: StreamId| {
            frames.iter()
                .any(|received| matches!(&received.frame, Frame::RstStream(rst) if rst.stream_id == stream_id))
        };
        frames.iter().all(|received| match &received.frame {
            Frame::SynStream(syn) => {
                let stream = syn.stream_id;
                holds(&received.headers)
                    || !has_fin(stream)
                    || was_reset(stream)
                    || self.is_served(stream)
            }
            _ => true,
        })
    }

    /// True if the session ended with this status.
    fn closed_with(&self, name: &str) -> bool {
        let expected = match name {
            "PROTOCOL_ERROR" => GoAwayStatus::PROTOCOL_ERROR,
            // The text names it and gives it no number.
            "FLOW_CONTROL_ERROR" => return false,
            other => panic!("unknown status {other}"),
        };
        let matches_status = |frame: &Frame| match frame {
            Frame::GoAway(goaway) => goaway.status.is_none_or(|status| status == expected),
            _ => false,
        };
        self.run.closed && self.any(matches_status)
    }
}

/// True for a request that the server leaves unanswered.
pub(crate) fn holds(headers: &HeaderBlock) -> bool {
    let path = headers.get(":path").or_else(|| headers.get("url"));
    path.is_some_and(|path| path == b"/hold")
}
