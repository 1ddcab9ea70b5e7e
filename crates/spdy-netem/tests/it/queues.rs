//! CoDel and FQ-CoDel on a path: which packets they drop, and when the others arrive.

use std::collections::BTreeMap;
use std::time::Duration;

use spdy_clock::Instant;
use spdy_netem::path::{Direction, Path, PathConfig, PathOutcome};
use spdy_netem::queue::{FlowKey, QueueConfig, Ticket};

use crate::support::{MS, at_ms};

/// 1,500 bytes take 1.2 ms.
const BPS: u64 = 10_000_000;
const PACKET: Duration = Duration::from_micros(1_200);
const BULK: FlowKey = FlowKey::new(1);
const OTHER: FlowKey = FlowKey::new(2);

#[derive(Clone, Copy, Debug)]
struct Offer {
    at: Instant,
    flow: FlowKey,
    len_bytes: usize,
}

/// What became of an offer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fate {
    /// When it arrived or was dropped.
    at: Instant,
    is_dropped: bool,
}

/// Offers packets to a link without propagation delay, in their order.
fn fates(queue: QueueConfig, offers: &[Offer]) -> Vec<Fate> {
    let config = PathConfig {
        queue,
        ..PathConfig::new(BPS, BPS, Duration::ZERO)
    };
    let mut path = Path::new(&config, 1);
    let mut fates = vec![None; offers.len()];
    let mut numbers: BTreeMap<Ticket, usize> = BTreeMap::new();
    let mut follow = |path: &mut Path, numbers: &BTreeMap<Ticket, usize>, until: Instant| {
        while let Some(now) = path.poll_timeout().filter(|at| *at <= until) {
            let departure = path.poll_departure(now).expect("the timeout is due");
            let fate = match departure.outcome {
                PathOutcome::Arrives(at) => Fate {
                    at,
                    is_dropped: false,
                },
                PathOutcome::QueueDrop => Fate {
                    at: now,
                    is_dropped: true,
                },
                other => panic!("{other:?}"),
            };
            fates[numbers[&departure.ticket]] = Some(fate);
        }
    };
    for (number, offer) in offers.iter().enumerate() {
        follow(&mut path, &numbers, offer.at);
        match path.offer(offer.at, Direction::Down, offer.flow, offer.len_bytes) {
            PathOutcome::Waits(ticket) => numbers.insert(ticket, number),
            other => panic!("{other:?}"),
        };
        follow(&mut path, &numbers, offer.at);
    }
    follow(&mut path, &numbers, Instant::FAR_FUTURE);
    let fates = fates.into_iter();
    fates.map(|fate| fate.expect("it left the queue")).collect()
}

/// `count` packets of `flow`, `gap` apart from `start` on.
fn stream(
    flow: FlowKey,
    start: Instant,
    gap: Duration,
    count: u32,
    len_bytes: usize,
) -> Vec<Offer> {
    let at = |number| start + gap * number;
    let offer = |number| Offer {
        at: at(number),
        flow,
        len_bytes,
    };
    (0..count).map(offer).collect()
}

fn in_order(mut offers: Vec<Offer>) -> Vec<Offer> {
    offers.sort_by_key(|offer| offer.at);
    offers
}

/// Bytes of `flow` that arrived in the second half of the time of all offers.
fn late_bytes(offers: &[Offer], fates: &[Fate], flow: FlowKey) -> usize {
    let end = offers.last().expect("there are offers").at;
    let half = Instant::from_nanos(end.as_nanos() / 2);
    let arrived = offers.iter().zip(fates).filter(|(offer, fate)| {
        offer.flow == flow && !fate.is_dropped && (half..end).contains(&fate.at)
    });
    arrived.map(|(offer, _)| offer.len_bytes).sum()
}

#[test]
fn a_standing_queue_is_drained_to_the_target_and_then_left_alone() {
    // A burst of 120 ms, then packets as fast as the link sends them: without drops the queue stays.
    for queue in [QueueConfig::CoDel, QueueConfig::FqCoDel] {
        let burst = stream(BULK, Instant::ZERO, Duration::ZERO, 100, 1_500);
        let steady = stream(BULK, Instant::ZERO, PACKET, 10_000, 1_500);
        let offers = in_order([burst, steady].concat());
        let fates = fates(queue, &offers);
        let drops = fates.iter().filter(|fate| fate.is_dropped).count();
        // 100 packets too many, of which 4 are the target.
        assert!((95..=100).contains(&drops), "{queue}: {drops} drops");
        let last_drop = fates.iter().rfind(|fate| fate.is_dropped);
        let last_drop = last_drop.expect("there are drops").at;
        let delays = offers.iter().zip(&fates);
        let delays = delays.filter(|(offer, fate)| offer.at > last_drop && !fate.is_dropped);
        let most = delays
            .map(|(offer, fate)| fate.at - offer.at - PACKET)
            .max();
        assert!(most.expect("packets follow") < 6 * MS, "{queue}: {most:?}");
    }
}

/// Regression: a flow that had used up its credit stayed listed while the link was idle, and was then served last.
#[test]
fn after_an_idle_time_every_flow_is_new() {
    let one = |flow, start| stream(flow, start, Duration::ZERO, 1, 1_500);
    let later = at_ms(1_000);
    let [a, b, c] = [BULK, FlowKey::new(2), FlowKey::new(3)];
    let offers = [
        one(a, Instant::ZERO),
        one(c, later),
        one(a, later),
        one(b, later),
    ];
    let fates = fates(QueueConfig::FqCoDel, &offers.concat());
    let arrivals: Vec<_> = fates[1..].iter().map(|fate| fate.at).collect();
    assert!(arrivals.is_sorted(), "C, A, B: {arrivals:?}");
}

#[test]
fn a_delay_below_the_target_is_never_a_reason_to_drop() {
    // Four packets at once wait for up to 3.6 ms.
    let bursts =
        (0..2_000).flat_map(|burst| stream(BULK, at_ms(5 * burst), Duration::ZERO, 4, 1_500));
    let offers: Vec<_> = bursts.collect();
    for queue in [QueueConfig::CoDel, QueueConfig::FqCoDel] {
        let fates = fates(queue, &offers);
        assert!(fates.iter().all(|fate| !fate.is_dropped), "{queue}");
    }
}

#[test]
fn drops_come_after_an_interval_and_then_at_intervals_by_the_square_root() {
    let offers = stream(BULK, Instant::ZERO, PACKET * 2 / 3, 2_500, 1_500);
    let fates = fates(QueueConfig::CoDel, &offers);
    let mut drops: Vec<_> = (fates.iter())
        .filter(|fate| fate.is_dropped)
        .map(|fate| fate.at.as_millis_f64())
        .collect();
    drops.sort_by(f64::total_cmp);
    // The delay passes 5 ms after 13 packets; the first drop is an interval later.
    let first = drops[0];
    assert!((110.0..=120.0).contains(&first), "{first} ms");
    let mut expected = first;
    for (count, drop) in (1..).zip(&drops[1..60]) {
        expected += 100.0 / f64::from(count).sqrt();
        // At the first departure after its time.
        let late = drop - expected;
        assert!(
            (-0.001..=1.201).contains(&late),
            "drop {count} is {late} ms late"
        );
    }
}

#[test]
fn a_sparse_flow_does_not_wait_for_a_bulk_flow() {
    let bulk = stream(BULK, Instant::ZERO, PACKET / 2, 8_000, 1_500);
    let sparse = stream(OTHER, at_ms(100), 37 * MS, 100, 125);
    let offers = in_order([bulk, sparse].concat());
    let longest = |queue| {
        let fates = fates(queue, &offers);
        let of_sparse = offers
            .iter()
            .zip(fates)
            .filter(|(offer, _)| offer.flow == OTHER);
        let delays = of_sparse.map(|(offer, fate)| {
            assert!(!fate.is_dropped);
            fate.at - offer.at
        });
        delays.max().expect("there are packets")
    };
    // The packet in transmission, and its own 0.1 ms.
    assert!(longest(QueueConfig::FqCoDel) <= PACKET + MS / 10);
}

#[test]
fn flows_share_the_link_by_bytes_and_not_by_packets() {
    let large = stream(BULK, Instant::ZERO, PACKET / 2, 20_000, 1_500);
    let small = stream(OTHER, Instant::ZERO, PACKET / 6, 60_000, 500);
    let offers = in_order([large, small].concat());
    let fates = fates(QueueConfig::FqCoDel, &offers);
    let [large, small] = [BULK, OTHER].map(|flow| late_bytes(&offers, &fates, flow) as f64);
    let ratio = large / small;
    // A packet counts with 14 bytes of a link-layer header: 1,514 and 514 bytes.
    let expected = (1_500.0 / 1_514.0) / (500.0 / 514.0);
    assert!((ratio / expected - 1.0).abs() < 0.01, "{large} and {small}");
}

#[test]
fn a_full_queue_drops_from_the_flow_with_the_most_bytes() {
    let few = stream(OTHER, Instant::ZERO, Duration::ZERO, 100, 1_500);
    let many = stream(BULK, Instant::ZERO, Duration::ZERO, 10_240, 1_500);
    let fates = fates(QueueConfig::FqCoDel, &[few, many].concat());
    let at_once = |fates: &[Fate]| fates.iter().filter(|it| **it == dropped_at_start()).count();
    assert_eq!(at_once(&fates[..100]), 0);
    // One packet is in transmission. Each of two overflows drops a batch.
    assert_eq!(at_once(&fates[100..]), 2 * 64);
}

const fn dropped_at_start() -> Fate {
    Fate {
        at: Instant::ZERO,
        is_dropped: true,
    }
}

#[test]
fn a_codel_queue_alone_drops_new_packets_past_its_capacity() {
    let offers = stream(BULK, Instant::ZERO, Duration::ZERO, 1_010, 1_500);
    let fates = fates(QueueConfig::CoDel, &offers);
    let dropped = fates.iter().filter(|it| **it == dropped_at_start()).count();
    assert_eq!(dropped, 9, "one in transmission, 1,000 wait");
    assert!(fates[1_001..].iter().all(|fate| fate.is_dropped));
}
