//! A keeper of certificates, its folder and its authority, over months that take no time.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_acme::acme_client::{Authority, OrderFailure, RenewalInfo};
use spdy_acme::certificate_info::{CLOCK_SKEW, CertificateInfo, MAX_LIFETIME, MIN_REMAINING};
use spdy_acme::certificates::Certificates;
use spdy_acme::error::AcmeError;
use spdy_acme::renewer::{EventHandler, RenewalConfig, RenewalEvent, Renewer};
use spdy_acme::state_dir::StateDir;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{Identity, KeyKind, LocalCa};
use spdy_net::tls::identities::Identities;
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};
use spdy_net::wall_clock::WallClock;
use spdy_testkit::clock::{Clock, ORIGIN};

const DIRECTORY: &str = "https://acme.test/directory";
/// A name that holds up no others.
const OPTIONAL_NAME: &str = "guest.test";
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// An authority that requires no proof.
struct Signer {
    ca: LocalCa,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Hour and names of each order, and whether it replaced one.
    orders: Vec<(SystemTime, Vec<String>, bool)>,
    refuses: bool,
    /// The challenge of this name fails.
    unproven: Option<&'static str>,
    /// Signs for these instead of the requested names.
    signs: Option<Vec<String>>,
    window: Option<Range<SystemTime>>,
    /// How long after now what it signs begins, and how long before.
    begins: (Duration, Duration),
    /// For how long it signs; else for [`LIFETIME`].
    lifetime: Option<Duration>,
    panics: bool,
}

impl Signer {
    fn orders(&self) -> usize {
        self.state.lock().unwrap().orders.len()
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }
}

struct SignerAuthority(Arc<Signer>);

impl Authority for SignerAuthority {
    fn order(
        &self,
        names: Vec<String>,
        current: Option<CertificateDer<'static>>,
    ) -> BoxFuture<Result<Identity, OrderFailure>> {
        let now = self.0.clock.wall_now();
        let mut state = self.0.state.lock().unwrap();
        state.orders.push((now, names.clone(), current.is_some()));
        let names = state.signs.clone().unwrap_or(names);
        let is_unproven = |name: &String| Some(name.as_str()) == state.unproven;
        let result = match state.refuses || names.iter().any(is_unproven) {
            true => Err(OrderFailure {
                error: AcmeError::Order("none of your business".to_owned()),
                rest: None,
            }),
            false => {
                let start = now + state.begins.0 - state.begins.1;
                let validity = start..start + state.lifetime.unwrap_or(LIFETIME);
                Ok(self.0.ca.issue_for(&names, &[], validity).unwrap())
            }
        };
        let panics = state.panics;
        Box::pin(async move {
            assert!(!panics, "a simulated panic");
            result
        })
    }

    fn renewal_info(&self, _: CertificateDer<'static>) -> BoxFuture<Option<RenewalInfo>> {
        let state = self.0.state.lock().unwrap();
        let (window, panics) = (state.window.clone(), state.panics);
        let advice = window.map(|window| RenewalInfo {
            window,
            again: 6 * HOUR,
        });
        Box::pin(async move {
            assert!(!panics, "a simulated panic");
            advice
        })
    }
}

/// A server that shows what a keeper keeps.
struct Shop {
    runtime: SharedRuntime,
    signer: Arc<Signer>,
    certificates: Certificates,
    server: ServerTls,
    client: ClientTls,
    fallback: Identity,
    events: Arc<Mutex<Vec<String>>>,
}

impl Shop {
    fn open(clock: &Clock) -> Self {
        let mut options = TlsOptions::default();
        options.resumption = false; // or a later handshake would show no certificate
        options.key_log = KeyLogTarget::Disabled;
        let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
        let fallback = ca.issue(&["localhost".to_owned()], &[]).unwrap();
        let identities = Identities::new(&[], &fallback, &options).unwrap();
        let trust = Trust {
            insecure: true,
            ..Trust::default()
        };
        Self {
            runtime: SharedRuntime::new(clock.clone()),
            signer: Arc::new(Signer {
                ca,
                clock: clock.clone(),
                state: Mutex::default(),
            }),
            certificates: Certificates::new(identities.clone()),
            server: ServerTls::of(&identities, &[Protocol::Http1], &options).unwrap(),
            client: ClientTls::new(&trust, &options).unwrap(),
            fallback,
            events: Arc::default(),
        }
    }

    fn start_renewer(&self, folder: &Path, names: &[&[&str]]) -> Renewer {
        let folder = StateDir::open(folder, &DIRECTORY.parse().unwrap()).unwrap();
        let names = names.iter().map(|names| {
            let names = names.iter().map(|name| (*name).to_owned());
            names.collect()
        });
        let config = RenewalConfig {
            certificates: names.collect(),
            optional_names: [OPTIONAL_NAME.to_owned()].into(),
            renew_at_percent_left: 33,
            seed: 1,
        };
        let events = self.events.clone();
        let on_event: EventHandler = Arc::new(move |event: &RenewalEvent<'_>| {
            let events = &mut events.lock().unwrap();
            events.push(format!("{event:?}"));
        });
        let time = (WallClock::FromEpoch(UNIX_EPOCH + ORIGIN), &self.runtime);
        let authority = Arc::new(SignerAuthority(self.signer.clone()));
        Renewer::start(
            &config,
            &self.certificates,
            &folder,
            authority,
            time,
            &on_event,
        )
    }

    /// The certificate that a client of `host` gets.
    async fn leaf_of(&self, host: &str) -> CertificateDer<'static> {
        let (near, far) = tokio::io::duplex(64 << 10);
        let connecting = self.client.connect_with_certificates(Box::new(near), host);
        let accepting = self.server.accept(Box::new(far));
        let (near, far) = futures_util::future::join(connecting, accepting).await;
        far.unwrap();
        let (_, _, chain) = near.unwrap();
        chain[0].clone().into_owned()
    }

    async fn is_bare(&self, host: &str) -> bool {
        self.leaf_of(host).await == self.fallback.chain[0]
    }

    fn event_count(&self, what: &str) -> usize {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter(|event| event.starts_with(what))
            .count()
    }
}

#[tokio::test]
async fn certificate_is_issued_and_renewed_for_a_year() {
    let (clock, dir) = (Clock::default(), tempfile::tempdir().unwrap());
    let shop = Shop::open(&clock);
    assert!(shop.is_bare("a.test").await);
    let renewer = shop.start_renewer(dir.path(), &[&["a.test", "www.a.test"], &["b.test"]]);
    clock.advance(Duration::ZERO).await;
    let mut last = shop.leaf_of("www.a.test").await;
    assert_eq!(shop.signer.orders(), 2);
    let mut certificate_count = 1;
    for day in (0..365).step_by(3) {
        clock.advance(3 * DAY).await;
        for host in ["a.test", "www.a.test", "b.test"] {
            let facts = CertificateInfo::of(&shop.leaf_of(host).await).unwrap();
            assert!(facts.covers(host), "{host} on day {day}");
            let remaining = facts.validity.end.duration_since(clock.wall_now()).unwrap();
            assert!(remaining > 25 * DAY, "{remaining:?} on day {day}");
        }
        let now = shop.leaf_of("www.a.test").await;
        certificate_count += usize::from(now != last);
        last = now;
    }
    // In sixty days, and up to two less by chance.
    assert_eq!(certificate_count, 7);
    let expiries = shop.certificates.expiries();
    assert_eq!(expiries.len(), 2);
    assert!(
        expiries
            .iter()
            .all(|(_, until)| *until > Some(clock.wall_now()))
    );
    assert!(shop.is_bare("c.test").await);

    drop(renewer);
    let orders = shop.signer.orders();
    clock.advance(100 * DAY).await;
    assert_eq!(shop.signer.orders(), orders, "orders are not repeated");
}

#[tokio::test]
async fn saved_certificate_is_used_after_restart_without_order() {
    let (clock, dir) = (Clock::default(), tempfile::tempdir().unwrap());
    let names: &[&[&str]] = &[&["a.test"]];
    let first = Shop::open(&clock);
    let renewer = first.start_renewer(dir.path(), names);
    clock.advance(Duration::ZERO).await;
    let saved_leaf = first.leaf_of("a.test").await;
    drop(renewer);

    let second = Shop::open(&clock);
    let renewer = second.start_renewer(dir.path(), names);
    assert_eq!(
        second.leaf_of("a.test").await,
        saved_leaf,
        "from the first handshake on"
    );
    clock.advance(57 * DAY).await;
    assert_eq!(
        (second.signer.orders(), second.event_count("Loaded")),
        (0, 1)
    );
    clock.advance(4 * DAY).await;
    assert_eq!(second.signer.orders(), 1);
    assert!(
        second.signer.state.lock().unwrap().orders[0].2,
        "it replaces that"
    );
    assert_ne!(second.leaf_of("a.test").await, saved_leaf);

    // Too late by the time of the next: it is ordered at once.
    drop(renewer);
    clock.advance(LIFETIME).await;
    let third = Shop::open(&clock);
    let _renewer = third.start_renewer(dir.path(), names);
    clock.advance(Duration::ZERO).await;
    assert_eq!((third.signer.orders(), third.event_count("Issued")), (1, 1));
}

#[tokio::test]
async fn changed_names_order_and_old_certificate_stays_until_then() {
    let (clock, dir) = (Clock::default(), tempfile::tempdir().unwrap());
    let shop = Shop::open(&clock);
    let renewer = shop.start_renewer(dir.path(), &[&["a.test", "b.test"]]);
    clock.advance(Duration::ZERO).await;
    let old = shop.leaf_of("a.test").await;
    drop(renewer);
    shop.signer.set(|state| state.refuses = true);
    let _renewer = shop.start_renewer(dir.path(), &[&["a.test", "c.test"]]);
    clock.advance(Duration::ZERO).await;
    assert_eq!(shop.signer.orders(), 2);
    assert_eq!(shop.leaf_of("a.test").await, old);
    assert!(shop.is_bare("b.test").await && shop.is_bare("c.test").await);
    shop.signer.set(|state| state.refuses = false);
    clock.advance(HOUR).await;
    assert_eq!(shop.leaf_of("a.test").await, shop.leaf_of("c.test").await);
    assert_ne!(shop.leaf_of("a.test").await, old);
}

#[tokio::test]
async fn failing_optional_name_does_not_block_others() {
    let (clock, dir) = (Clock::default(), tempfile::tempdir().unwrap());
    let shop = Shop::open(&clock);
    shop.signer
        .set(|state| state.unproven = Some(OPTIONAL_NAME));
    let _renewer = shop.start_renewer(dir.path(), &[&["a.test", OPTIONAL_NAME]]);
    let without = || {
        let state = shop.signer.state.lock().unwrap();
        let orders = state.orders.iter();
        orders.filter(|(_, names, _)| *names == ["a.test"]).count()
    };
    clock.advance(Duration::ZERO).await;
    assert!(!shop.is_bare("a.test").await && shop.is_bare(OPTIONAL_NAME).await);
    clock.advance(7 * DAY).await;
    assert!(
        shop.event_count("Failed") > 20,
        "one with the guest is wanted"
    );
    assert_eq!(without(), 1);
    let first = shop.leaf_of("a.test").await;
    clock.advance(60 * DAY).await;
    assert_eq!(without(), 2, "it is renewed in time");
    assert_ne!(shop.leaf_of("a.test").await, first);
    shop.signer.set(|state| state.unproven = None);
    clock.advance(DAY).await;
    assert_eq!(
        shop.leaf_of("a.test").await,
        shop.leaf_of(OPTIONAL_NAME).await
    );
}

#[tokio::test]
async fn failed_orders_back_off() {
    let (clock, dir) = (Clock::default(), tempfile::tempdir().unwrap());
    let shop = Shop::open(&clock);
    shop.signer.set(|state| state.refuses = true);
    let _renewer = shop.start_renewer(dir.path(), &[&["a.test"]]);
    clock.advance(7 * DAY).await;
    let hours: Vec<_> = {
        let state = shop.signer.state.lock().unwrap();
        state.orders.iter().map(|(hour, ..)| *hour).collect()
    };
    let between = hours
        .windows(2)
        .map(|two| two[1].duration_since(two[0]).unwrap());
    let between: Vec<_> = between.collect();
    assert!(
        between.windows(2).take(7).all(|two| two[0] < two[1]),
        "{between:?}"
    );
    assert!(
        (25..40).contains(&hours.len()),
        "{} orders in a week",
        hours.len()
    );
    assert_eq!(shop.event_count("Failed"), hours.len());
    assert!(shop.events.lock().unwrap()[1].contains("none of your business"));
    assert!(shop.is_bare("a.test").await);
    assert_eq!(shop.certificates.expiries(), [("a.test".to_owned(), None)]);
    shop.signer.set(|state| state.refuses = false);
    clock.advance(DAY).await;
    assert!(!shop.is_bare("a.test").await);
}

#[tokio::test]
async fn certificate_for_other_names_is_not_used() {
    let (clock, dir) = (Clock::default(), tempfile::tempdir().unwrap());
    let shop = Shop::open(&clock);
    shop.signer
        .set(|state| state.signs = Some(vec!["b.test".to_owned()]));
    let _renewer = shop.start_renewer(dir.path(), &[&["a.test"]]);
    clock.advance(Duration::ZERO).await;
    assert!(shop.is_bare("a.test").await && shop.is_bare("b.test").await);
    let events = shop.events.lock().unwrap().join("\n");
    assert!(events.contains("found one for b.test"), "{events}");
}

#[tokio::test]
async fn certificate_with_invalid_validity_is_reported_and_unused() {
    let second = Duration::from_secs(1);
    let far = 20 * MAX_LIFETIME;
    for (begins, lifetime, expected) in [
        ((CLOCK_SKEW, Duration::ZERO), LIFETIME, None),
        (
            (CLOCK_SKEW + second, Duration::ZERO),
            LIFETIME,
            Some("min longer, found validity from"),
        ),
        (
            (Duration::ZERO, LIFETIME),
            LIFETIME - second,
            Some("expected a certificate that is valid at"),
        ),
        ((Duration::ZERO, DAY), DAY + MIN_REMAINING, None),
        (
            (Duration::ZERO, DAY),
            DAY + MIN_REMAINING - second,
            Some("and 5 min longer"),
        ),
        ((Duration::ZERO, Duration::ZERO), MAX_LIFETIME, None),
        (
            (Duration::ZERO, Duration::ZERO),
            far,
            Some("expected a validity of at most 3653 days"),
        ),
    ] {
        let (clock, dir) = (Clock::default(), tempfile::tempdir().unwrap());
        let shop = Shop::open(&clock);
        shop.signer.set(|state| {
            state.begins = begins;
            state.lifetime = Some(lifetime);
        });
        let _renewer = shop.start_renewer(dir.path(), &[&["a.test"]]);
        clock.advance(Duration::ZERO).await;
        let events = shop.events.lock().unwrap().join("\n");
        assert_eq!(shop.is_bare("a.test").await, expected.is_some(), "{events}");
        assert!(events.contains(expected.unwrap_or("Issued")), "{events}");
        assert_eq!(
            shop.event_count("Failed"),
            usize::from(expected.is_some()),
            "{events}"
        );
    }
}

/// The task of a certificate ended with the panic, without a report.
#[tokio::test]
async fn panic_in_order_or_renewal_info_is_a_failure() {
    let (clock, dir) = (Clock::default(), tempfile::tempdir().unwrap());
    let shop = Shop::open(&clock);
    shop.signer.set(|state| state.panics = true);
    let _renewer = shop.start_renewer(dir.path(), &[&["a.test"]]);
    clock.advance(Duration::ZERO).await;
    assert_eq!((shop.signer.orders(), shop.event_count("Failed")), (1, 1));
    let events = shop.events.lock().unwrap().join("\n");
    assert!(events.contains("a simulated panic"), "{events}");
    let failed = shop.certificates.orders.failed.load(Ordering::Relaxed);
    assert_eq!(failed, 1);

    shop.signer.set(|state| state.panics = false);
    clock.advance(HOUR).await;
    assert_eq!((shop.signer.orders(), shop.event_count("Issued")), (2, 1));

    // Polled for advice it panics for a week, and is polled again.
    shop.signer.set(|state| state.panics = true);
    clock.advance(7 * DAY).await;
    let now = clock.wall_now();
    shop.signer.set(|state| {
        state.panics = false;
        state.window = Some(now - DAY..now);
    });
    clock.advance(DAY).await;
    assert!(shop.event_count("Issued") >= 2);
}

/// In the folder is what came before it: what could not be written, or is about to be, was taken back by a reload.
#[tokio::test]
async fn unsaved_certificate_survives_a_new_renewer() {
    let (clock, dir) = (Clock::default(), tempfile::tempdir().unwrap());
    let shop = Shop::open(&clock);
    let renewer = shop.start_renewer(dir.path(), &[&["a.test"]]);
    clock.advance(Duration::ZERO).await;
    let folder = StateDir::open(dir.path(), &DIRECTORY.parse().unwrap()).unwrap();
    let first = folder.load_certificate("a.test").unwrap().unwrap();
    clock.advance(61 * DAY).await;
    let second = shop.leaf_of("a.test").await;
    assert_ne!(second, first.chain[0]);
    drop(renewer);
    folder.save_certificate("a.test", &first).unwrap();
    let _renewer = shop.start_renewer(dir.path(), &[&["a.test", "b.test"]]);
    assert_eq!(shop.leaf_of("a.test").await, second);
}

#[tokio::test]
async fn renewal_info_brings_renewal_forward() {
    let (clock, dir) = (Clock::default(), tempfile::tempdir().unwrap());
    let shop = Shop::open(&clock);
    let _renewer = shop.start_renewer(dir.path(), &[&["a.test"]]);
    clock.advance(10 * DAY).await;
    assert_eq!(shop.signer.orders(), 1);
    let now = clock.wall_now();
    shop.signer.set(|state| state.window = Some(now - DAY..now));
    clock.advance(DAY / 2).await;
    assert_eq!(shop.signer.orders(), 2);
}

#[tokio::test]
async fn unwritable_folder_only_costs_the_restart() {
    let (clock, dir) = (Clock::default(), tempfile::tempdir().unwrap());
    let shop = Shop::open(&clock);
    let _renewer = shop.start_renewer(&dir.path().join("acme"), &[&["a.test"]]);
    std::fs::remove_dir_all(dir.path().join("acme")).unwrap();
    clock.advance(Duration::ZERO).await;
    assert!(!shop.is_bare("a.test").await);
    assert_eq!(
        (shop.event_count("SaveFailed"), shop.event_count("Issued")),
        (1, 1)
    );
}

#[tokio::test]
async fn expiry_of_external_certificate_is_reported() {
    let clock = Clock::default();
    let shop = Shop::open(&clock);
    let until = clock.wall_now() + LIFETIME;
    let names = ["b.test".to_owned(), "a.test".to_owned()];
    let load = |names: &[String], until| {
        let identity = shop
            .signer
            .ca
            .issue_for(names, &[], clock.wall_now()..until);
        shop.certificates
            .load_external(&identity.unwrap(), false)
            .unwrap()
    };
    let later = until + LIFETIME;
    shop.certificates.set_external(vec![
        load(&names, later),
        load(&names, until),
        load(&names[1..], later),
    ]);
    let expected = [
        ("a.test".to_owned(), Some(later)),
        ("b.test".to_owned(), Some(until)),
    ];
    assert_eq!(shop.certificates.expiries(), expected);
    shop.certificates.set_external(Vec::new());
    assert_eq!(shop.certificates.expiries(), []);
}
