//! Each mechanism by itself: what it is for, and when exactly it acts.

mod support;

use std::io::ErrorKind;
use std::time::Duration;

use spdy_clock::Instant;
use spdy_netem::path::{PathConfig, Way};
use spdy_netem::segment::Segment;
use spdy_netem::tcp::{CongestionControl, State, Tcp, TcpConfig};
use support::{Apps, Download, MS, Sighting, World, at_ms};

/// 10 Mbps both ways.
fn path(rtt_ms: u32) -> PathConfig {
    PathConfig::new(10_000_000, 10_000_000, MS * rtt_ms)
}

/// The same TCP at both ends.
fn world(path: &PathConfig, tcp: TcpConfig) -> World {
    World::new(path, 0, tcp, tcp)
}

/// A download of `answer` bytes with `takes` dropping packets; it must end well.
fn download(
    path: &PathConfig,
    tcp: TcpConfig,
    answer: usize,
    takes: impl FnMut(Way, usize, &Segment) -> bool + 'static,
) -> (World, Download) {
    let mut world = world(path, tcp);
    world.takes = Box::new(takes);
    let mut apps = Download::new(100, answer);
    world.run(&mut apps, at_ms(3_600_000));
    // The last acknowledgements are still on their way.
    let end = world.now + 2_000 * MS;
    world.run_out(&mut apps, end);
    assert_eq!(apps.wrong, None);
    assert_eq!(apps.received, answer, "{:?}", world.server);
    (world, apps)
}

/// Drops the `copies` first copies of the full data segments with these numbers, from 0.
fn drop_data(
    numbers: std::ops::RangeInclusive<usize>,
    copies: usize,
) -> impl FnMut(Way, usize, &Segment) -> bool {
    let mut seen = std::collections::BTreeMap::new();
    move |way, _, segment| {
        let number = (segment.seq as usize - usize::from(segment.seq > 0)) / 1_448;
        if way == Way::Up || segment.payload.is_empty() || !numbers.contains(&number) {
            return false;
        }
        let copy: &mut usize = seen.entry(number).or_default();
        *copy += 1;
        *copy <= copies
    }
}

fn data(world: &World) -> impl Iterator<Item = &Sighting> {
    world
        .sent(Way::Down)
        .filter(|seen| !seen.segment.payload.is_empty())
}

fn times_ms(sent: impl Iterator<Item = Instant>) -> Vec<u64> {
    sent.map(|at| at.as_nanos() / 1_000_000).collect()
}

/// Applications that do nothing by themselves.
#[derive(Default)]
struct Silent;

impl Apps for Silent {
    fn client(&mut self, _: Instant, _: &mut Tcp) {}
    fn server(&mut self, _: Instant, _: &mut Tcp) {}
    fn is_done(&self) -> bool {
        false
    }
}

// --- opening ---

fn syn_times(tcp: TcpConfig) -> (Vec<u64>, World) {
    let mut world = world(&path(50), tcp);
    world.takes = Box::new(|way, _, _| way == Way::Up);
    world.run(&mut Silent, at_ms(1_000_000));
    let times = times_ms(world.sent(Way::Up).map(|seen| seen.at));
    (times, world)
}

#[test]
fn a_syn_goes_again_after_one_second_four_times_and_then_backs_off() {
    let (times, world) = syn_times(TcpConfig::today());
    let seconds: Vec<_> = times.iter().map(|ms| ms / 1_000).collect();
    assert_eq!(seconds, [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67]);
    assert_eq!(world.client.error(), Some(ErrorKind::TimedOut));
    assert!(world.client.is_closed());
}

#[test]
fn a_syn_of_2013_doubles_from_one_second_and_one_of_2009_from_three() {
    assert_eq!(
        syn_times(TcpConfig::y2013()).0,
        [0, 1_000, 3_000, 7_000, 15_000, 31_000]
    );
    assert_eq!(
        syn_times(TcpConfig::y2009()).0,
        [0, 3_000, 9_000, 21_000, 45_000, 93_000]
    );
}

#[test]
fn a_lost_syn_ack_is_repeated_by_the_listeners_own_timer() {
    let takes = |way, number, _: &Segment| way == Way::Down && number == 0;
    let (world, apps) = download(&path(100), TcpConfig::y2013(), 1_000, takes);
    // The opener's second SYN and the listener's timer come at 1 s and 1.05 s.
    let answers = times_ms(
        world
            .sent(Way::Down)
            .filter(|seen| seen.segment.flags.syn)
            .map(|seen| seen.at),
    );
    assert_eq!(answers, [50, 1_050, 1_050]);
    assert!(apps.done_at.expect("done") < at_ms(1_310));
}

/// Lulic's cells of 1 s and 2 s: nothing is lost, and still both timers fire.
#[test]
fn a_round_trip_longer_than_a_second_fires_both_syn_timers_and_keeps_the_window() {
    let (world, apps) = download(&path(1_500), TcpConfig::y2013(), 14_480, |_, _, _| false);
    assert_eq!(world.client.stats().syn_retransmits, 1);
    // One repetition by its timer, one for the SYN that came twice.
    assert_eq!(world.server.stats().syn_retransmits, 2);
    assert_eq!(world.server.stats().retransmits, 0);
    let done = apps.done_at.expect("done");
    assert!(
        done < at_ms(3_020),
        "two round trips, a window of ten: {done}"
    );
}

#[test]
fn a_syn_that_was_truly_lost_twice_starts_with_a_window_of_one() {
    let takes = |way, number, _: &Segment| way == Way::Up && number < 2;
    let (world, _) = download(&path(100), TcpConfig::y2013(), 14_480, takes);
    assert!(
        world.client.window_segments() < 10,
        "{}",
        world.client.window_segments()
    );
    assert!(
        world.server.window_segments() >= 10,
        "the listener saw no trouble"
    );
}

#[test]
fn a_refused_connection_says_so() {
    let now = Instant::ZERO;
    let mut client = Tcp::connect(TcpConfig::today(), now);
    let syn = client.poll_transmit(now).expect("a SYN");
    assert_eq!(syn.ip_len_bytes(), 60, "20 bytes of options");
    let refusal = Segment::refusal_of(&syn).expect("an answer");
    client.handle_segment(at_ms(10), refusal.clone());
    assert_eq!(client.error(), Some(ErrorKind::ConnectionRefused));
    assert!(client.is_closed() && client.poll_timeout().is_none());
    assert_eq!(
        Segment::refusal_of(&refusal),
        None,
        "a RST is never answered"
    );
}

// --- the retransmission timer ---

#[test]
fn the_timer_backs_off_by_two_and_gives_up_after_its_retries() {
    let tcp = TcpConfig {
        data_retries: 4,
        ..TcpConfig::y2013()
    };
    let mut world = world(&path(100), tcp);
    world.takes = Box::new(|way, _, segment| way == Way::Down && !segment.payload.is_empty());
    let mut apps = Download::new(100, 1_000);
    world.run(&mut apps, at_ms(3_600_000));
    let times = times_ms(data(&world).map(|seen| seen.at));
    // 100 ms of round trip and 200 of variance, from the handshake: 301 ms, doubled each time.
    let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps.len(), 4);
    assert!((295..305).contains(&gaps[0]), "{gaps:?}");
    for pair in gaps.windows(2) {
        assert!(pair[1].abs_diff(2 * pair[0]) <= 1, "{gaps:?}");
    }
    assert_eq!(world.server.error(), Some(ErrorKind::TimedOut));
}

/// The bug of the first prototype: with round trips timed only from segments never sent again, a link
/// slower than the first timeout repeats everything for ever.
#[test]
fn a_link_of_100_kbps_makes_no_storm_of_timeouts() {
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

/// The first segment takes longer than the timeout that the handshake suggested: nothing was lost.
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

/// The other bug of the first prototype: a timeout must not forget how much was out, or a window of
/// one never counts as used and never grows.
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

// --- losses found by acknowledgements ---

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
    // Found with the third segment above it, repaired half a round trip later.
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

/// Two segments above the hole are too few for duplicate acknowledgements; RACK waits a quarter of
/// the round trip and then knows.
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
    // Sent at 1.5 round trips, missed at 2.5, known lost at 2.75, there at 3.25.
    let done = apps.done_at.expect("done");
    assert!((at_ms(325)..at_ms(335)).contains(&done), "{done}");
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
    // A single segment is out, so the probe has waited for a delayed acknowledgement, and the two
    // timers are near each other.
    assert!(apps.done_at.expect("done") >= with_probe);
}

/// What only a probe saw was a loss all the same: with the next new data the window gives way.
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
        (200..206).contains(&wait),
        "two round trips and 2 ms, not {wait}"
    );
    assert_eq!(world.server.stats().loss_probes, 1);
}

/// In recovery the sender must neither stop nor burst: about 0.7 segments go for each that arrives.
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
    let acks = world.sent(Way::Up).filter(|seen| {
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

/// The timer goes off while the first segment is still on its way. The head's copy was sent after everything else, and the
/// acknowledgement of its original, taken for the copy's, would tell that everything else is lost.
#[test]
fn after_a_needless_timeout_nothing_is_sent_again_but_the_head() {
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
    assert!(world.sent(Way::Up).all(|seen| seen.segment.sack.is_empty()));
}

// --- acknowledgements ---

/// The server writes `answer` bytes at once; the client reads only from `reads_from` on.
struct SlowReader {
    answer: usize,
    written: usize,
    read: usize,
    reads_from: Instant,
}

impl SlowReader {
    fn new(answer: usize, reads_from: Instant) -> Self {
        Self {
            answer,
            written: 0,
            read: 0,
            reads_from,
        }
    }
}

impl Apps for SlowReader {
    fn client(&mut self, now: Instant, tcp: &mut Tcp) {
        while now >= self.reads_from && tcp.readable_bytes() > 0 {
            self.read += tcp.read(now, 10_000).len();
        }
    }

    fn server(&mut self, now: Instant, tcp: &mut Tcp) {
        let room = tcp.send_capacity().min(self.answer - self.written);
        self.written += tcp.write(now, &vec![7; room]);
    }

    fn is_done(&self) -> bool {
        self.read == self.answer
    }

    fn next_wake(&self) -> Option<Instant> {
        (self.read < self.answer && self.written > 0)
            .then_some(self.reads_from)
            .filter(|_| self.read == 0)
    }
}

fn first_ack_after_data(tcp: TcpConfig, answer: usize) -> Duration {
    let mut world = world(&path(20), tcp);
    world.run(
        &mut SlowReader::new(answer, Instant::FAR_FUTURE),
        at_ms(500),
    );
    let last = data(&world).last().expect("data").arrives.expect("arrives");
    let acks = world
        .sent(Way::Up)
        .map(|seen| seen.at)
        .filter(|at| *at >= last);
    acks.min().expect("an acknowledgement") - last
}

#[test]
fn a_lone_segment_is_acknowledged_after_40_ms_and_a_pair_at_once() {
    let slow = TcpConfig {
        quick_acks: 0,
        ..TcpConfig::today()
    };
    assert_eq!(first_ack_after_data(slow, 100), 40 * MS);
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
fn a_closed_window_is_probed_ever_more_rarely_and_opens_again() {
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
        .sent(Way::Down)
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
            .all(|pair| pair[1].abs_diff(2 * pair[0]) <= 2),
        "{gaps:?}"
    );
    assert_eq!(world.server.stats().retransmits, 0, "nothing was lost");
}

/// A receiver that has gone: the sender probed it for as long as virtual time went on.
#[test]
fn a_closed_window_is_given_up_after_as_many_probes_without_an_answer_as_data_would_be_repeated() {
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
            let is_probe = way == Way::Down && segment.payload.is_empty() && segment.seq > 1;
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
    assert_eq!(probes(3), 3 + 4, "an answer begins the count anew");
}

#[test]
fn the_receive_window_grows_so_that_it_never_limits_a_fast_path() {
    let fast = PathConfig::new(50_000_000, 50_000_000, 100 * MS);
    let (world, _) = download(&fast, TcpConfig::today(), 5_000_000, |_, _, _| false);
    let most = world
        .sent(Way::Up)
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
            .sent(Way::Up)
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

// --- the send side ---

/// Two answers of 100 kB, the second 5 s after the first.
struct Twice {
    written: usize,
    read: usize,
}

impl Apps for Twice {
    fn client(&mut self, now: Instant, tcp: &mut Tcp) {
        while tcp.readable_bytes() > 0 {
            self.read += tcp.read(now, usize::MAX).len();
        }
    }

    fn server(&mut self, now: Instant, tcp: &mut Tcp) {
        let until = if now < at_ms(5_000) { 100_000 } else { 200_000 };
        let room = tcp.send_capacity().min(until - self.written);
        self.written += tcp.write(now, &vec![7; room]);
    }

    fn is_done(&self) -> bool {
        self.read == 200_000
    }

    fn next_wake(&self) -> Option<Instant> {
        (self.written == 100_000 && self.read == 100_000).then_some(at_ms(5_000))
    }
}

fn burst_after_idle(tcp: TcpConfig) -> usize {
    let mut world = world(&path(100), tcp);
    world.run(
        &mut Twice {
            written: 0,
            read: 0,
        },
        at_ms(60_000),
    );
    data(&world).filter(|seen| seen.at == at_ms(5_000)).count()
}

#[test]
fn after_idleness_the_window_is_the_initial_one_again() {
    assert_eq!(burst_after_idle(TcpConfig::today()), 10);
    let keeps = TcpConfig {
        slow_start_after_idle: false,
        ..TcpConfig::today()
    };
    assert!(burst_after_idle(keeps) > 40);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    /// Eight segments, each when the last is acknowledged, a hundred times.
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
        queue: spdy_netem::queue::QueueLimit::Packets(100),
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

#[test]
fn the_send_buffer_follows_twice_the_window() {
    let mut world = world(&path(100), TcpConfig::today());
    world.run(&mut Silent, at_ms(300));
    let now = world.now;
    let room = world.server.send_capacity();
    assert_eq!(room, 87_040, "as ss -m tells of Linux");
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
        4_000,
        "no more than that unsent"
    );
    while server.server.poll_transmit(now).is_some() {}
    assert_eq!(server.server.unsent_bytes(), 0);
}

// --- the end ---

#[test]
fn both_sides_close_and_neither_has_an_error() {
    let mut world = world(&path(100), TcpConfig::today());
    let mut apps = Download::new(100, 50_000).closing();
    world.run(&mut apps, at_ms(60_000));
    world.run_out(&mut apps, at_ms(120_000));
    assert_eq!(
        world.client.state(),
        State::Closed,
        "the server closed first"
    );
    assert_eq!(world.server.state(), State::TimeWait);
    assert_eq!((world.client.error(), world.server.error()), (None, None));
    assert_eq!(
        (world.client.poll_timeout(), world.server.poll_timeout()),
        (None, None)
    );
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut fins = 0;
    let takes = move |way, _: usize, segment: &Segment| {
        let fin = way == Way::Up && segment.flags.fin;
        fins += u32::from(fin);
        fin && fins == 1
    };
    let mut world = world(&path(100), TcpConfig::today());
    world.takes = Box::new(takes);
    let mut apps = Download::new(100, 5_000).closing();
    world.run(&mut apps, at_ms(60_000));
    world.run_out(&mut apps, at_ms(120_000));
    assert!(world.client.is_closed() && world.server.is_closed());
    assert_eq!(world.client.stats().retransmits, 1);
}

#[test]
fn a_reset_ends_the_other_side_with_an_error() {
    let mut world = world(&path(100), TcpConfig::today());
    let mut apps = SlowReader::new(1_000_000, Instant::FAR_FUTURE);
    world.run(&mut apps, at_ms(400));
    let now = world.now;
    world.client.abort(now);
    world.run(&mut Silent, at_ms(2_000));
    assert_eq!(world.server.error(), Some(ErrorKind::ConnectionReset));
    assert_eq!(world.client.error(), None);
    assert!(world.server.poll_timeout().is_none() && world.client.poll_timeout().is_none());
    assert_eq!(world.server.write(now, b"more"), 0);
}

/// The client gives up while the answer is on its way, and its RST is lost. What arrives afterwards finds nobody
/// and is answered by another RST, as systems do; the server would else repeat itself fifteen times.
#[test]
fn whoever_writes_to_an_endpoint_that_is_gone_is_reset_again() {
    let [mut client, mut server] = {
        let now = at_ms(0);
        let tcp = TcpConfig::today();
        [Tcp::connect(tcp, now), Tcp::listen(tcp, now)]
    };
    let now = at_ms(1);
    for _ in 0..3 {
        while let Some(segment) = client.poll_transmit(now) {
            server.handle_segment(now, segment);
        }
        while let Some(segment) = server.poll_transmit(now) {
            client.handle_segment(now, segment);
        }
    }
    client.abort(now);
    let lost = client.poll_transmit(now).expect("a RST");
    assert!(lost.flags.rst && client.poll_transmit(now).is_none());

    server.write(now, b"too late");
    let stray = server.poll_transmit(now).expect("data");
    client.handle_segment(now, stray);
    let again = client.poll_transmit(now).expect("another RST");
    assert!(again.flags.rst && client.poll_transmit(now).is_none());
    server.handle_segment(now, again.clone());
    assert_eq!(server.error(), Some(ErrorKind::ConnectionReset));
    client.handle_segment(now, again);
    assert!(
        client.poll_transmit(now).is_none(),
        "a RST is never answered"
    );
}
