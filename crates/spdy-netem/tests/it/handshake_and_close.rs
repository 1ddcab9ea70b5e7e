//! Opening and closing of a connection when segments are lost, late or refused.

use std::io::ErrorKind;

use spdy_clock::Instant;
use spdy_netem::path::Direction;
use spdy_netem::segment::Segment;
use spdy_netem::tcp::{State, Tcp, TcpConfig};

use crate::support::exchange::{Silent, SlowReader, download, path, times_ms, world};
use crate::support::{Download, World, at_ms};

fn syn_times(tcp: TcpConfig) -> (Vec<u64>, World) {
    let mut world = world(&path(50), tcp);
    world.takes = Box::new(|way, _, _| way == Direction::Up);
    world.run(&mut Silent, at_ms(1_000_000));
    let times = times_ms(world.sent(Direction::Up).map(|seen| seen.at));
    (times, world)
}

#[test]
fn a_syn_is_repeated_after_one_second_four_times_and_then_backs_off() {
    let (times, world) = syn_times(TcpConfig::today());
    // Its timers are far, so they fire at multiples of 8, 64 and 512 jiffies.
    let exact = [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67].map(|seconds| seconds * 1_000);
    let late: Vec<_> = std::iter::zip(&times, exact)
        .map(|(at, exact)| at - exact)
        .collect();
    assert_eq!(times.len(), exact.len());
    assert!(
        late.is_sorted() && late[1] < 36 && late[10] < 3_000,
        "{late:?}"
    );
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
    let takes = |way, number, _: &Segment| way == Direction::Down && number == 0;
    let (world, apps) = download(&path(100), TcpConfig::y2013(), 1_000, takes);
    // The opener's second SYN and the listener's timer, which fires at a tick, are at 1 s and 1.048 s.
    let answers = times_ms(
        world
            .sent(Direction::Down)
            .filter(|seen| seen.segment.flags.syn)
            .map(|seen| seen.at),
    );
    assert_eq!(answers, [50, 1_048, 1_050]);
    assert!(apps.done_at.expect("done") < at_ms(1_310));
}

/// Lulic's cells of 1 s and 2 s: no segment is lost, and still both timers fire.
#[test]
fn a_round_trip_above_1_s_fires_both_syn_timers() {
    let (world, apps) = download(&path(1_500), TcpConfig::y2013(), 14_480, |_, _, _| false);
    assert_eq!(world.client.stats().syn_retransmits, 1);
    // One repetition by its timer, and one for the repeated SYN.
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
    let takes = |way, number, _: &Segment| way == Direction::Up && number < 2;
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
fn a_refused_connection_is_an_error() {
    let now = Instant::ZERO;
    let mut client = Tcp::connect(TcpConfig::today(), now);
    let syn = client.poll_transmit(now).expect("a SYN");
    assert_eq!(syn.ip_len_bytes(), 60, "20 bytes of options");
    let refusal = Segment::reset_for(&syn).expect("an answer");
    client.handle_segment(at_ms(10), refusal.clone());
    assert_eq!(client.error(), Some(ErrorKind::ConnectionRefused));
    assert!(client.is_closed() && client.poll_timeout().is_none());
    assert_eq!(
        Segment::reset_for(&refusal),
        None,
        "a RST is never answered"
    );
}

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
        let fin = way == Direction::Up && segment.flags.fin;
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

/// The client gives up while the response is in flight, and its RST is lost. Data that arrives later gets another RST from the closed
/// endpoint, as in real systems. Otherwise the server would retransmit fifteen times.
#[test]
fn data_to_a_closed_endpoint_is_reset_every_time() {
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
