//! What `spdy inspect` shows: frames as `spdy fetch -v` does, and a time line when a session ends.

use spdy_clock::Instant;
use spdy_frame::frame::Frame;
use spdy_inspect::direction::Direction;
use spdy_inspect::event::{Event, EventKind, FrameRecord, SessionInfo};
use spdy_inspect::inspector::{Counts, Inspector};
use spdy_inspect::timeline::{StreamTimeline, Summary};

use super::inspect_event::InspectEvent;
use crate::output::frame_text;
use crate::output::{BAD, BOLD, Cell, DIM, Printer, Table, WARN, escape, format_count};

/// Prints events as they arrive; it keeps no data of a session after its end.
pub(crate) struct InspectPrinter<'a> {
    printer: &'a Printer,
    json: bool,
    summary_only: bool,
    sessions: u64,
    sealed: u64,
}

impl<'a> InspectPrinter<'a> {
    pub(crate) fn new(printer: &'a Printer, json: bool, summary_only: bool) -> Self {
        Self {
            printer,
            json,
            summary_only,
            sessions: 0,
            sealed: 0,
        }
    }

    /// Sessions that have ended.
    pub(crate) fn sessions(&self) -> u64 {
        self.sessions
    }

    /// Prints all pending events.
    pub(crate) fn drain(&mut self, inspector: &mut Inspector) -> anyhow::Result<()> {
        while let Some(event) = inspector.poll_event() {
            self.show(event)?;
        }
        Ok(())
    }

    fn show(&mut self, event: Event) -> anyhow::Result<()> {
        let Event {
            at,
            connection,
            what,
        } = event;
        let print_event = |text: String| {
            let ms = at.as_millis_f64();
            self.printer.line(format_args!(
                "{DIM}{ms:>9.3} ms *{DIM:#} {DIM}[{connection}]{DIM:#} {text}"
            ))
        };
        match what {
            EventKind::SessionStart(begun) if !self.json && !self.summary_only => {
                print_event(beginning(&begun))
            }
            EventKind::Frame(seen) if self.summary_only => {
                drop(seen);
                Ok(())
            }
            EventKind::Frame(seen) if self.json => self
                .printer
                .json(&InspectEvent::frame(at, connection, &seen)),
            EventKind::Frame(seen) => self.printer.line(frame_line(at, connection, &seen)),
            EventKind::Unreadable(reason) if self.json => self.printer.json(&InspectEvent::Error {
                connection,
                at_ms: at.as_millis_f64(),
                reason,
            }),
            EventKind::Unreadable(reason) => {
                print_event(format!("{BAD}{}{BAD:#}", escape(&reason)))
            }
            EventKind::EncryptedTls {
                server_name,
                offered,
                reason,
            } => {
                self.sealed += 1;
                if self.json {
                    return self.printer.json(&InspectEvent::Encrypted {
                        connection,
                        at_ms: at.as_millis_f64(),
                        server_name,
                        alpn_offered: offered,
                        reason,
                    });
                }
                // In a capture with a lot of other TLS traffic, only what may be SPDY gets a line.
                if !offered.iter().any(|name| name.starts_with("spdy/")) {
                    return Ok(());
                }
                let name = server_name.unwrap_or_else(|| "an unnamed server".to_owned());
                let text = format!("TLS to {name}, offering {}: {reason}", offered.join(", "));
                print_event(format!("{WARN}{}{WARN:#}", escape(&text)))
            }
            EventKind::Channels { target, protocol } => {
                if self.json {
                    return self.printer.json(&InspectEvent::Channels {
                        connection,
                        at_ms: at.as_millis_f64(),
                        target,
                        protocol,
                    });
                }
                let target = target.unwrap_or_else(|| "a connection".to_owned());
                let text = format!("{target} is a WebSocket of {protocol}: streams without SPDY");
                print_event(escape(&text).to_string())
            }
            EventKind::SessionEnd(summary) => {
                self.sessions += 1;
                if self.json {
                    return self
                        .printer
                        .json(&InspectEvent::session(connection, &summary));
                }
                self.time_line(connection, &summary)
            }
            EventKind::SessionStart(_) => Ok(()),
        }
    }

    /// Prints a summary of the capture.
    pub(crate) fn sum_up(&self, counts: &Counts) {
        let note = |text: String| {
            self.printer
                .note(format_args!("{WARN}note{WARN:#}: {text}"));
        };
        let notes = [
            (
                self.sealed,
                "TLS connection",
                "not decrypted (see --keylog)",
            ),
            (
                counts.cut,
                "packet",
                "truncated: capture with a longer snapshot length",
            ),
            (counts.fragments, "IP fragment", "skipped"),
            (counts.damaged, "packet", "shorter than its headers"),
            (
                counts.other_links,
                "packet",
                "with an unsupported link type",
            ),
            (
                counts.evicted,
                "connection",
                "dropped: too many at the same time",
            ),
        ];
        for (count, noun, rest) in notes {
            if count > 0 {
                note(format!("{} {rest}", format_count(count, noun)));
            }
        }
    }

    fn time_line(&self, connection: u64, summary: &Summary) -> anyhow::Result<()> {
        let mut text = format!(
            "\n{BOLD}session {connection}{BOLD:#}: {}",
            beginning(&summary.info)
        );
        if summary.timed {
            text.push_str(&format!(
                ", {} to {}",
                ms(Some(summary.began)),
                ms(Some(summary.last_frame))
            ));
        }
        self.printer.line(text)?;
        for direction in Direction::BOTH {
            let which = direction.index();
            let segments = summary.segments[which];
            let mut text = format!(
                "  {direction}: {}, {} of DATA, {} by the {}",
                format_count(summary.frames[which], "frame"),
                format_count(summary.data_bytes[which], "byte"),
                format_count(
                    summary.window_updates[direction.back().index()],
                    "WINDOW_UPDATE"
                ),
                direction.receiver()
            );
            let stalls = &summary.session_stalls[which];
            if stalls.count > 0 || stalls.open_since.is_some() {
                text.push_str(&format!(
                    ", session window empty for {:.3} ms in {}",
                    stalls.nanos as f64 / 1e6,
                    format_count(
                        stalls.count + u64::from(stalls.open_since.is_some()),
                        "stall"
                    )
                ));
            }
            for (count, what) in [
                (segments.retransmitted, "retransmission"),
                (segments.overlapping, "overlap"),
                (segments.missing_bytes, "missing byte"),
            ] {
                if count > 0 {
                    text.push_str(&format!(", {}", format_count(count, what)));
                }
            }
            self.printer.line(text)?;
        }
        if !summary.streams.is_empty() {
            self.printer.line(streams_table(summary))?;
        }
        if summary.omitted_streams > 0 {
            let more = format_count(summary.omitted_streams, "more stream");
            self.printer.line(format_args!("  and {more}"))?;
        }
        for finding in &summary.findings {
            let text = finding.to_string();
            let text = escape(&text);
            self.printer
                .line(format_args!("  {WARN}!{WARN:#} {text}"))?;
        }
        if summary.omitted_findings > 0 {
            let more = summary.omitted_findings;
            self.printer
                .line(format_args!("  {WARN}!{WARN:#} and {more} more"))?;
        }
        Ok(())
    }
}

fn beginning(begun: &SessionInfo) -> String {
    let version = begun
        .version
        .map_or_else(|| "SPDY/3 or 3.1".to_owned(), |version| version.to_string());
    let ends = match (begun.client, begun.server) {
        (Some(client), Some(server)) => format!("{client} -> {server} uses "),
        _ => String::new(),
    };
    let tls = if begun.tls { " in TLS" } else { "" };
    format!("{ends}{BOLD}{version}{BOLD:#}{tls}, by {}", begun.found)
}

/// A time as the text of a cell.
fn ms(at: Option<Instant>) -> String {
    at.map_or_else(
        || "-".to_owned(),
        |at| format!("{:.3} ms", at.as_millis_f64()),
    )
}

fn streams_table(summary: &Summary) -> Table {
    let mut head = vec![Cell::number("stream")];
    if summary.timed {
        head.extend(["opened", "replied", "client fin", "server fin"].map(Cell::number));
    }
    head.extend(["to server", "to client"].map(Cell::number));
    if summary.timed {
        head.push(Cell::number("stalled"));
    }
    head.extend(["end", "request and response"].map(Cell::word));
    let mut table = Table::new(head);
    for (id, line) in &summary.streams {
        let mut row = vec![Cell::number(id)];
        if summary.timed {
            let [client, server] = line.finished;
            row.extend([line.opened, line.replied, client, server].map(|at| Cell::number(ms(at))));
        }
        row.extend(line.bytes.map(Cell::number));
        if summary.timed {
            let nanos: u64 = line.stalls.iter().map(|stalls| stalls.nanos).sum();
            let open = line.stalls.iter().any(|stalls| stalls.open_since.is_some());
            row.push(Cell::number(match (nanos, open) {
                (0, false) => "-".to_owned(),
                (0, true) => "to the end".to_owned(),
                (nanos, open) => {
                    let more = if open { "+" } else { "" };
                    format!("{:.3} ms{more}", nanos as f64 / 1e6)
                }
            }));
        }
        row.push(Cell::word(end_of(line)));
        let answered = match line.answered.as_str() {
            "" => String::new(),
            answered => format!(" -> {answered}"),
        };
        row.push(Cell::word(format!("{}{answered}", line.request)));
        table.row(row);
    }
    table
}

fn end_of(line: &StreamTimeline) -> String {
    match (line.reset, line.finished) {
        (Some((at, by, status)), _) => {
            format!("{status} by {} at {}", by.sender(), ms(Some(at)))
        }
        (None, [Some(_), Some(_)]) => "finished".to_owned(),
        (None, [Some(_), None]) => "server open".to_owned(),
        (None, [None, Some(_)]) => "client open".to_owned(),
        (None, [None, None]) => "open".to_owned(),
    }
}

fn frame_line(at: Instant, connection: u64, seen: &FrameRecord) -> String {
    let what = match &seen.frame {
        Frame::Data(frame) => {
            let missing = match seen.missing_bytes {
                0 => String::new(),
                missing => format!(" {BAD}({missing} not in the capture){BAD:#}"),
            };
            frame_text::data(frame, seen.len_bytes) + &missing
        }
        frame => frame_text::frame(seen.version, frame, seen.plain_bytes),
    };
    let mut below = match &seen.headers {
        Some(Ok(block)) => frame_text::block(block),
        Some(Err(reason)) => vec![format!(
            "{BAD}cannot decode the headers: {}{BAD:#}",
            escape(reason)
        )],
        None => Vec::new(),
    };
    if let Frame::Data(frame) = &seen.frame
        && !frame.payload.is_empty()
    {
        below.push(format!("{DIM}{}{DIM:#}", frame.payload.escape_ascii()));
    }
    let to_server = seen.direction == Direction::ToServer;
    frame_text::line(at, to_server, &format!("[{connection}] "), &what, &below)
}
