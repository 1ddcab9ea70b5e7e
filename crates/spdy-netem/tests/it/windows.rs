//! Windows: acknowledgements and the receive window, and the sender's reaction.

use std::io::ErrorKind;
use std::time::Duration;

use spdy_clock::Instant;
use spdy_netem::path::{Direction, PathConfig};
use spdy_netem::tcp::{Tcp, TcpConfig};

use crate::support::exchange::{Silent, SlowReader, Twice, data, download, path, world};
use crate::support::{Apps, MS, World, at_ms};

fn first_ack_after_data(tcp: TcpConfig, answer: usize) -> Duration {
    let mut world = world(&path(20), tcp);
    world.run(
        &mut SlowReader::new(answer, Instant::FAR_FUTURE),
        at_ms(500),
    );
    let last = data(&world).last().expect("data").arrives.expect("arrives");
    let acks = world
        .sent(Direction::Up)
        .map(|seen| seen.at)
        .filter(|at| *at >= last);
    acks.min().expect("an acknowledgement") - last
}

#[test]
fn a_lone_segment_is_acknowledged_after_40_to_44_ms_and_a_pair_at_once() {
    let slow = TcpConfig {
        quick_acks: 0,
        ..TcpConfig::today()
    };
    let delay = first_ack_after_data(slow, 100);
    assert!((40 * MS..=44 * MS).contains(&delay), "{delay:?}");
    let of_2013 = TcpConfig {
        coarse_timers: false,
        ..slow
    };
    let delay = first_ack_after_data(of_2013, 100);
    assert!((36 * MS..=40 * MS).contains(&delay), "{delay:?}");
    assert_eq!(first_ack_after_data(slow, 2 * 1_448), Duration::ZERO);
    assert_eq!(
        first_ack_after_data(TcpConfig::today(), 100),
        Duration::ZERO,
        "the first are quick"
    );
    let never = TcpConfig {
        delayed_ack: false,
        ..slow
    };
    assert_eq!(first_ack_after_data(never, 100), Duration::ZERO);
}

#[test]
fn a_closed_window_is_probed_at_growing_intervals_until_it_opens() {
    let tcp = TcpConfig {
        receive_buffer_bytes: 64 * 1024,
        max_receive_buffer_bytes: 64 * 1024,
        ..TcpConfig::today()
    };
    let mut world = world(&path(100), tcp);
    let mut apps = SlowReader::new(300_000, at_ms(10_000));
    world.run(&mut apps, at_ms(60_000));
    assert_eq!(apps.read, 300_000);
    let probes: Vec<_> = world
        .sent(Direction::Down)
        .filter(|seen| {
            seen.at > at_ms(500) && seen.at < at_ms(10_000) && seen.segment.payload.is_empty()
        })
        .map(|seen| seen.at)
        .collect();
    assert_eq!(world.server.stats().window_probes as usize, probes.len());
    let gaps: Vec<_> = probes
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_millis())
        .collect();
    assert!(gaps.len() >= 3, "{gaps:?}");
    assert!(
        gaps.windows(2)
            .all(|pair| pair[1].abs_diff(2 * pair[0]) <= 256),
        "{gaps:?}"
    );
    assert_eq!(world.server.stats().retransmits, 0, "nothing was lost");
}

/// Regression: the receiver is gone, and the sender probed it for ever.
#[test]
fn unanswered_window_probes_stop_at_the_retry_limit() {
    let tcp = TcpConfig {
        receive_buffer_bytes: 64 * 1024,
        max_receive_buffer_bytes: 64 * 1024,
        data_retries: 4,
        ..TcpConfig::today()
    };
    let probes = |answers: usize| {
        let mut world = world(&path(100), tcp);
        let mut probes = 0;
        world.takes = Box::new(move |way, _, segment| {
            let is_probe = way == Direction::Down && segment.payload.is_empty() && segment.seq > 1;
            probes += usize::from(is_probe);
            is_probe && probes > answers
        });
        let mut apps = SlowReader::new(300_000, Instant::FAR_FUTURE);
        world.run(&mut apps, at_ms(3_600_000));
        assert_eq!(world.server.error(), Some(ErrorKind::TimedOut));
        assert!(world.server.poll_timeout().is_none());
        world.server.stats().window_probes
    };
    assert_eq!(probes(0), 4);
    assert_eq!(probes(3), 3 + 4, "an answer restarts the count");
}

#[test]
fn the_receive_window_grows_so_that_it_never_limits_a_fast_path() {
    let fast = PathConfig::new(50_000_000, 50_000_000, 100 * MS);
    let (world, _) = download(&fast, TcpConfig::today(), 5_000_000, |_, _, _| false);
    let most = world
        .sent(Direction::Up)
        .map(|seen| seen.segment.window_bytes)
        .max()
        .expect("acks");
    assert!(
        most > 1_000_000,
        "625 kB are in flight; the window came to {most}"
    );
    let fixed = TcpConfig {
        receive_buffer_bytes: 64 * 1024,
        max_receive_buffer_bytes: 64 * 1024,
        ..TcpConfig::today()
    };
    let (world, _) = download(&fast, fixed, 500_000, |_, _, _| false);
    assert!(
        world
            .sent(Direction::Up)
            .all(|seen| seen.segment.window_bytes <= 64 * 1024)
    );
}

#[test]
fn without_a_window_scale_no_window_passes_64_kb() {
    let tcp = TcpConfig {
        window_scale: None,
        ..TcpConfig::today()
    };
    let (world, _) = download(&path(100), tcp, 1_000_000, |_, _, _| false);
    assert!(
        world
            .trace
            .iter()
            .all(|seen| seen.segment.window_bytes <= 65_535)
    );
}

/// Segments of the first burst after a pause that ends at `resumes_at`.
fn burst_after_idle(tcp: TcpConfig, resumes_at: Instant, part_bytes: usize) -> usize {
    let mut world = world(&path(100), tcp);
    let mut apps = Twice {
        written: 0,
        read: 0,
        resumes_at,
        part_bytes,
    };
    world.run(&mut apps, at_ms(60_000));
    data(&world).filter(|seen| seen.at == resumes_at).count()
}

#[test]
fn after_idleness_the_window_is_the_initial_one_again() {
    let burst = |tcp| burst_after_idle(tcp, at_ms(5_000), 100_000);
    assert_eq!(burst(TcpConfig::today()), 10);
    let keeps = TcpConfig {
        slow_start_after_idle: false,
        ..TcpConfig::today()
    };
    assert!(burst(keeps) > 40);
}

/// Regression: each part of a vectored write halved the window.
#[test]
fn a_pause_halves_the_window_once_for_a_write_in_parts() {
    let burst = |part_bytes| burst_after_idle(TcpConfig::today(), at_ms(1_000), part_bytes);
    let whole = burst(100_000);
    assert!((20..=40).contains(&whole), "halved once: {whole}");
    assert_eq!(burst(10_000), whole);
}

/// Regression: a pause as long as the timeout halved the window. Linux counts both in jiffies of 4 ms, and the timeout is rounded up.
#[test]
fn a_pause_is_compared_with_the_timeout_in_whole_jiffies() {
    let burst = |ms| burst_after_idle(TcpConfig::today(), at_ms(ms), 100_000);
    let whole = burst(600);
    let first_cut = (600..1_000).find(|ms| burst(*ms) < whole);
    let first_cut = first_cut.expect("a pause of 300 ms halves the window");
    assert_eq!(first_cut % 4, 0, "at a tick: {first_cut} ms");
    let mut world = world(&path(100), TcpConfig::today());
    world.run(
        &mut Twice {
            written: 0,
            read: 0,
            resumes_at: at_ms(5_000),
            part_bytes: 100_000,
        },
        at_ms(4_000),
    );
    let last_sent = data(&world).last().expect("data").at;
    let ticks = first_cut / 4 - last_sent.as_micros() / 4_000;
    // The round trip with its queue, and 200 ms.
    assert!((77..=90).contains(&ticks), "{ticks} jiffies");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    /// Eight segments, each after the acknowledgement of the last, a hundred times.
    struct Trickle(u32);
    impl Apps for Trickle {
        fn client(&mut self, now: Instant, tcp: &mut Tcp) {
            while tcp.readable_bytes() > 0 {
                let _ = tcp.read(now, usize::MAX);
            }
        }
        fn server(&mut self, now: Instant, tcp: &mut Tcp) {
            if tcp.is_established() && tcp.unacknowledged_bytes() == 0 && self.0 < 100 {
                self.0 += 1;
                tcp.write(now, &[7; 4 * 1_448]);
            }
        }
        fn is_done(&self) -> bool {
            self.0 == 100
        }
    }
    let mut world = world(&path(20), TcpConfig::today());
    world.run(&mut Trickle(0), at_ms(60_000));
    assert_eq!(
        world.server.window_segments(),
        10,
        "four of ten are less than half"
    );
}

#[test]
fn hystart_ends_slow_start_before_the_queue_overflows() {
    let wide = PathConfig {
        queue: spdy_netem::queue::QueueConfig::packets(100),
        ..path(100)
    };
    let (world, _) = download(&wide, TcpConfig::today(), 1_000_000, |_, _, _| false);
    assert_eq!(
        world.server.stats().retransmits,
        0,
        "{:?}",
        world.server.stats()
    );
    let without = TcpConfig {
        hystart: false,
        ..TcpConfig::today()
    };
    let (world, _) = download(&wide, without, 1_000_000, |_, _, _| false);
    assert!(
        world.server.stats().retransmits > 20,
        "{:?}",
        world.server.stats()
    );
}

/// As in a packet trace of Linux 6.18: four TLS records are 46 segments, which with their overhead fill a buffer of 87,040 bytes.
#[test]
fn a_send_buffer_that_no_writer_has_filled_does_not_grow() {
    /// Responses of 13, 28 and 60 kB, and then a part of a larger one.
    struct Growing {
        written: usize,
        last: usize,
    }
    impl Apps for Growing {
        fn client(&mut self, now: Instant, tcp: &mut Tcp) {
            while tcp.readable_bytes() > 0 {
                let _ = tcp.read(now, usize::MAX);
            }
        }
        fn server(&mut self, now: Instant, tcp: &mut Tcp) {
            if !tcp.is_established() || tcp.unacknowledged_bytes() > 0 || self.is_done() {
                return;
            }
            if let Some(size) = [13_000, 28_000, 60_000].get(self.written) {
                self.written += 1;
                assert_eq!(tcp.write(now, &vec![7; *size]), *size);
                return;
            }
            self.last = tcp.write(now, &vec![7; 4 * 16_406]);
        }
        fn is_done(&self) -> bool {
            self.last > 0
        }
    }
    let mut world = world(&path(100), TcpConfig::today());
    let mut apps = Growing {
        written: 0,
        last: 0,
    };
    world.run(&mut apps, at_ms(3_000));
    assert!(
        world.server.window_segments() > 60,
        "{}",
        world.server.window_segments()
    );
    assert_eq!(apps.last, 4 * 16_406);
    let now = world.now;
    while world.server.poll_transmit(now).is_some() {}
    assert_eq!(world.server.unsent_bytes(), 0, "the window has room");
    assert_eq!(world.server.write(now, &[7]), 0, "the buffer has none");
}

#[test]
fn the_send_buffer_follows_twice_the_window() {
    let mut world = world(&path(100), TcpConfig::today());
    world.run(&mut Silent, at_ms(300));
    let now = world.now;
    let room = world.server.send_capacity();
    // Three chunks of half the first window; `ss -m` reports 87,040 bytes.
    assert_eq!(room, 3 * 22 * 1_448);
    assert_eq!(world.server.write(now, &vec![7; 100_000]), room);
    assert_eq!(world.server.send_capacity(), 0);
    let limited = TcpConfig {
        notsent_lowat_bytes: Some(4_000),
        ..TcpConfig::today()
    };
    let mut server = World::new(&path(100), 0, TcpConfig::today(), limited);
    server.run(&mut Silent, at_ms(300));
    assert_eq!(
        server.server.write(now, &vec![7; 100_000]),
        22 * 1_448,
        "one chunk, which ends above the limit"
    );
    while server.server.poll_transmit(now).is_some() {}
    assert_eq!(
        server.server.unsent_bytes(),
        12 * 1_448,
        "all but the window"
    );
}
