//! Properties on any network, with any seed.

use std::time::Duration;

use proptest::prelude::*;
use spdy_netem::loss::{LossModel, Probability};
use spdy_netem::path::{Direction, PathConfig, Topology};
use spdy_netem::queue::QueueConfig;
use spdy_netem::segment::MTU_BYTES;
use spdy_netem::tcp::{CongestionControl, LossDetection, TcpConfig};
use spdy_netem::wire::LinkRate;

use crate::support::{Download, World, at_ms};

fn loss(percent_x10: u32) -> LossModel {
    LossModel::bernoulli(Probability::from_ppb(percent_x10 * 1_000_000).expect("below 100 %"))
}

fn any_queue() -> impl Strategy<Value = QueueConfig> {
    prop_oneof![
        4 => (4u32..100).prop_map(QueueConfig::packets),
        1 => Just(QueueConfig::CoDel),
        1 => Just(QueueConfig::FqCoDel),
    ]
}

prop_compose! {
    fn any_path()(
        up_bps in 100_000u64..20_000_000, down_bps in 100_000u64..20_000_000, rtt_ms in 1u64..400,
        jitter_ms in prop_oneof![Just(0), 0u64..50], reorder in any::<bool>(), shared in any::<bool>(),
        up in 0u32..80, down in 0u32..80, bursty in any::<bool>(), queue in any_queue(),
        tick_ms in prop_oneof![Just(0), 1u64..20],
    ) -> PathConfig {
        let loss_down = if bursty {
            LossModel::bursts(Probability::from_ppb(down * 1_000_000).expect("below 100 %"), 3)
                .expect("possible")
        } else {
            loss(down)
        };
        let two = PathConfig::new(up_bps, down_bps, Duration::from_millis(rtt_ms));
        PathConfig {
            up: LinkRate::Bps(if shared { down_bps } else { up_bps }),
            jitter: Duration::from_millis(jitter_ms),
            reorder,
            loss_up: loss(up),
            loss_down,
            queue,
            topology: if shared { Topology::Shared { passes: 2 } } else { Topology::TwoPipes },
            tick: match queue {
                QueueConfig::DropTail(_) => Duration::from_millis(tick_ms),
                QueueConfig::CoDel | QueueConfig::FqCoDel => Duration::ZERO,
            },
            ..two
        }
    }
}

prop_compose! {
    fn any_tcp()(
        era in 0usize..3, sack in any::<bool>(), timestamps in any::<bool>(), cubic in any::<bool>(),
        rack in any::<bool>(), switches in any::<[bool; 6]>(), iw in 1u32..40, scale in any::<bool>(),
    ) -> TcpConfig {
        let base = [TcpConfig::y2009(), TcpConfig::y2013(), TcpConfig::today()][era];
        let [tlp, prr, frto, undo, delayed_ack, hystart] = switches;
        TcpConfig {
            sack, timestamps, tlp, prr, frto, undo, delayed_ack, hystart,
            congestion: if cubic { CongestionControl::Cubic } else { CongestionControl::Reno },
            loss_detection: if rack { LossDetection::Rack } else { LossDetection::DupAck },
            initial_window_segments: iw,
            window_scale: scale.then_some(7),
            // Enough retries for 8 % loss in each direction, and for bursts that count packets: with only repetitions in flight, a
            // burst can last for a dozen of them.
            syn_retries: 60, syn_ack_retries: 60, data_retries: 60,
            ..base
        }
    }
}

fn run(path: &PathConfig, seed: u64, tcp: TcpConfig, answer: usize) -> (World, Download) {
    let mut world = World::new(path, seed, tcp, tcp);
    let mut apps = Download::new(300, answer).closing();
    world.run(&mut apps, at_ms(24 * 3_600_000));
    (world, apps)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Every byte arrives once and in order, and both sides end.
    #[test]
    fn every_byte_arrives_once_and_in_order_and_the_connection_ends(
        path in any_path(), tcp in any_tcp(), seed in any::<u64>(), answer in 1usize..150_000,
    ) {
        let (world, apps) = run(&path, seed, tcp, answer);
        prop_assert_eq!(apps.wrong, None, "seed {}", seed);
        prop_assert_eq!(apps.received, answer, "seed {} {:?} {:?} at {}", seed, world.server, world.client, world.now);
        prop_assert!(apps.both_closed, "seed {}: {:?} {:?}", seed, world.client.state(), world.server.state());
        prop_assert_eq!((world.client.error(), world.server.error()), (None, None));
    }

    /// No packet exceeds the link's MTU, and the link carries at most its rate.
    #[test]
    fn no_packet_is_too_large_and_the_link_carries_no_more_than_its_rate(
        path in any_path(), tcp in any_tcp(), seed in any::<u64>(), answer in 1usize..100_000,
    ) {
        let (world, _) = run(&path, seed, tcp, answer);
        for seen in &world.trace {
            let options = seen.segment.options_len_bytes();
            prop_assert!(seen.segment.ip_len_bytes() <= MTU_BYTES && options <= 40, "seed {}: {:?}", seed, seen);
        }
        for (way, rate) in [(Direction::Up, &path.up), (Direction::Down, &path.down)] {
            let arrived: Vec<_> = world.sent(way).filter_map(|seen| Some((seen.at, seen.arrives?, seen.segment.ip_len_bytes()))).collect();
            let bits: u128 = arrived.iter().map(|(_, _, len)| *len as u128 * 8).sum();
            let first = arrived.iter().map(|(sent, ..)| *sent).min();
            let last = arrived.iter().map(|(_, arrives, _)| *arrives).max();
            if let (Some(first), Some(last)) = (first, last) {
                let least_ns = bits * 1_000_000_000 / u128::from(rate.mean_bps());
                prop_assert!((last - first).as_nanos() >= least_ns, "seed {} {:?}", seed, way);
            }
        }
    }

    /// The same seed has the same packets at the same nanoseconds.
    #[test]
    fn the_same_seed_repeats_to_the_nanosecond(
        path in any_path(), tcp in any_tcp(), seed in any::<u64>(),
    ) {
        let hash = |seed| run(&path, seed, tcp, 40_000).0.trace_hash();
        prop_assert_eq!(hash(seed), hash(seed), "seed {}", seed);
    }
}

#[test]
fn another_seed_changes_a_random_run() {
    let mut path = PathConfig::new(1_000_000, 5_000_000, Duration::from_millis(28));
    let hash =
        |path: &PathConfig, seed| run(path, seed, TcpConfig::today(), 200_000).0.trace_hash();
    assert_eq!(hash(&path, 1), hash(&path, 2), "no chance, no difference");
    path.loss_down = loss(20);
    assert_ne!(hash(&path, 1), hash(&path, 2), "2 % loss");
}

/// The numbers of one lossy run: a change of the model is detected, and every machine must have the same nanoseconds.
#[test]
fn one_lossy_run_is_the_same_on_every_machine() {
    let mut path = PathConfig::new(1_000_000, 5_000_000, Duration::from_millis(28));
    (path.loss_up, path.loss_down) = (loss(10), loss(20));
    path.jitter = Duration::from_millis(3);
    let (world, apps) = run(&path, 2_013, TcpConfig::today(), 500_000);
    let done = apps.done_at.expect("it ends").as_nanos();
    let (up, down) = (world.client.stats(), world.server.stats());
    let summary = format!(
        "{done} ns, {} up, {} down, {} again",
        up.segments_sent, down.segments_sent, down.retransmits
    );
    assert_eq!(summary, "1050151175 ns, 338 up, 354 down, 5 again");
}
