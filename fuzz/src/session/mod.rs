//! Properties of a session (`spdy-session`): arbitrary bytes of a peer, times, and calls of the owner.
//!
//! Two machines of one configuration run one script; one receives the bytes of each step whole,
//! the other split. After every step of the script:
//!
//! - both have the same events, output and counters;
//! - the output consists of complete frames of the version; their blocks inflate in order, IDs increase, and nothing
//!   follows a FIN;
//! - an expired deadline is cleared, so that no driver loops;
//! - `Closed` is the last event and occurs once; the end of the transport ends the session;
//! - the DATA that the owner received and has not consumed is within the windows;
//! - no more memory is held than `held_at_most` returns.

mod machine;
pub mod peer;

use std::time::Duration;

use spdy_clock::Instant;
use spdy_frame::compress::Compression;
use spdy_frame::version::Version;
use spdy_session::config::{Config, PushPolicy, Role, SettingsTiming};

use crate::choices::Choices;
use crate::memory;
use machine::{Command, Machine};

/// Runs the script on a server.
pub fn check_server(input: &[u8]) {
    check(Role::Server, input);
}

/// Runs the script on a client.
pub fn check_client(input: &[u8]) {
    check(Role::Client, input);
}

/// Causes of memory use in a session, in addition to the received bytes.
#[derive(Default)]
struct Cost {
    /// Plain bytes of the received header blocks.
    plain_bytes: usize,
    /// Commands of its owner.
    commands: usize,
    /// Maximum number of bytes written at once.
    written_bytes: usize,
}

/// Bytes of heap that a session may hold: tables of both compressors, an incomplete frame; for the input, entries in
/// the lists of streams and events, and the headers themselves; for the owner's commands, streams and headers.
/// Payloads are shared with the owner.
fn held_at_most(wire_bytes: usize, cost: &Cost) -> usize {
    512 * 1024 + 100 * wire_bytes + 4 * cost.plain_bytes + 2048 * cost.commands
}

fn check(role: Role, input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let config = configure(role, &mut choices);
    let written;
    let wire = if choices.flag() {
        written = peer::write(config.version, wire);
        &written[..]
    } else {
        wire
    };
    let mut cost = Cost::default();
    let held = memory::held_by(|| cost = run(&config, choices, wire));
    // The bytes written at once exist in three copies each, in buffers that double in size.
    let limit = 2 * held_at_most(wire.len(), &cost) + 12 * cost.written_bytes;
    assert!(
        held <= limit,
        "two sessions held {held} bytes, limit {limit}"
    );
}

/// Runs the script on both machines.
fn run(config: &Config, mut choices: Choices<'_>, mut wire: &[u8]) -> Cost {
    /// Number of steps after which the remaining bytes arrive at once.
    const STEPS: usize = 2000;
    let mut now = Instant::from_millis(1_000);
    let mut whole = Machine::new(config.clone(), now);
    let mut cut = Machine::new(config.clone(), now);
    let patient = choices.flag();
    let mut commands = 0;
    for step in 0.. {
        let len = if step < STEPS {
            choices.length()
        } else {
            usize::MAX
        };
        let (bytes, rest) = wire.split_at(len.min(wire.len()));
        wire = rest;
        whole.input(now, &[bytes]);
        cut.input_shared(now, &choices.cut(bytes));
        for _ in 0..choices.byte() % 4 {
            let command = Command::read(&mut choices);
            commands += 1;
            whole.command(now, command);
            cut.command(now, command);
        }
        // A driver that neither writes nor polls events for a while; it does both before it reads again.
        let busy = patient && choices.flag() && whole.accepts_input() && cut.accepts_input();
        if !busy {
            let (one, other) = (whole.drain(now), cut.drain(now));
            assert_eq!(one, other, "step {step}, split");
            whole.assert_alike(&cut);
        }
        if wire.is_empty() {
            break;
        }
        now += choices.pick(&WAITS);
        whole.pass(now);
        cut.pass(now);
    }
    if choices.flag() {
        whole.end(now);
        cut.end(now);
    }
    assert_eq!(whole.drain(now), cut.drain(now), "at the end, split");
    whole.assert_alike(&cut);
    Cost {
        plain_bytes: whole.plain_bytes(),
        commands,
        written_bytes: whole.written_bytes(),
    }
}

const WAITS: [Duration; 8] = [
    Duration::ZERO,
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(49),
    Duration::from_millis(50),
    Duration::from_secs(4),
    Duration::from_secs(11),
    Duration::from_secs(200),
];

/// One of many configurations: the default and edge cases.
fn configure(role: Role, choices: &mut Choices<'_>) -> Config {
    let mut config = Config::new(role, choices.pick(&Version::ALL));
    config.compression = choices.pick(&[
        Compression::CrimeSafe,
        Compression::CrimeSafe,
        Compression::Zlib(0),
        Compression::Zlib(6),
    ]);
    config.push = choices.pick(&[
        PushPolicy::Accept,
        PushPolicy::Refuse,
        PushPolicy::AcceptUnassociated,
    ]);
    config.settings_timing = choices.pick(&[
        SettingsTiming::Immediate,
        SettingsTiming::AfterPeer,
        SettingsTiming::Never,
    ]);
    let odd = choices.byte();
    config.flow_control = odd & 1 == 0;
    config.detect_session_window = odd & 2 != 0;
    config.early_goaway = odd & 4 != 0;
    config.keepalive_interval = (odd & 8 != 0).then_some(Duration::from_secs(5));
    config.drain_timeout = (odd & 16 != 0).then_some(Duration::from_secs(20));
    if odd & 32 != 0 {
        config.max_concurrent_streams = 2;
        config.assumed_peer_streams = 2;
        config.headers_per_stream = 1;
        config.header_bytes_per_stream = 40;
        config.ping_echoes = 2;
    }
    if odd & 64 != 0 {
        config.event_queue = 3;
        config.control_queue_frames = 3;
        config.floods.empty_frames = 3;
        config.floods.settings_frames = 3;
        config.floods.refused_streams = 3;
        config.floods.aborted_streams = 3;
        config.floods.stray_frames = 3;
    }
    if odd & 128 != 0 {
        config.initial_window_bytes = 70_000;
        config.session_window_bytes = Some(66_000);
        config.data_frame_bytes = 100;
        config.send_buffer_bytes = 300;
        config.small_data_bytes = 150;
        config.starvation_guard = 2;
    }
    config
}
