//! Two accelerators and a cluster of three Redis servers. Each serves responses that the other has fetched, and applies the purges
//! of the other. Without the cluster each works alone.

use std::path::PathBuf;

use spdy_testkit::redis_cluster::{NODES, RedisCluster};
use spdy_testkit::wait::until;

use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::{PendingResponse, RawResponse};
use crate::support::origins::scripted::{OriginRequest, Origins, Step, complete_response};
use crate::support::peers::{is_installed, peers_enabled, require};

const SITE: &str = "www.site.test";
const TOKEN: &str = "a token of the operator";

fn respond(request: &OriginRequest) -> Vec<Step> {
    let head =
        "200 OK\r\nContent-Type: text/css\r\nCache-Control: max-age=600\r\nCache-Tag: all\r\n";
    complete_response(head, format!("/* {} */", request.target).as_bytes())
}

/// An accelerator with a shared tier.
struct SharingAccelerator(Accelerator);

impl SharingAccelerator {
    fn start(config: &str) -> Self {
        Self(Accelerator::start(config))
    }

    /// Stops it, and waits until it has ended.
    fn end(self) {
        self.0.end();
    }

    fn get(&self, target: &str) -> RawResponse {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {SITE}\r\nConnection: close\r\n\r\n");
        let response = PendingResponse::begin(self.0.plain(), request.as_bytes()).end(usize::MAX);
        assert_eq!(
            (response.status, response.text()),
            (200, format!("/* {target} */")),
            "{}",
            response.head
        );
        response
    }

    /// Whether the response is a cache hit.
    fn is_hit(&self, target: &str) -> bool {
        let status = self
            .get(target)
            .field("cache-status")
            .expect("a Cache-Status")
            .to_owned();
        status.starts_with("spdy; hit")
    }

    fn metric(&self, name: &str) -> u64 {
        let value = self.0.metric(name);
        value.unwrap_or_else(|| panic!("no {name}"))
    }

    /// Waits until `count` parts of the cluster are available.
    fn wait_for_slots(&self, count: u64) {
        until(&format!("{count} parts respond"), || {
            self.metric("spdy_cache_shared_parts{state=\"available\"}") == count
        });
    }

    /// Requests `target`, which is in no tier, and waits until it is written to the shared tier.
    fn fill_shared_tier(&self, target: &str) {
        let name = "spdy_cache_shared_objects_total{event=\"written\"}";
        let count_before = self.metric(name);
        assert!(!self.is_hit(target), "{target}");
        until(&format!("{target} is written"), || {
            self.metric(name) > count_before
        });
    }

    fn purge(&self, purge_request: &str) -> String {
        let request = format!(
            "POST /purge HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{purge_request}",
            purge_request.len()
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
            origins: Origins::start(&[(SITE, "http")], |request, _| respond(request)),
            folder: tempfile::tempdir().expect("create a folder"),
        }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("write the file");
        path
    }

    /// A configuration with these keys of `[cache]`.
    fn config(&self, cache: &str) -> String {
        self.config_with_timeout(cache, 10_000)
    }

    /// Like [`config`](Self::config), with this timeout for the cluster.
    fn config_with_timeout(&self, cache: &str, timeout_ms: u64) -> String {
        format!(
            "secret_file = {:?}\n[listen]\ntls = []\nplain = ['127.0.0.1:0']\n\
             [admin]\naddress = '127.0.0.1:0'\ntoken_file = {:?}\n\
             [cache]\n{cache}\n[cache.shared]\nurls = {:?}\ntimeout_ms = {timeout_ms}\n\
             [[site]]\nnames = ['{SITE}']\norigin = '{}'\naddress = '{}'\n",
            self.file("secret", &"s".repeat(32)),
            self.file("token", TOKEN),
            self.cluster.urls(),
            self.origins.addresses.origin(SITE),
            self.origins.addresses.address(SITE).ip(),
        )
    }

    /// How many requests for `target` the origin got.
    fn origin_requests(&self, target: &str) -> usize {
        let requests = self.origins.requests();
        requests
            .iter()
            .filter(|request| request.target == target)
            .count()
    }
}

#[cfg(unix)]
#[test]
fn purges_missed_while_stopped_are_applied_at_start() {
    if !peers_enabled() {
        return;
    }
    let setup = Setup::new();
    let first = SharingAccelerator::start(&setup.config(""));
    first.wait_for_slots(16);
    let purge = |prefix: &str| {
        let purge_response = first.purge(&format!(
            r#"{{"prefix": "http://{SITE}/{prefix}", "wait": true}}"#
        ));
        assert!(
            purge_response.ends_with(r#""published":true}"#),
            "{purge_response}"
        );
    };
    purge("stays");
    let disk = format!("disk = {:?}", setup.folder.path().join("cache"));
    let with_disk = setup.config(&disk);
    let second = SharingAccelerator::start(&with_disk);
    second.wait_for_slots(16);
    second.fill_shared_tier("/stays.css");
    second.fill_shared_tier("/gone.css");
    second.end();
    purge("gone");
    let second = SharingAccelerator::start(&with_disk);
    second.wait_for_slots(16);
    until("the purge is applied", || !second.is_hit("/gone.css"));
    assert_eq!(setup.origin_requests("/gone.css"), 2);
    // A purge from before the fetch does not remove it.
    assert!(second.is_hit("/stays.css"));
    let hits = "spdy_cache_disk_objects_total{event=\"hit\"}";
    assert!(second.metric(hits) >= 1, "a disk cache hit");
    assert_eq!(setup.origin_requests("/stays.css"), 1);
}

#[cfg(unix)]
#[test]
fn shutdown_completes_while_the_cluster_stalls_or_is_down() {
    if !peers_enabled() {
        return;
    }
    let mut setup = Setup::new();
    let start = |name: &str| {
        let disk = format!("disk = {:?}", setup.folder.path().join(name));
        let config = setup.config_with_timeout(&disk, 1000);
        let accelerator = SharingAccelerator::start(&config);
        accelerator.wait_for_slots(16);
        accelerator
    };
    let (first, second) = (start("one"), start("other"));
    (0..NODES).for_each(|node| setup.cluster.pause(node));
    assert!(
        !first.is_hit("/a.css"),
        "a write to the shared tier is waiting"
    );
    first.end();
    (0..NODES).for_each(|node| setup.cluster.kill(node));
    second.wait_for_slots(0);
    assert!(!second.is_hit("/a.css"));
    second.end();
}

#[test]
fn two_accelerators_share_a_cache_and_survive_a_cluster_outage() {
    if !peers_enabled() {
        return;
    }
    let mut setup = Setup::new();
    let config = setup.config("");
    let (first, second) = (
        SharingAccelerator::start(&config),
        SharingAccelerator::start(&config),
    );
    first.wait_for_slots(16);
    second.wait_for_slots(16);

    first.fill_shared_tier("/a.css");
    assert!(second.is_hit("/a.css"), "a hit in the shared tier");
    assert_eq!(setup.origin_requests("/a.css"), 1);
    let hits = "spdy_cache_shared_objects_total{event=\"hit\"}";
    assert_eq!(second.metric(hits), 1);
    assert!(second.is_hit("/a.css"));
    assert_eq!(second.metric(hits), 1, "a hit in memory");

    // A purge on one is applied by all, in memory too.
    let purged = first.purge(&format!(
        r#"{{"tag": "all", "site": "{SITE}", "wait": true}}"#
    ));
    assert_eq!(purged, r#"{"purged":1,"soft":false,"published":true}"#);
    until("the other instance applies the purge", || {
        !second.is_hit("/a.css")
    });
    let metric = "spdy_cache_shared_objects_total{event=\"written\"}";
    until("the object is written again", || second.metric(metric) == 1);
    assert!(first.is_hit("/a.css"));
    assert_eq!(setup.origin_requests("/a.css"), 2);

    // The cluster fails.
    (0..NODES).for_each(|node| setup.cluster.kill(node));
    first.wait_for_slots(0);
    second.wait_for_slots(0);
    assert!(first.is_hit("/a.css") && second.is_hit("/a.css"));
    for accelerator in [&first, &second] {
        assert!(!accelerator.is_hit("/b.css"));
        until("stored without the shared tier", || {
            accelerator.is_hit("/b.css")
        });
        accelerator.assert_logged_once("the shared tier is unavailable");
    }
    let purged = first.purge(&format!(
        r#"{{"url": "http://{SITE}/b.css", "wait": true}}"#
    ));
    assert_eq!(purged, r#"{"purged":1,"soft":false,"published":false}"#);
    assert!(second.is_hit("/b.css"), "the purge was not published");

    // The cluster is available again, with no data.
    setup.cluster.restart(&[0, 1, 2]);
    first.wait_for_slots(16);
    second.wait_for_slots(16);
    until("the other instance applies the purge", || {
        !second.is_hit("/b.css")
    });
    first.fill_shared_tier("/c.css");
    assert!(second.is_hit("/c.css"));
    assert_eq!(setup.origin_requests("/c.css"), 1);
    for accelerator in [&first, &second] {
        accelerator.assert_logged_once("the shared tier is unavailable");
        accelerator.assert_logged_once("the shared tier is available again");
    }
}
