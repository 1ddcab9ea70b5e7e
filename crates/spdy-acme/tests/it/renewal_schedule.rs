//! When certificates are ordered, over years that take no time.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use spdy_acme::renewal_schedule::{
    MAX_RETRY_AFTER, MAX_RETRY_DELAY, MIN_RETRY_DELAY, NextAction, RenewalSchedule, renewal_time,
    retry_delay,
};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn start() -> SystemTime {
    UNIX_EPOCH + 20_000 * DAY
}

/// The behaviour of an authority for one certificate.
struct Authority {
    lifetime: Duration,
    /// The orders, counted from 0, that it refuses.
    refuses: Range<usize>,
    advises: Option<Range<Duration>>,
}

/// The hours of all orders within `years`, and the longest time without a valid certificate after the first.
fn live(
    course: &mut RenewalSchedule,
    authority: &Authority,
    years: u32,
) -> (Vec<SystemTime>, Duration) {
    let (mut now, end) = (start(), start() + years * 365 * DAY);
    let (mut orders, mut issued_at, mut bare) = (Vec::new(), None::<SystemTime>, Duration::ZERO);
    while now < end {
        match course.next(now) {
            NextAction::Wait(until) => {
                assert!(until > now, "it waits for what is over");
                now = until;
            }
            NextAction::FetchRenewalInfo => match (&authority.advises, issued_at) {
                (Some(window), Some(issued_at)) => {
                    course.record_renewal_info(
                        now,
                        &(issued_at + window.start..issued_at + window.end),
                        6 * HOUR,
                    );
                }
                _ => course.record_no_renewal_info(now),
            },
            NextAction::Order => {
                orders.push(now);
                now += Duration::from_secs(10);
                if authority.refuses.contains(&(orders.len() - 1)) {
                    course.record_failure(now, None);
                    continue;
                }
                if let Some(issued_at) = issued_at {
                    let expiry = issued_at + authority.lifetime;
                    bare = bare.max(now.duration_since(expiry).unwrap_or_default());
                }
                issued_at = Some(now);
                course.record_issued(now, &(now..now + authority.lifetime));
            }
        }
    }
    (orders, bare)
}

#[test]
fn ninety_day_certificate_renews_with_a_third_left() {
    let authority = Authority {
        lifetime: 90 * DAY,
        refuses: 0..0,
        advises: None,
    };
    let (orders, bare) = live(&mut RenewalSchedule::new(33, 1), &authority, 10);
    assert_eq!((orders[0], bare), (start(), Duration::ZERO));
    for pair in orders.windows(2) {
        let between = pair[1].duration_since(pair[0]).unwrap();
        assert!((58 * DAY..61 * DAY).contains(&between), "{between:?}");
    }
    assert!(orders.len() > 60);
}

#[test]
fn weeks_of_failures_leave_no_gap() {
    // From the third order on nothing is issued for as long as the next hundred tries take: some twenty-five days.
    let authority = Authority {
        lifetime: 90 * DAY,
        refuses: 2..102,
        advises: None,
    };
    let (orders, bare) = live(&mut RenewalSchedule::new(33, 2), &authority, 2);
    let retry_span = orders[101].duration_since(orders[2]).unwrap();
    assert!((20 * DAY..30 * DAY).contains(&retry_span), "{retry_span:?}");
    assert_eq!(bare, Duration::ZERO);
    // The limit of an authority: five failures an hour.
    for six in orders[2..102].windows(6) {
        assert!(six[5].duration_since(six[0]).unwrap() >= HOUR, "{six:?}");
    }
}

#[test]
fn renewal_info_may_only_bring_renewal_forward() {
    let mut authority = Authority {
        lifetime: 90 * DAY,
        refuses: 0..0,
        advises: Some(10 * DAY..12 * DAY),
    };
    let (orders, _) = live(&mut RenewalSchedule::new(33, 3), &authority, 1);
    for pair in orders.windows(2) {
        let between = pair[1].duration_since(pair[0]).unwrap();
        assert!((10 * DAY..13 * DAY).contains(&between), "{between:?}");
    }
    // One that always advises "at once", and one that advises "when it is over".
    authority.advises = Some(Duration::ZERO..Duration::from_secs(1));
    let (orders, _) = live(&mut RenewalSchedule::new(33, 4), &authority, 1);
    let max_orders = 365 * 100 / 90 + 1;
    assert!(orders.len() <= max_orders, "{} orders", orders.len());
    authority.advises = Some(90 * DAY..91 * DAY);
    let (_, bare) = live(&mut RenewalSchedule::new(33, 5), &authority, 2);
    assert_eq!(bare, Duration::ZERO);
}

#[test]
fn restart_orders_nothing_and_keeps_renewal_time() {
    let validity = start() - 10 * DAY..start() + 80 * DAY;
    let mut course = RenewalSchedule::new(33, 6);
    course.found(start(), &validity);
    let NextAction::Wait(until) = course.next(start()) else {
        panic!("{:?}", course.next(start()));
    };
    assert!(until > start() + HOUR / 2);
    assert_eq!(course.next(validity.end), NextAction::Order);
    course.record_no_renewal_info(start());
    assert!(course.due() > start() + 48 * DAY);
}

#[test]
fn retry_after_is_respected() {
    let mut course = RenewalSchedule::new(33, 7);
    course.record_failure(start(), Some(DAY / 2));
    assert_eq!(
        course.next(start() + DAY / 2 - HOUR),
        NextAction::Wait(course.due())
    );
    assert_eq!(course.next(start() + DAY / 2), NextAction::Order);
    course.record_failure(start(), Some(400 * DAY));
    assert_eq!(course.due(), start() + MAX_RETRY_AFTER);
}

proptest! {
    #[test]
    fn renewal_time_is_within_validity_and_monotonic(
        seconds in 1_u64..400 * 24 * 60 * 60,
        percent in 1_u8..99,
        chance in 0.0..1.0_f64,
    ) {
        let validity = start()..start() + Duration::from_secs(seconds);
        let at = renewal_time(&validity, percent, chance);
        prop_assert!(validity.start <= at && at < validity.end);
        prop_assert!(renewal_time(&validity, percent + 1, chance) <= at);
        prop_assert!(renewal_time(&validity, percent, 1.0) <= at);
    }

    #[test]
    fn retry_delay_grows_up_to_the_limit(
        failures in 1_u32..u32::MAX,
        chance in 0.0..1.0_f64,
    ) {
        let wait = retry_delay(failures, chance);
        prop_assert!((MIN_RETRY_DELAY..=MAX_RETRY_DELAY.mul_f64(1.25)).contains(&wait));
        prop_assert!(retry_delay(failures + 1, chance) >= wait);
    }
}
