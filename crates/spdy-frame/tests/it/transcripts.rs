//! Connections between other implementations decode to what another reader saw (`vectors/transcripts/`).

use spdy_frame::frame::{Frame, SettingId};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;
use spdy_testkit::transcripts::{self, ReferenceFrame, Side};

use crate::support::{self, Meaning};

/// A frame on one line; DATA apart, since it may be cut.
#[derive(Clone, Debug, PartialEq)]
enum Line {
    Data {
        stream: u32,
        bytes: usize,
        fin: bool,
    },
    Control(String),
}

/// Puts the pieces of DATA together that followed each other.
fn joined(lines: impl IntoIterator<Item = Line>) -> Vec<Line> {
    let mut joined: Vec<Line> = Vec::new();
    for line in lines {
        if let (
            Some(Line::Data { stream, bytes, fin }),
            Line::Data {
                stream: next,
                bytes: more,
                fin: ends,
            },
        ) = (joined.last_mut(), &line)
            && *stream == *next
            && !*fin
        {
            *bytes += more;
            *fin = *ends;
            continue;
        }
        joined.push(line);
    }
    joined
}

/// The expected line of the vector.
fn of_seen(seen: &ReferenceFrame) -> Line {
    let ReferenceFrame {
        flags,
        length,
        stream,
        ping,
        status,
        last_good,
        delta,
        ..
    } = seen;
    let kind = seen.r#type.as_str();
    let rest = match kind {
        "DATA" => {
            return Line::Data {
                stream: *stream,
                bytes: *length,
                fin: flags & 1 != 0,
            };
        }
        "SYN_STREAM" => format!(
            "{stream} of {} priority {} {}",
            seen.associated,
            seen.priority,
            block_of(seen)
        ),
        "SYN_REPLY" | "HEADERS" => format!("{stream} {}", block_of(seen)),
        "RST_STREAM" => format!("{stream} {status}"),
        "SETTINGS" if seen.raw_entries.is_empty() => {
            let entries = seen.settings.iter().map(|entry| {
                let flags = entry.persist_value | entry.persisted << 1;
                (entry.id, flags, entry.value)
            });
            format!("{:?}", entries.collect::<Vec<_>>())
        }
        "SETTINGS" => {
            // SPDY/2: the id in 24 bits with the low byte first, flags, value (draft 2 and its errata).
            let entries = seen.raw_entries.iter().map(|raw| {
                let [a, b, c, flags, value @ ..] = &raw[..] else {
                    panic!("{raw:?}")
                };
                let value = value.try_into().expect("four bytes");
                let id = u32::from_le_bytes([*a, *b, *c, 0]);
                (id, *flags, u32::from_be_bytes(value))
            });
            format!("{:?}", entries.collect::<Vec<_>>())
        }
        "PING" => format!("{ping}"),
        "GOAWAY" => format!("{last_good} {status}"),
        "WINDOW_UPDATE" => format!("{stream} {delta}"),
        other => panic!("{other}"),
    };
    Line::Control(format!("{kind} flags {flags} length {length}: {rest}"))
}

fn block_of(seen: &ReferenceFrame) -> String {
    match (&seen.headers, &seen.tshark_error) {
        (_, Some(_)) => "unread".to_owned(),
        (headers, None) => format!("{:?}", headers.as_deref().unwrap_or_default()),
    }
}

/// Our line; `unread` if the other reader gave up on the block.
fn of_meaning((frame, headers): &Meaning, version: Version, length: usize, unread: bool) -> Line {
    let block = |headers: &Option<HeaderBlock>| {
        let headers = headers.as_ref().expect("a block");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let pairs = headers
            .iter()
            .map(|(name, value)| (text(name), text(value)));
        match unread {
            true => "unread".to_owned(),
            false => format!("{:?}", pairs.collect::<Vec<_>>()),
        }
    };
    let (kind, flags, rest) = match frame {
        Frame::Data(data) => {
            return Line::Data {
                stream: data.stream_id.value(),
                bytes: data.payload.len(),
                fin: data.fin,
            };
        }
        Frame::SynStream(syn) => {
            let flags = u8::from(syn.fin) | u8::from(syn.unidirectional) << 1;
            let priority = syn.priority.field(version);
            let (stream, of) = (syn.stream_id.value(), syn.associated_to.value());
            let rest = format!("{stream} of {of} priority {priority} {}", block(headers));
            ("SYN_STREAM", flags, rest)
        }
        Frame::SynReply(reply) => {
            let rest = format!("{} {}", reply.stream_id.value(), block(headers));
            ("SYN_REPLY", u8::from(reply.fin), rest)
        }
        Frame::Headers(more) => {
            let rest = format!("{} {}", more.stream_id.value(), block(headers));
            ("HEADERS", u8::from(more.fin), rest)
        }
        Frame::RstStream(reset) => {
            let rest = format!("{} {}", reset.stream_id.value(), reset.status.0);
            ("RST_STREAM", 0, rest)
        }
        Frame::Settings(settings) => {
            let entries = settings.entries.iter().map(|entry| {
                let SettingId(id) = entry.id;
                (id, entry.flags, entry.value)
            });
            let rest = format!("{:?}", entries.collect::<Vec<_>>());
            ("SETTINGS", u8::from(settings.clear), rest)
        }
        Frame::Ping(ping) => ("PING", 0, ping.id.to_string()),
        Frame::GoAway(goaway) => {
            let status = goaway.status.map_or(0, |status| status.0);
            (
                "GOAWAY",
                0,
                format!("{} {status}", goaway.last_good.value()),
            )
        }
        Frame::WindowUpdate(update) => {
            let rest = format!("{} {}", update.stream_id.value(), update.delta);
            ("WINDOW_UPDATE", 0, rest)
        }
        other => panic!("{other:?}"),
    };
    Line::Control(format!("{kind} flags {flags} length {length}: {rest}"))
}

/// Lengths of the whole frames in `bytes`, read off their heads; `None` for DATA.
fn lengths(mut bytes: &[u8]) -> Vec<Option<usize>> {
    let mut lengths = Vec::new();
    while let [first, _, _, _, _, a, b, c, rest @ ..] = bytes {
        let length = usize::try_from(u32::from_be_bytes([0, *a, *b, *c])).expect("24 bits");
        let Some((_, behind)) = rest.split_at_checked(length) else {
            break;
        };
        lengths.push((first & 0x80 != 0).then_some(length));
        bytes = behind;
    }
    lengths
}

fn check(version: Version, side: &Side, sizes: impl IntoIterator<Item = usize>, context: &str) {
    let mut rest = &side.bytes[..];
    let pieces = sizes.into_iter().map_while(|size| {
        let piece;
        (piece, rest) = rest.split_at(size.min(rest.len()));
        (!piece.is_empty()).then_some(piece)
    });
    let frames = support::decode_pieces(version, pieces)
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    let lengths = lengths(&side.bytes);
    let seen = &side.frames[..lengths.len()];
    let control = seen.iter().filter(|seen| seen.r#type != "DATA");
    let mut unread = control.map(|seen| seen.tshark_error.is_some());
    let mut control_lengths = lengths.into_iter().flatten();
    let actual = support::meanings(version, frames, context)
        .iter()
        .map(|meaning| match &meaning.0 {
            Frame::Data(_) => of_meaning(meaning, version, 0, false),
            _ => {
                let length = control_lengths
                    .next()
                    .expect("a control frame for each decoded one");
                let unread = unread.next().expect("as many frames as were captured");
                of_meaning(meaning, version, length, unread)
            }
        })
        .collect::<Vec<_>>();
    let expected = joined(seen.iter().map(of_seen));
    assert_eq!(joined(actual), expected, "{context}");
}

#[test]
fn recorded_connections_decode_as_another_reader_saw_them() {
    let (mut frames, mut cut) = (0, Vec::new());
    let transcripts = transcripts::all();
    for transcript in &transcripts {
        let version = support::version(transcript.version);
        for (name, side) in [
            ("client", &transcript.client),
            ("server", &transcript.server),
        ] {
            let context = format!("{} {name}", transcript.name);
            assert_eq!(
                side.pieces.iter().sum::<usize>(),
                side.bytes.len(),
                "{context}"
            );
            check(version, side, side.pieces.iter().copied(), &context);
            for size in [1, 7, side.bytes.len()] {
                let context = format!("{context} in pieces of {size}");
                check(version, side, std::iter::repeat(size), &context);
            }
            frames += side.frames.len();
            let whole = lengths(&side.bytes).len();
            if whole < side.frames.len() {
                cut.push((context, whole));
            }
        }
    }
    assert_eq!((transcripts.len(), frames), (8, 262));
    // Its bytes end within the thirteenth frame of sixteen that were seen.
    let short = "node-spdy_to_node-spdy_spdy3.1_tls server".to_owned();
    assert_eq!(cut, [(short, 12)]);
}
