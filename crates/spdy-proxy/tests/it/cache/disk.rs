//! The tier on disk: which objects survive what, and which are never found.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Request, Response, request};
use spdy_cache::body::Body;
use spdy_cache::freshness::Times;
use spdy_cache::key::{Key, KeyParts, Scope};
use spdy_cache::policy::Policy;
use spdy_cache::purge_tags::PurgeTag;
use spdy_cache::storable::may_store;
use spdy_cache::stored::Stored;
use spdy_proxy::cache::disk::store::DiskStore;

const ROOM: u64 = 10 << 20;

fn parts(target: &str) -> KeyParts<'_> {
    KeyParts {
        site: "site.test",
        scheme: "https",
        host: "site.test",
        port: 443,
        target,
        rules: "",
    }
}

fn key(target: &str) -> Key {
    Key::new(&parts(target)).unwrap()
}

fn request_in(language: &str) -> request::Parts {
    let request = Request::get("https://site.test/").header("accept-language", language);
    request.body(()).unwrap().into_parts().0
}

fn stored(language: &str, seconds: u64) -> Arc<Stored> {
    let response = Response::builder()
        .header("cache-control", "max-age=600")
        .header("vary", "accept-language")
        .header("cache-tag", format!("lang-{language}"));
    let head = response.body(()).unwrap().into_parts().0;
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_262_400 + seconds);
    Arc::new(
        may_store(
            &Policy::site(),
            &request_in(language),
            &head,
            Times::at(now),
        )
        .unwrap(),
    )
}

fn body(len: usize, seed: u8) -> Body {
    Body::copy_of(
        &(0..len)
            .map(|at| (at / 7) as u8 ^ seed)
            .collect::<Vec<u8>>(),
    )
}

async fn lookup(disk: &DiskStore, target: &str, language: &str) -> Option<Body> {
    let headers: HeaderMap = request_in(language).headers;
    let (_, body) = disk.lookup(&key(target), &headers, &Policy::site()).await?;
    Some(body)
}

/// The files of objects in `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = folders
        .filter(|path| path.is_dir())
        .flat_map(|path| fs::read_dir(path).unwrap());
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test]
async fn stored_variants_survive_restart() {
    let folder = tempfile::tempdir().unwrap();
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    for (language, seed) in [("en", 1), ("de", 2)] {
        disk.store(&key("/a"), stored(language, 0), body(200_000, seed));
    }
    disk.store(&key("/empty"), stored("en", 0), Body::default());
    drop(disk);
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    assert_eq!(lookup(&disk, "/a", "en").await, Some(body(200_000, 1)));
    assert_eq!(lookup(&disk, "/a", "DE").await, Some(body(200_000, 2)));
    assert_eq!(lookup(&disk, "/empty", "en").await, Some(Body::default()));
    assert_eq!(lookup(&disk, "/a", "fr").await, None);
    assert_eq!(lookup(&disk, "/b", "en").await, None);
    assert_eq!(disk.counters().hits.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn newer_response_replaces_older() {
    let folder = tempfile::tempdir().unwrap();
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    disk.store(&key("/a"), stored("en", 0), body(100, 1));
    disk.store(&key("/a"), stored("en", 9), body(200, 2));
    disk.flush_removals().await;
    assert_eq!(lookup(&disk, "/a", "en").await, Some(body(200, 2)));
    assert_eq!((disk.usage().0, files(folder.path()).len()), (1, 1));
}

#[tokio::test]
async fn purge_waits_until_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    disk.store(&key("/a"), stored("en", 0), body(100, 1));
    disk.store(&key("/b"), stored("en", 0), body(100, 2));
    assert!(disk.flush_removals().await);
    let files = files(folder.path());
    fs::remove_file(&files[0]).unwrap();
    fs::create_dir(&files[0]).unwrap(); // `remove_file` fails for a folder
    disk.purge(b"");
    assert_eq!(lookup(&disk, "/a", "en").await, None);
    assert!(!disk.flush_removals().await, "a crash might bring it back");
    assert!(!files[1].exists(), "the other is gone");
    fs::remove_dir(&files[0]).unwrap();
    assert!(disk.flush_removals().await, "it is tried again");
}

#[tokio::test]
async fn corrupt_store_files_are_removed_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let fill = || async {
        let disk = DiskStore::open(folder.path(), ROOM).unwrap();
        disk.store(&key("/a"), stored("en", 0), body(100_000, 1));
        disk.flush_removals().await;
    };
    let valid = {
        fill().await;
        fs::read(&files(folder.path())[0]).unwrap()
    };
    for (case, bytes) in [
        ("cut in the body", valid[..valid.len() - 1].to_vec()),
        ("cut in the head", valid[..100].to_vec()),
        ("cut to nothing", Vec::new()),
        ("with more behind it", [&valid[..], b"x"].concat()),
        ("with a bit flipped in its head", {
            let mut flipped = valid.clone();
            flipped[60] ^= 1;
            flipped
        }),
    ] {
        fill().await;
        let path = files(folder.path()).remove(0);
        fs::write(&path, bytes).unwrap();
        // An incomplete write, as after a kill.
        fs::write(path.with_extension("new"), &valid[..5000]).unwrap();
        let disk = DiskStore::open(folder.path(), ROOM).unwrap();
        assert_eq!(lookup(&disk, "/a", "en").await, None, "{case}");
        assert_eq!(files(folder.path()), [] as [PathBuf; 0], "{case}");
        assert_eq!(disk.counters().corrupt.load(Ordering::Relaxed), 2, "{case}");
    }
}

#[test]
fn foreign_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let name = "0123456789abcdef".repeat(4);
    let others = [
        String::from("notes.txt"),
        String::from("ab/notes.txt"),
        format!("ab/{name}.txt"),
        format!("ab/{}", &name[1..]),
        format!("documents/{name}"),
    ];
    for other in &others {
        let path = folder.path().join(other);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "mine").unwrap();
    }
    let store_file = folder.path().join("ab").join(&name);
    fs::write(&store_file, "torn").unwrap();
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    assert!(
        others
            .iter()
            .all(|other| folder.path().join(other).exists())
    );
    assert!(!store_file.exists() && disk.counters().corrupt.load(Ordering::Relaxed) == 1);
}

#[tokio::test]
async fn flipped_bit_is_detected_before_serving() {
    let folder = tempfile::tempdir().unwrap();
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    disk.store(&key("/a"), stored("en", 0), body(200_000, 1));
    disk.flush_removals().await;
    let path = files(folder.path()).remove(0);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() - 50_000;
    bytes[at] ^= 4;
    fs::write(&path, bytes).unwrap();
    assert_eq!(lookup(&disk, "/a", "en").await, None);
    assert_eq!(disk.usage(), (0, 0));
    disk.flush_removals().await;
    assert_eq!(files(folder.path()).len(), 0);
    assert_eq!(disk.counters().corrupt.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn refetched_entry_replaces_corrupt_file() {
    let folder = tempfile::tempdir().unwrap();
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    disk.store(&key("/a"), stored("en", 0), body(1000, 1));
    disk.flush_removals().await;
    fs::write(files(folder.path()).remove(0), "torn").unwrap();
    assert_eq!(lookup(&disk, "/a", "en").await, None);
    disk.store(&key("/a"), stored("en", 9), body(2000, 2));
    disk.flush_removals().await;
    assert_eq!(lookup(&disk, "/a", "en").await, Some(body(2000, 2)));
    assert_eq!(files(folder.path()).len(), 1);
}

#[tokio::test]
async fn disk_limit_evicts_least_recently_used() {
    let folder = tempfile::tempdir().unwrap();
    let room = 300_000;
    let disk = DiskStore::open(folder.path(), room).unwrap();
    disk.store(&key("/used"), stored("en", 0), body(50_000, 0));
    for number in 0..20 {
        disk.store(
            &key(&format!("/{number}")),
            stored("en", 0),
            body(50_000, number),
        );
        disk.flush_removals().await;
        assert!(
            lookup(&disk, "/used", "en").await.is_some(),
            "after {number}"
        );
        let on_disk: u64 = files(folder.path())
            .iter()
            .map(|path| fs::metadata(path).unwrap().len())
            .sum();
        assert!(
            on_disk <= room && disk.usage().1 == on_disk,
            "{on_disk} bytes"
        );
    }
    assert_eq!(disk.counters().evicted.load(Ordering::Relaxed), 16);
    disk.store(&key("/large"), stored("en", 0), body(300_000, 0));
    disk.flush_removals().await;
    assert_eq!(disk.counters().write_skipped.load(Ordering::Relaxed), 1);
    drop(disk);
    let smaller = DiskStore::open(folder.path(), 110_000).unwrap();
    assert_eq!((smaller.usage().0, files(folder.path()).len()), (2, 2));
}

fn key_of(site: &str, target: &str) -> Key {
    let parts = KeyParts {
        site,
        ..parts(target)
    };
    Key::new(&parts).unwrap()
}

/// True for each of `numbers` if the object is stored for `site`.
async fn stored_at(disk: &DiskStore, site: &str, numbers: std::ops::Range<u8>) -> Vec<bool> {
    let mut all = Vec::new();
    for number in numbers {
        let key = key_of(site, &format!("/{number}"));
        let (headers, policy) = (request_in("en").headers, Policy::site());
        all.push(disk.lookup(&key, &headers, &policy).await.is_some());
    }
    all
}

#[tokio::test]
async fn site_disk_quota_evicts_only_that_site() {
    let folder = tempfile::tempdir().unwrap();
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    let quota = |bytes| BTreeMap::from([("greedy.test".to_owned(), bytes)]);
    disk.set_site_bytes(quota(160_000));
    for number in 0..5 {
        for site in ["greedy.test", "other.test"] {
            let key = key_of(site, &format!("/{number}"));
            disk.store(&key, stored("en", 0), body(50_000, number));
        }
    }
    disk.flush_removals().await;
    let of_greedy = [false, false, true, true, true];
    assert_eq!(stored_at(&disk, "greedy.test", 0..5).await, of_greedy);
    assert_eq!(stored_at(&disk, "other.test", 0..5).await, [true; 5]);
    // An object that alone exceeds the limit is not written, and evicts nothing.
    let large = key_of("greedy.test", "/large");
    disk.store(&large, stored("en", 0), body(160_000, 0));
    disk.flush_removals().await;
    assert_eq!(disk.counters().write_skipped.load(Ordering::Relaxed), 1);
    assert_eq!(stored_at(&disk, "greedy.test", 0..5).await, of_greedy);
    // The first of the three was used last.
    stored_at(&disk, "greedy.test", 2..3).await;
    disk.set_site_bytes(quota(60_000));
    disk.flush_removals().await;
    let of_greedy = [false, false, true, false, false];
    assert_eq!(stored_at(&disk, "greedy.test", 0..5).await, of_greedy);
    assert_eq!(files(folder.path()).len(), 6);
    assert_eq!(disk.counters().evicted.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn purged_entry_is_gone_after_restart_and_from_queue() {
    let folder = tempfile::tempdir().unwrap();
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    for target in ["/a", "/a?x", "/b"] {
        for language in ["en", "de"] {
            disk.store(&key(target), stored(language, 0), body(1000, 1));
        }
    }
    // Some of it is written by now, and some is not.
    disk.purge(
        &Scope::Url(parts("/a"))
            .prefix()
            .expect("a test key has no zero byte"),
    );
    disk.purge_tag(&PurgeTag::of_site("site.test", "lang-de"));
    disk.flush_removals().await;
    let expect = [
        ("/a", "en", false),
        ("/a?x", "en", true),
        ("/b", "en", true),
        ("/b", "de", false),
    ];
    for (target, language, is_stored) in expect {
        assert_eq!(
            lookup(&disk, target, language).await.is_some(),
            is_stored,
            "{target} {language}"
        );
    }
    drop(disk);
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    for (target, language, is_stored) in expect {
        assert_eq!(
            lookup(&disk, target, language).await.is_some(),
            is_stored,
            "{target} {language}, restarted"
        );
    }
    disk.purge(
        &Scope::Site("site.test")
            .prefix()
            .expect("a test key has no zero byte"),
    );
    disk.flush_removals().await;
    assert_eq!((disk.usage(), files(folder.path()).len()), ((0, 0), 0));
    disk.store(&key("/a"), stored("en", 0), body(1000, 1));
    disk.flush_removals().await;
    assert!(
        lookup(&disk, "/a", "en").await.is_some(),
        "a purge is of what was, not of what comes"
    );
}

#[tokio::test]
async fn entry_removed_while_queued_is_deleted_after_write() {
    let folder = tempfile::tempdir().unwrap();
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    for language in ["en", "de"] {
        disk.store(&key("/a"), stored(language, 0), body(1000, 1));
    }
    disk.remove_entry(&key("/a"), &stored("en", 5));
    disk.flush_removals().await;
    assert_eq!(lookup(&disk, "/a", "en").await, None);
    assert!(lookup(&disk, "/a", "de").await.is_some());
    assert_eq!(files(folder.path()).len(), 1);
}

#[tokio::test]
async fn disk_write_failure_only_skips_storing() {
    let folder = tempfile::tempdir().unwrap();
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    // A file where each folder would be.
    for number in 0..=255u8 {
        fs::write(folder.path().join(format!("{number:02x}")), "").unwrap();
    }
    disk.store(&key("/a"), stored("en", 0), body(1000, 1));
    disk.flush_removals().await;
    assert_eq!(lookup(&disk, "/a", "en").await, None);
    assert_eq!(disk.counters().write_skipped.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn lent_folder_is_read_only_until_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let disk = DiskStore::open(folder.path(), ROOM).unwrap();
    disk.store(&key("/a"), stored("en", 0), body(1000, 1));
    disk.lend().await.unwrap();
    disk.store(&key("/b"), stored("en", 0), body(1000, 2));
    disk.flush_removals().await;
    let other = DiskStore::open(folder.path(), ROOM).unwrap();
    for (target, expected) in [("/a", Some(body(1000, 1))), ("/b", None)] {
        assert_eq!(lookup(&other, target, "en").await, expected, "{target}");
        assert_eq!(lookup(&disk, target, "en").await, expected, "{target}");
    }
    let refused = disk.take_back().await.unwrap_err().to_string();
    assert_eq!(refused, "another process has it");
    drop(other);
    disk.take_back().await.unwrap();
    disk.store(&key("/b"), stored("en", 0), body(1000, 2));
    disk.flush_removals().await;
    assert_eq!(lookup(&disk, "/b", "en").await, Some(body(1000, 2)));
    assert_eq!(disk.counters().write_skipped.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn folder_is_used_by_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let first = DiskStore::open(folder.path(), ROOM).unwrap();
    assert!(DiskStore::open(folder.path(), ROOM).is_err());
    drop(first);
    assert!(DiskStore::open(folder.path(), ROOM).is_ok());
}

#[cfg(unix)]
#[test]
fn folder_lock_is_released_on_drop() {
    let folder = tempfile::tempdir().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // A child process has the descriptors of the lock files until it calls `exec`.
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                assert!(process::Command::new("true").status().unwrap().success());
            }
        });
        for round in 0..100 {
            let disk = DiskStore::open(folder.path(), ROOM);
            let disk = disk.unwrap_or_else(|error| {
                is_over.store(true, Ordering::Relaxed);
                panic!("round {round}: {error}")
            });
            disk.store(&key("/a"), stored("en", round), body(100, 1));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[tokio::test]
async fn folder_lock_is_released_after_discarded_queue() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..100 {
        let disk =
            DiskStore::open(folder.path(), ROOM).unwrap_or_else(|error| panic!("{round}: {error}"));
        disk.store(&key("/a"), stored("en", round), body(100, 1));
        disk.flush_removals().await;
        disk.discard_queue();
    }
}

/// A disk that hangs in the middle of a file.
#[cfg(unix)]
mod hangs {
    use std::fs::File;
    use std::io;
    use std::pin::pin;
    use std::process::Command;
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    use spdy_cache::object_file::file_name;
    use spdy_testkit::wait::WAIT_LIMIT;

    use super::*;

    /// Makes the disk store "/a" and block until the returned pipe is read: the pipe holds less than the file.
    fn hanging(disk: &DiskStore, folder: &Path) -> File {
        let name = file_name(&key("/a"), &stored("en", 0));
        let pipe = folder.join(&name[..2]).join(name).with_extension("new");
        fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        let status = Command::new("mkfifo").arg(&pipe).status();
        assert!(status.unwrap().success());
        disk.store(&key("/a"), stored("en", 0), body(1 << 20, 1));
        // The pipe can only be opened when the other end is open, too.
        let (opened, is_opened) = mpsc::channel();
        thread::spawn(move || opened.send(File::open(pipe)));
        let opened = is_opened.recv_timeout(WAIT_LIMIT);
        opened.expect("it is written").unwrap()
    }

    #[tokio::test]
    async fn late_corruption_report_ignores_newer_file() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(DiskStore::open(folder.path(), ROOM).unwrap());
        disk.store(&key("/a"), stored("en", 0), body(1000, 1));
        disk.flush_removals().await;
        let path = files(folder.path()).remove(0);
        fs::remove_file(&path).unwrap();
        let status = Command::new("mkfifo").arg(&path).status();
        assert!(status.unwrap().success());
        let reader = {
            let disk = disk.clone();
            tokio::spawn(async move { lookup(&disk, "/a", "en").await })
        };
        // It opens what it then waits for.
        let opened = tokio::task::spawn_blocking(move || File::create(path));
        let opened = tokio::time::timeout(WAIT_LIMIT, opened).await;
        let opened = opened.expect("a reader opens the pipe").unwrap().unwrap();
        disk.store(&key("/a"), stored("en", 9), body(2000, 2));
        assert!(disk.flush_removals().await);
        drop(opened);
        assert_eq!(reader.await.unwrap(), None);
        disk.flush_removals().await;
        assert_eq!(lookup(&disk, "/a", "en").await, Some(body(2000, 2)));
        assert_eq!(disk.counters().corrupt.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn discarded_queue_still_applies_purges() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskStore::open(folder.path(), ROOM).unwrap();
        disk.store(&key("/gone"), stored("en", 0), body(1000, 1));
        disk.flush_removals().await;
        let mut hanging = hanging(&disk, folder.path());
        disk.store(&key("/b"), stored("en", 0), body(1000, 1));
        disk.purge(
            &Scope::Url(parts("/gone"))
                .prefix()
                .expect("a test key has no zero byte"),
        );
        let mut settled = pin!(disk.flush_removals());
        let mut context = Context::from_waker(Waker::noop());
        assert!(settled.as_mut().poll(&mut context).is_pending());
        disk.discard_queue();
        let read = thread::spawn(move || io::copy(&mut hanging, &mut io::sink()));
        let settled = tokio::time::timeout(WAIT_LIMIT, settled).await;
        settled.expect("the request completes");
        assert!(read.join().unwrap().unwrap() > 1 << 20);
        disk.store(&key("/c"), stored("en", 0), body(1000, 1));
        disk.flush_removals().await;
        for target in ["/b", "/c", "/gone"] {
            assert_eq!(lookup(&disk, target, "en").await, None, "{target}");
        }
        assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
        assert_eq!(disk.counters().write_skipped.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn drop_does_not_wait_for_a_hung_disk_after_discard() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskStore::open(folder.path(), ROOM).unwrap();
        let _hanging = hanging(&disk, folder.path());
        disk.discard_queue();
        let (dropped, on_dropped) = mpsc::channel();
        thread::spawn(move || {
            drop(disk);
            dropped.send(())
        });
        on_dropped
            .recv_timeout(WAIT_LIMIT)
            .expect("it does not wait");
    }
}
