//! Two accelerators with a shared tier: which operations it gets and when, and the effect of purges. The tier is a table here; the real one
//! is in spdy-valkey.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use bytes::Bytes;
use http::{HeaderMap, Method};
use spdy_cache::body::Body;
use spdy_cache::key::Key;
use spdy_cache::policy::Policy;
use spdy_cache::shared_tier::{PurgeTarget, PurgeVersion, SharedTier, TierFuture};
use spdy_cache::stored::Stored;
use spdy_proxy::cache::disk::store::DiskStore;
use spdy_proxy::cache::purge::PurgeRequest;
use spdy_proxy::proxy::Proxy;

use crate::support::{Origin, accelerator, accelerator_of, get, respond, send_request};

const FRESH: (&str, &str) = ("cache-control", "max-age=600");

/// An answer, and what was known of purges where its fetch began.
type StoredEntry = (Key, Arc<Stored>, Body, PurgeVersion);

/// What all have.
#[derive(Debug, Default)]
struct Table {
    entries: Mutex<Vec<StoredEntry>>,
    /// The operations that it got, by name.
    calls: Mutex<Vec<&'static str>>,
    purges: Mutex<Vec<PurgeTarget>>,
    all: Mutex<Vec<Weak<Proxy>>>,
}

/// One's door to it.
#[derive(Debug)]
struct Door {
    table: Arc<Table>,
    me: OnceLock<Weak<Proxy>>,
}

impl Table {
    fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    fn drop_all(&self, is_meant: impl Fn(&Key, &HeaderMap) -> bool) {
        let mut entries = self.entries.lock().unwrap();
        entries.retain(|(key, stored, ..)| !is_meant(key, stored.headers()));
    }
}

impl SharedTier for Door {
    fn lookup<'a>(
        &'a self,
        key: &'a Key,
        request_headers: &'a HeaderMap,
        _policy: &'a Policy,
    ) -> TierFuture<'a, Option<(Stored, Body)>> {
        self.table.calls.lock().unwrap().push("find");
        let entries = self.table.entries.lock().unwrap();
        let entry = entries
            .iter()
            .rev()
            .find(|(of, stored, ..)| of == key && stored.matches(request_headers));
        let entry = entry.map(|(_, stored, body, _)| (Stored::clone(stored), body.clone()));
        Box::pin(std::future::ready(entry))
    }

    fn purge_version(&self) -> PurgeVersion {
        PurgeVersion(self.table.purges.lock().unwrap().len() as u128)
    }

    fn store(&self, key: &Key, stored: &Arc<Stored>, body: &Body, since: PurgeVersion) {
        self.table.calls.lock().unwrap().push("keep");
        let mut entries = self.table.entries.lock().unwrap();
        entries.push((key.clone(), stored.clone(), body.clone(), since));
    }

    fn remove(&self, url: &[u8]) {
        self.table.calls.lock().unwrap().push("forget");
        self.table.drop_all(|key, _| key.url() == url);
    }

    fn purge(&self, meant: PurgeTarget, soft: bool) {
        self.table.calls.lock().unwrap().push("purge");
        self.table
            .drop_all(|key, headers| meant.matches(key, headers));
        self.table.purges.lock().unwrap().push(meant.clone());
        let me = self.me.get().expect("it is set");
        for other in self.table.all.lock().unwrap().iter() {
            if let (false, Some(other)) = (other.ptr_eq(me), other.upgrade()) {
                other.cache.apply_remote_purge(&meant, soft);
            }
        }
    }

    fn flush_purges(&self) -> TierFuture<'_, bool> {
        Box::pin(std::future::ready(true))
    }
}

fn sharing(origin: &Origin, table: &Arc<Table>) -> Arc<Proxy> {
    through(accelerator(origin, ""), table)
}

fn through(proxy: Arc<Proxy>, table: &Arc<Table>) -> Arc<Proxy> {
    let me = Arc::downgrade(&proxy);
    table.all.lock().unwrap().push(me.clone());
    proxy.cache.set_shared_tier(Arc::new(Door {
        table: table.clone(),
        me: me.into(),
    }));
    proxy
}

fn echo() -> Origin {
    Origin::start(|request: http::Request<Bytes>| {
        let path = request.uri().path().to_owned();
        std::future::ready(respond(
            &[FRESH, ("cache-tag", "t"), ("etag", "\"1\"")],
            path,
        ))
    })
}

fn purge(wish: &str) -> PurgeRequest {
    serde_json::from_str(wish).expect("a planned request")
}

#[tokio::test]
async fn shared_tier_hit_is_promoted_and_local_hit_is_local() {
    let (origin, table) = (echo(), Arc::<Table>::default());
    let (one, other) = (sharing(&origin, &table), sharing(&origin, &table));
    assert_eq!(get(&one, "/a", &[]).await.text(), "/a");
    assert_eq!(table.calls(), ["find", "keep"]);
    let lifted = get(&other, "/a", &[]).await;
    assert_eq!(lifted.text(), "/a");
    assert!(
        lifted.field("cache-status").starts_with("spdy; hit"),
        "{lifted:?}"
    );
    assert_eq!(
        table.calls(),
        ["find"],
        "an object loaded from the disk is already stored"
    );
    for proxy in [&one, &other] {
        assert_eq!(get(proxy, "/a", &[]).await.text(), "/a");
    }
    assert_eq!(table.calls(), [""; 0], "memory has it");
    assert_eq!(origin.times("/a"), 1);
}

#[tokio::test]
async fn different_rules_do_not_share_entries() {
    let (origin, table) = (echo(), Arc::<Table>::default());
    let one = sharing(&origin, &table);
    let text = format!(
        "[[site]]\nnames = ['www.site.test']\norigin = 'http://{}'\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test'\nkinds = ['image']\n",
        origin.address
    );
    let staging = through(accelerator_of(&text), &table);
    for (times, target) in [(1, "/a"), (3, "/a?spdy=off")] {
        get(&one, target, &[]).await;
        assert_eq!(origin.times("/a"), times);
        get(&sharing(&origin, &table), target, &[]).await;
        assert_eq!(origin.times("/a"), times, "of the same configuration");
        get(&staging, target, &[]).await;
        assert_eq!(origin.times("/a"), times + 1, "of another");
    }
}

#[tokio::test]
async fn stale_entry_is_replaced_by_fresh_shared_one() {
    let (origin, table) = (echo(), Arc::<Table>::default());
    let (one, other) = (sharing(&origin, &table), sharing(&origin, &table));
    get(&one, "/a", &[]).await;
    get(&other, "/a", &[]).await;
    // Both have it stale now, and the tier has nothing.
    let wish = purge(r#"{"url": "http://www.site.test/a", "soft": true}"#);
    one.purge(&wish).expect("a valid planned request");
    table.calls();
    get(&one, "/a", &[]).await;
    assert_eq!(table.calls(), ["find", "keep"]);
    assert_eq!(origin.times("/a"), 2, "validated");
    let response = get(&other, "/a", &[]).await;
    assert!(
        response.field("cache-status").starts_with("spdy; hit"),
        "{response:?}"
    );
    assert_eq!(origin.times("/a"), 2, "one request was sent before");
    assert_eq!(table.calls(), ["find"]);
}

#[tokio::test]
async fn remote_purge_removes_memory_and_disk_entries() {
    let (origin, table) = (echo(), Arc::<Table>::default());
    let (one, other) = (sharing(&origin, &table), sharing(&origin, &table));
    let folder = tempfile::tempdir().expect("a temporary folder");
    other.set_disk(DiskStore::open(folder.path(), 10 << 20).expect("a temporary folder"));
    let counts = || async {
        let disk = other.cache.disk().expect("the cache has a disk tier");
        disk.flush_removals().await;
        (other.cache.usage().2, disk.usage().0)
    };
    for (wish, times) in [
        (r#"{"url": "http://www.site.test/a"}"#, 1),
        (r#"{"prefix": "http://www.site.test/"}"#, 2),
        (r#"{"tag": "t", "site": "www.site.test"}"#, 3),
        (r#"{"site": "www.site.test"}"#, 4),
    ] {
        get(&one, "/a", &[]).await;
        get(&other, "/a", &[]).await;
        assert_eq!(origin.times("/a"), times, "{wish}");
        assert_eq!(
            counts().await,
            (1, 1),
            "{wish}: what is lifted is on the disk, too"
        );
        let since = table
            .entries
            .lock()
            .unwrap()
            .last()
            .map(|(.., since)| *since);
        assert_eq!(since, Some(PurgeVersion(times as u128 - 1)), "{wish}");
        one.purge(&purge(wish)).expect("a valid planned request");
        assert_eq!(counts().await, (0, 0), "{wish}");
    }
}

#[tokio::test]
async fn client_invalidation_removes_shared_entry_without_broadcast() {
    let (origin, table) = (echo(), Arc::<Table>::default());
    let (one, other) = (sharing(&origin, &table), sharing(&origin, &table));
    get(&one, "/a", &[]).await;
    get(&other, "/b", &[]).await;
    table.calls();
    send_request(&one, Method::POST, "/a", &[], "x").await;
    let calls = table.calls();
    assert!(
        calls.contains(&"forget") && !calls.contains(&"purge"),
        "{calls:?}"
    );
    let before = origin.times("/a");
    get(&other, "/a", &[]).await;
    assert_eq!(origin.times("/a"), before + 1);
    assert_eq!(get(&one, "/b", &[]).await.text(), "/b");
    assert_eq!(origin.times("/b"), 1);
}
