//! Whole connections between other implementations, played to our machine on either side.

use bytes::BytesMut;
use spdy_clock::Instant;
use spdy_frame::version::Version;
use spdy_session::config::{Config, PushPolicy, Role, SettingsTiming};
use spdy_session::event::{Event, ResetCause};
use spdy_session::session::{Session, StreamOptions};
use spdy_testkit::fields::Fields;
use spdy_testkit::live::{self, Connection};

use crate::support::some_headers;

fn config(role: Role, connection: &Connection) -> Config {
    let version = match connection.version.as_str() {
        "2" => Version::V2,
        "3" => Version::V3,
        _ => Version::V31,
    };
    let mut config = Config::new(role, version);
    config.push = PushPolicy::Accept;
    if connection.version.contains("Upgrade") {
        (config.flow_control, config.settings_timing) = (false, SettingsTiming::Never);
    }
    config
}

fn syn_streams(frames: &[Fields]) -> Vec<u32> {
    let id = |frame: &Fields| match frame {
        Fields::SynStream { stream_id, .. } => Some(*stream_id),
        _ => None,
    };
    frames.iter().filter_map(id).collect()
}

/// Feeds `bytes` in pieces, consumes all received DATA, and returns the events.
fn play(session: &mut Session, bytes: &[u8]) -> Vec<Event> {
    let (now, mut out, mut events) = (Instant::ZERO, BytesMut::new(), Vec::new());
    for piece in bytes.chunks(777) {
        session.handle_input(now, piece);
        while let Some(event) = session.poll_event() {
            match &event {
                Event::Opened { id, .. } => {
                    session.reply(*id, &some_headers(), false);
                }
                Event::Data { id, data, .. } => session.consume(*id, data.len()),
                _ => {}
            }
            events.push(event);
        }
        while session.poll_transmit(now, &mut out) {}
    }
    events
}

fn assert_no_fault(name: &str, events: &[Event]) {
    for event in events {
        let is_ours = matches!(
            event,
            Event::Reset {
                cause: ResetCause::ByUs(_) | ResetCause::Stalled { .. },
                ..
            }
        );
        let failed = matches!(event, Event::Closed { error: Some(_) });
        assert!(!is_ours && !failed, "{name}: {event:?}");
    }
}

#[test]
fn our_server_understands_every_recorded_client() {
    for connection in live::all() {
        let mut server = Session::new(config(Role::Server, &connection), Instant::ZERO);
        let events = play(&mut server, &connection.client.bytes);
        assert_no_fault(&connection.id, &events);
        let opened_streams: Vec<u32> = events
            .iter()
            .filter_map(|event| match event {
                Event::Opened { id, .. } => Some(id.value()),
                _ => None,
            })
            .collect();
        assert_eq!(
            opened_streams,
            syn_streams(&connection.client.frames),
            "{}",
            connection.id
        );
    }
}

#[test]
fn our_client_understands_every_recorded_server() {
    for connection in live::all() {
        let mut client = Session::new(config(Role::Client, &connection), Instant::ZERO);
        let requested_streams = syn_streams(&connection.client.frames);
        // the recorded client may have skipped IDs: those streams are opened and removed
        for stream in (1..=requested_streams.iter().copied().max().unwrap_or(0)).step_by(2) {
            let id = client
                .open(&some_headers(), StreamOptions::default())
                .expect("room for a recording");
            assert_eq!(id.value(), stream);
        }
        let mut out = BytesMut::new();
        while client.poll_transmit(Instant::ZERO, &mut out) {}
        let events = play(&mut client, &connection.server.bytes);
        assert_no_fault(&connection.id, &events);
        let replies = |frame: &&Fields| matches!(frame, Fields::SynReply { .. });
        let expected = connection.server.frames.iter().filter(replies).count();
        let actual = events
            .iter()
            .filter(|event| matches!(event, Event::Reply { .. }))
            .count();
        assert_eq!(actual, expected, "{}", connection.id);
    }
}
