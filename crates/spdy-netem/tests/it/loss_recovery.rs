//! Detection of a lost segment, and its exact time: by the timer, or by acknowledgements.

use std::io::ErrorKind;

use spdy_netem::path::{Direction, PathConfig};
use spdy_netem::tcp::{CongestionControl, TcpConfig};

use crate::support::exchange::{Twice, data, download, drop_data, path, times_ms, world};
use crate::support::{Download, MS, at_ms};

#[test]
fn the_timer_backs_off_by_two_and_gives_up_after_its_retries() {
    let tcp = TcpConfig {
        data_retries: 4,
        ..TcpConfig::y2013()
    };
    let mut world = world(&path(100), tcp);
    world.takes = Box::new(|way, _, segment| way == Direction::Down && !segment.payload.is_empty());
    let mut apps = Download::new(100, 1_000);
    world.run(&mut apps, at_ms(3_600_000));
    let times = times_ms(data(&world).map(|seen| seen.at));
    // 100 ms of round trip and 200 of variance, from the handshake: 301 ms, doubled each time.
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps.len(), 4);
    assert!((295..305).contains(&gaps[0]), "{gaps:?}");
    for pair in gaps.windows(2) {
        assert!(
            pair[1].abs_diff(2 * pair[0]) <= 12,
            "whole jiffies: {gaps:?}"
        );
    }
    assert_eq!(world.server.error(), Some(ErrorKind::TimedOut));
}

/// Regression: with round trips measured only on segments that were never retransmitted, a link slower than the first timeout repeats
/// everything for ever.
#[test]
fn a_link_of_100_kbps_has_no_timeout_storm() {
    let slow = PathConfig::new(100_000, 100_000, 100 * MS);
    for tcp in [
        TcpConfig::today(),
        TcpConfig::y2013(),
        TcpConfig {
            timestamps: true,
            ..TcpConfig::y2009()
        },
    ] {
        let (world, apps) = download(&slow, tcp, 100_000, |_, _, _| false);
        let stats = world.server.stats();
        assert!(stats.retransmits <= 12, "{stats:?}");
        // 70 segments of 120 ms.
        let done = apps.done_at.expect("done");
        assert!(done < at_ms(8_400 + 300 + 1_500), "{done}: {stats:?}");
    }
}

/// The first segment takes longer than the timeout by the handshake: nothing was lost.
#[test]
fn a_needless_timeout_is_undone_by_timestamps() {
    let slow = PathConfig::new(40_000, 40_000, 20 * MS);
    let tcp = TcpConfig {
        frto: false,
        initial_window_segments: 20,
        ..TcpConfig::y2013()
    };
    let (world, _) = download(&slow, tcp, 28_960, |_, _, _| false);
    let stats = world.server.stats();
    assert!(stats.timeouts >= 1 && stats.undos >= 1, "{stats:?}");
    assert!(
        world.server.window_segments() >= 20,
        "{}",
        world.server.window_segments()
    );
    let never = TcpConfig { undo: false, ..tcp };
    let (world, _) = download(&slow, never, 28_960, |_, _, _| false);
    assert_eq!(world.server.stats().undos, 0);
    assert!(
        world.server.window_segments() < 20,
        "{}",
        world.server.window_segments()
    );
}

/// Regression: a timeout must not forget the number of segments in flight, or a window of one never counts as used and never grows.
#[test]
fn the_window_grows_again_after_a_timeout() {
    let no_probe = TcpConfig {
        tlp: false,
        ..TcpConfig::today()
    };
    for tcp in [no_probe, TcpConfig::y2013(), TcpConfig::y2009()] {
        let (world, apps) = download(&path(50), tcp, 2_000_000, drop_data(100..=205, 1));
        let stats = world.server.stats();
        assert!(stats.timeouts >= 1, "{stats:?}");
        assert!(world.server.window_segments() > 10, "{stats:?}");
        let done = apps.done_at.expect("done");
        assert!(
            done < at_ms(8_000),
            "1.7 s without the losses, 70 s at a window of one; {done} {stats:?}"
        );
    }
}

#[test]
fn rack_repairs_one_loss_in_one_round_trip_and_takes_three_tenths() {
    let (world, apps) = download(&path(100), TcpConfig::today(), 14_480, drop_data(3..=3, 1));
    let stats = world.server.stats();
    assert_eq!(
        (stats.retransmits, stats.recoveries, stats.timeouts),
        (1, 1, 0),
        "{stats:?}"
    );
    assert_eq!(
        world.server.window_segments(),
        9,
        "of the 13 it had grown to"
    );
    // Detected with the third segment above it, repaired half a round trip later.
    let done = apps.done_at.expect("done");
    assert!((at_ms(300)..at_ms(320)).contains(&done), "{done}");
}

#[test]
fn reno_takes_a_half() {
    let tcp = TcpConfig {
        congestion: CongestionControl::Reno,
        ..TcpConfig::today()
    };
    let (world, _) = download(&path(100), tcp, 14_480, drop_data(3..=3, 1));
    assert_eq!(world.server.window_segments(), 6, "of 13");
}

/// Two segments above the gap are too few for duplicate acknowledgements; RACK waits a quarter of the round trip.
#[test]
fn racks_timer_repairs_a_loss_with_two_segments_above_it() {
    let answer = 4 * 1_448;
    let (world, apps) = download(&path(100), TcpConfig::today(), answer, drop_data(1..=1, 1));
    let stats = world.server.stats();
    assert_eq!(
        (stats.reorder_timeouts, stats.loss_probes, stats.timeouts),
        (1, 0, 0),
        "{stats:?}"
    );
    // Sent at 1.5 round trips, missed at 2.5, marked as lost at 2.75 and up to two ticks and 2 ms later, delivered at 3.25.
    let done = apps.done_at.expect("done");
    assert!((at_ms(325)..at_ms(337)).contains(&done), "{done}");
}

#[test]
fn rack_finds_a_lost_retransmission_where_duplicates_need_the_timer() {
    let answer = 200_000;
    let (world, _) = download(&path(50), TcpConfig::today(), answer, drop_data(40..=40, 2));
    let stats = world.server.stats();
    assert_eq!((stats.timeouts, stats.retransmits), (0, 2), "{stats:?}");
    let (world, _) = download(&path(50), TcpConfig::y2013(), answer, drop_data(40..=40, 2));
    let stats = world.server.stats();
    assert!(stats.timeouts >= 1, "{stats:?}");
}

#[test]
fn a_probe_repairs_a_lost_tail_before_the_timer() {
    let answer = 5 * 1_448;
    let (world, apps) = download(&path(100), TcpConfig::today(), answer, drop_data(4..=4, 1));
    let stats = world.server.stats();
    assert_eq!(
        (stats.loss_probes, stats.timeouts, stats.retransmits),
        (1, 0, 1),
        "{stats:?}"
    );
    let with_probe = apps.done_at.expect("done");

    let none = TcpConfig {
        tlp: false,
        ..TcpConfig::today()
    };
    let (world, apps) = download(&path(100), none, answer, drop_data(4..=4, 1));
    assert_eq!(world.server.stats().timeouts, 1);
    // A single segment is in flight, so the probe has waited for a delayed acknowledgement, and the two timers expire at nearly the
    // same time.
    assert!(apps.done_at.expect("done") >= with_probe);
}

/// A loss that only a probe detected is a loss all the same: the window shrinks with the next new data.
#[test]
fn a_loss_that_a_probe_repaired_costs_as_much_as_another() {
    let tcp = TcpConfig {
        slow_start_after_idle: false,
        ..TcpConfig::today()
    };
    let cwnd = |lost: bool| {
        let mut world = world(&path(100), tcp);
        if lost {
            world.takes = Box::new(drop_data(69..=69, 1));
        }
        world.run(
            &mut Twice {
                written: 0,
                read: 0,
                resumes_at: at_ms(5_000),
                part_bytes: 100_000,
            },
            at_ms(5_200),
        );
        assert_eq!(
            world.server.stats().recoveries,
            u64::from(lost),
            "{:?}",
            world.server.stats()
        );
        world.server.window_segments()
    };
    let (whole, cut) = (cwnd(false), cwnd(true));
    assert!(cut < whole, "{cut} of {whole}");
}

#[test]
fn a_probe_for_a_whole_lost_flight_comes_after_two_round_trips() {
    let answer = 3 * 1_448;
    let (world, _) = download(&path(100), TcpConfig::today(), answer, drop_data(0..=2, 1));
    let sent = times_ms(data(&world).map(|seen| seen.at));
    let wait = sent[3] - sent[2];
    assert!(
        (202..212).contains(&wait),
        "two round trips, 2 ms, and the next tick but one, not {wait}"
    );
    assert_eq!(world.server.stats().loss_probes, 1);
}

/// In recovery the sender must neither stop nor burst: it sends about 0.7 segments for each delivered one.
#[test]
fn proportional_rate_reduction_sends_in_step_with_what_is_delivered() {
    let (world, _) = download(
        &path(100),
        TcpConfig::today(),
        1_000_000,
        drop_data(120..=120, 1),
    );
    let sent: Vec<_> = data(&world).collect();
    let again = sent
        .windows(2)
        .position(|pair| pair[1].segment.seq < pair[0].segment.seq);
    let again = again.expect("sent again") + 1;
    let (start, end) = (
        sent[again].at,
        sent[again].arrives.expect("arrives") + 50 * MS,
    );
    let during: Vec<_> = sent[again..]
        .iter()
        .take_while(|seen| seen.at < end)
        .map(|seen| seen.at)
        .collect();
    let acks = world.sent(Direction::Up).filter(|seen| {
        seen.arrives.is_some_and(|at| at > start && at < end) && !seen.segment.sack.is_empty()
    });
    let (sent, delivered) = (during.len() as f64, acks.count() as f64);
    assert!(delivered > 20.0, "{delivered}");
    assert!(
        (0.6..0.85).contains(&(sent / delivered)),
        "{sent} sent for {delivered} delivered"
    );
    let widest = during
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .expect("several");
    assert!(widest < 10 * MS, "a silence of {widest:?}");
}

#[test]
fn reordering_is_no_loss_once_it_was_seen() {
    let mut path = path(60);
    (path.jitter, path.reorder) = (8 * MS, true);
    let (world, _) = download(&path, TcpConfig::today(), 1_000_000, |_, _, _| false);
    let today = world.server.stats();
    assert!(
        today.undos > 0,
        "the needless reductions were taken back: {today:?}"
    );
    assert_eq!(today.timeouts, 0);
    assert!(today.retransmits < 10, "of 691 segments: {today:?}");
}

/// The timer expires while the first segment is still in transit. Its retransmission was sent after all other segments. If the
/// acknowledgement of the original counted for the retransmission, all other segments would be marked as lost.
#[test]
fn after_a_spurious_timeout_only_the_head_is_retransmitted() {
    let slow = PathConfig::new(25_000, 25_000, 20 * MS);
    let (world, _) = download(&slow, TcpConfig::today(), 12_000, |_, _, _| false);
    let stats = world.server.stats();
    assert!(stats.timeouts >= 1 && stats.undos >= 1, "{stats:?}");
    assert_eq!(stats.losses_detected, 0, "{stats:?}");
    let copies = stats.timeouts + stats.loss_probes;
    assert!(stats.retransmits <= copies, "{stats:?}");
}

#[test]
fn without_sack_a_loss_is_found_by_three_duplicates() {
    let tcp = TcpConfig {
        sack: false,
        ..TcpConfig::today()
    };
    let (world, _) = download(&path(100), tcp, 14_480, drop_data(3..=3, 1));
    let stats = world.server.stats();
    assert_eq!(
        (stats.retransmits, stats.recoveries, stats.timeouts),
        (1, 1, 0),
        "{stats:?}"
    );
    assert!(
        world
            .sent(Direction::Up)
            .all(|seen| seen.segment.sack.is_empty())
    );
}
