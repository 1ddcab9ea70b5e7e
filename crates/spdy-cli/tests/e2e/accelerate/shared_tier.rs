//! Two accelerators and a cluster of three Redis servers. Each serves responses that the other has fetched, and applies the purges of
//! the other. Without the cluster each works alone.

use std::path::PathBuf;

use spdy_testkit::patience::until;
use spdy_testkit::redis_cluster::{NODES, RedisCluster};

use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::{PendingResponse, RawResponse};
use crate::support::origins::scripted::{OriginRequest, Origins, Step, whole};
use crate::support::peers::{is_installed, require, wanted};

const SITE: &str = "www.site.test";
const TOKEN: &str = "a token of the operator";

fn answer(asked: &OriginRequest) -> Vec<Step> {
    let head =
        "200 OK\r\nContent-Type: text/css\r\nCache-Control: max-age=600\r\nCache-Tag: all\r\n";
    whole(head, format!("/* {} */", asked.target).as_bytes())
}

/// One of those that share.
struct SharingAccelerator(Accelerator);

impl SharingAccelerator {
    fn start(config: &str) -> Self {
        Self(Accelerator::start(config))
    }

    /// Ends it in order.
    fn end(self) {
        self.0.end();
    }

    fn get(&self, target: &str) -> RawResponse {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {SITE}\r\nConnection: close\r\n\r\n");
        let got = PendingResponse::begin(self.0.plain(), request.as_bytes()).end(usize::MAX);
        assert_eq!(
            (got.status, got.text()),
            (200, format!("/* {target} */")),
            "{}",
            got.head
        );
        got
    }

    /// Whether it was kept.
    fn is_hit(&self, target: &str) -> bool {
        let status = self
            .get(target)
            .field("cache-status")
            .expect("each has one")
            .to_owned();
        status.starts_with("spdy; hit")
    }

    fn metric(&self, name: &str) -> u64 {
        let value = self.0.metric(name);
        value.unwrap_or_else(|| panic!("no {name}"))
    }

    /// Waits until so many parts of the cluster answer it.
    fn wait_for_slots(&self, want: u64) {
        until(&format!("{want} parts respond"), || {
            self.metric("spdy_cache_shared_parts{state=\"available\"}") == want
        });
    }

    /// Gets `target`, which is in no tier, and waits until it is in the one that is shared.
    fn fill_shared_tier(&self, target: &str) {
        let name = "spdy_cache_shared_objects_total{event=\"written\"}";
        let before = self.metric(name);
        assert!(!self.is_hit(target), "{target}");
        until(&format!("{target} is written"), || {
            self.metric(name) > before
        });
    }

    fn purge(&self, wish: &str) -> String {
        let request = format!(
            "POST /purge HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{wish}",
            wish.len()
        );
        PendingResponse::begin(self.0.admin(), request.as_bytes())
            .end(usize::MAX)
            .text()
    }

    /// Waits until it has logged `words`, and checks that it logs them once.
    fn assert_logged_once(&self, words: &str) {
        let times = || self.0.count_lines_with(words);
        until(words, || times() > 0);
        assert_eq!(times(), 1, "{words}");
    }
}

/// A cluster, an origin, and the configuration of an accelerator for them.
struct Setup {
    cluster: RedisCluster,
    origins: Origins,
    folder: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        require("redis-server", is_installed("redis-server"));
        Self {
            cluster: RedisCluster::start(),
            origins: Origins::start(&[(SITE, "http")], |asked, _| answer(asked)),
            folder: tempfile::tempdir().expect("create a folder"),
        }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("write the file");
        path
    }

    /// A configuration, with these keys of `[cache]`.
    fn config(&self, cache: &str) -> String {
        self.config_of(cache, 10_000)
    }

    /// The same, with this timeout for the cluster.
    fn config_of(&self, cache: &str, timeout_ms: u64) -> String {
        format!(
            "secret_file = {:?}\n[listen]\ntls = []\nplain = ['127.0.0.1:0']\n\
             [admin]\naddress = '127.0.0.1:0'\ntoken_file = {:?}\n\
             [cache]\n{cache}\n[cache.shared]\nurls = {:?}\ntimeout_ms = {timeout_ms}\n\
             [[site]]\nnames = ['{SITE}']\norigin = '{}'\naddress = '{}'\n",
            self.file("secret", &"s".repeat(32)),
            self.file("token", TOKEN),
            self.cluster.urls(),
            self.origins.places.origin(SITE),
            self.origins.places.address(SITE).ip(),
        )
    }

    /// How often the origin was asked for `target`.
    fn origin_requests(&self, target: &str) -> usize {
        let asked = self.origins.requests();
        asked.iter().filter(|asked| asked.target == target).count()
    }
}

#[cfg(unix)]
#[test]
fn purges_missed_while_stopped_are_applied_at_start() {
    if !wanted() {
        return;
    }
    let scene = Setup::new();
    let one = SharingAccelerator::start(&scene.config(""));
    one.wait_for_slots(16);
    let purge = |prefix: &str| {
        let told = one.purge(&format!(
            r#"{{"prefix": "http://{SITE}/{prefix}", "wait": true}}"#
        ));
        assert!(told.ends_with(r#""published":true}"#), "{told}");
    };
    purge("kept");
    let disk = format!("disk = {:?}", scene.folder.path().join("kept"));
    let with_disk = scene.config(&disk);
    let other = SharingAccelerator::start(&with_disk);
    other.wait_for_slots(16);
    other.fill_shared_tier("/kept.css");
    other.fill_shared_tier("/gone.css");
    other.end();
    purge("gone");
    let other = SharingAccelerator::start(&with_disk);
    other.wait_for_slots(16);
    until("the purge is applied", || !other.is_hit("/gone.css"));
    assert_eq!(scene.origin_requests("/gone.css"), 2);
    // What was purged before it was fetched is no news.
    assert!(other.is_hit("/kept.css"));
    let hits = "spdy_cache_disk_objects_total{event=\"hit\"}";
    assert!(other.metric(hits) >= 1, "a disk cache hit");
    assert_eq!(scene.origin_requests("/kept.css"), 1);
}

#[cfg(unix)]
#[test]
fn shutdown_completes_while_the_cluster_stalls_or_is_down() {
    if !wanted() {
        return;
    }
    let mut scene = Setup::new();
    let start = |name: &str| {
        let disk = format!("disk = {:?}", scene.folder.path().join(name));
        let config = scene.config_of(&disk, 1000);
        let started = SharingAccelerator::start(&config);
        started.wait_for_slots(16);
        started
    };
    let (one, other) = (start("one"), start("other"));
    (0..NODES).for_each(|node| scene.cluster.pause(node));
    assert!(
        !one.is_hit("/a.css"),
        "a write to the shared tier is waiting"
    );
    one.end();
    (0..NODES).for_each(|node| scene.cluster.kill(node));
    other.wait_for_slots(0);
    assert!(!other.is_hit("/a.css"));
    other.end();
}

#[test]
fn two_accelerators_share_a_cache_and_survive_a_cluster_outage() {
    if !wanted() {
        return;
    }
    let mut scene = Setup::new();
    let config = scene.config("");
    let (one, other) = (
        SharingAccelerator::start(&config),
        SharingAccelerator::start(&config),
    );
    one.wait_for_slots(16);
    other.wait_for_slots(16);

    one.fill_shared_tier("/a.css");
    assert!(other.is_hit("/a.css"), "a hit in the shared tier");
    assert_eq!(scene.origin_requests("/a.css"), 1);
    let hits = "spdy_cache_shared_objects_total{event=\"hit\"}";
    assert_eq!(other.metric(hits), 1);
    assert!(other.is_hit("/a.css"));
    assert_eq!(other.metric(hits), 1, "a hit in memory");

    // A purge on one is applied by all, in memory too.
    let purged = one.purge(&format!(
        r#"{{"tag": "all", "site": "{SITE}", "wait": true}}"#
    ));
    assert_eq!(purged, r#"{"purged":1,"soft":false,"published":true}"#);
    until("the other instance applies the purge", || {
        !other.is_hit("/a.css")
    });
    let written = "spdy_cache_shared_objects_total{event=\"written\"}";
    until("the object is written again", || other.metric(written) == 1);
    assert!(one.is_hit("/a.css"));
    assert_eq!(scene.origin_requests("/a.css"), 2);

    // The cluster goes.
    (0..NODES).for_each(|node| scene.cluster.kill(node));
    one.wait_for_slots(0);
    other.wait_for_slots(0);
    assert!(one.is_hit("/a.css") && other.is_hit("/a.css"));
    for accelerator in [&one, &other] {
        assert!(!accelerator.is_hit("/b.css"));
        until("stored without the shared tier", || {
            accelerator.is_hit("/b.css")
        });
        accelerator.assert_logged_once("the shared tier is unavailable");
    }
    let purged = one.purge(&format!(
        r#"{{"url": "http://{SITE}/b.css", "wait": true}}"#
    ));
    assert_eq!(purged, r#"{"purged":1,"soft":false,"published":false}"#);
    assert!(other.is_hit("/b.css"), "the purge was not published");

    // And comes back, with nothing of what it had.
    scene.cluster.restart(&[0, 1, 2]);
    one.wait_for_slots(16);
    other.wait_for_slots(16);
    until("the other instance applies the purge", || {
        !other.is_hit("/b.css")
    });
    one.fill_shared_tier("/c.css");
    assert!(other.is_hit("/c.css"));
    assert_eq!(scene.origin_requests("/c.css"), 1);
    for accelerator in [&one, &other] {
        accelerator.assert_logged_once("the shared tier is unavailable");
        accelerator.assert_logged_once("the shared tier is available again");
    }
}
