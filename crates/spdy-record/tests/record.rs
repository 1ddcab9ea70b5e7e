//! Recordings with a faulty browser, for which `data/browser.sh` is a substitute.
#![cfg(unix)]

use std::path::PathBuf;
use std::time::Duration;

use spdy_record::error::RecordError;
use spdy_record::options::RecordOptions;
use spdy_record::record::record;
use spdy_record::visit::visit;
use tokio::net::TcpListener;

fn beside(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", name]
        .iter()
        .collect()
}

/// Options with the substitute and these arguments.
fn options(arguments: &[String]) -> RecordOptions {
    RecordOptions {
        browser: Some(beside("browser.sh")),
        browser_arguments: arguments.to_vec(),
        settle: Duration::from_millis(1),
        ..RecordOptions::default()
    }
}

#[tokio::test]
async fn an_interrupt_works_while_the_browser_exits() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = options(&[format!("close={port}")]);
    let url = "http://a.test/".parse().unwrap();
    let mut loaded = false;
    let progress = |now: spdy_record::record::Progress| loaded = now.is_loaded;
    // Called when the page is loaded and the browser was asked to exit, which this one never does.
    let mut ending = None;
    let interrupt = async { ending = listener.accept().await.ok() };
    let recorded = record(&url, &options, progress, interrupt).await;
    assert!(
        matches!(recorded, Err(RecordError::Interrupted)),
        "{recorded:?}"
    );
    assert!(loaded && ending.is_some());
}

#[tokio::test]
async fn a_log_past_its_limit_ends_the_recording_and_keeps_its_data() {
    let netlog: PathBuf = [
        env!("CARGO_MANIFEST_DIR"),
        "../spdy-page/tests/data/chromium.netlog.json",
    ]
    .iter()
    .collect();
    let whole = std::fs::read_to_string(netlog).unwrap();
    // All its events, and room for more of them.
    let (events, _) = whole.rsplit_once("],\n\"polledData\"").unwrap();
    let begun = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(begun.path(), format!("{events},\n")).unwrap();
    let log = format!("log={}", begun.path().display());
    let mut options = options(&[log, "flood=20000".to_owned()]);
    options.limits.file_bytes = 500_000;
    let url = "http://a.test/".parse().unwrap();
    let recorded = record(&url, &options, |_| {}, std::future::pending()).await;
    let opened = recorded.unwrap().page;
    let ended =
        "the browser's log reached its limit of 500000 bytes: the recording has nothing after that";
    let remarks = &opened.notes.remarks;
    assert!(remarks.iter().any(|remark| remark == ended), "{remarks:?}");
    assert!(!opened.replica.exchanges.is_empty());
}

#[tokio::test]
async fn a_missing_screenshot_or_key_log_is_no_error() {
    let netlog = "../spdy-page/tests/data/chromium.netlog.json";
    let netlog = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(netlog);
    let options = RecordOptions {
        screenshot: true,
        key_log: true,
        ..options(&[format!("log={}", netlog.display())])
    };
    let url = "http://a.test/".parse().unwrap();
    let recorded = record(&url, &options, |_| {}, std::future::pending()).await;
    let recorded = recorded.unwrap();
    assert!(!recorded.page.replica.exchanges.is_empty());
    assert_eq!(
        (recorded.screenshot, &recorded.key_log[..]),
        (None, &[][..])
    );
}

#[tokio::test]
async fn a_recording_whose_trace_has_lost_data_has_a_remark() {
    let netlog = "../spdy-page/tests/data/chromium.netlog.json";
    let netlog = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(netlog);
    for lost in [false, true] {
        let options = options(&[format!("log={}", netlog.display()), format!("loss={lost}")]);
        let url = "http://a.test/".parse().unwrap();
        let recorded = record(&url, &options, |_| {}, std::future::pending()).await;
        let remarks = recorded.unwrap().page.notes.remarks;
        let has_remark = remarks
            .iter()
            .any(|remark| remark.starts_with("the browser's trace is incomplete"));
        assert_eq!(has_remark, lost, "{remarks:?}");
    }
}

#[tokio::test]
async fn the_pages_of_a_visit_are_loaded_in_one_browser_with_pauses() {
    // A second browser could not start.
    let folder = tempfile::tempdir().unwrap();
    let once = folder.path().join("once");
    let options = options(&[format!("once={}", once.display())]);
    let urls = ["http://a.test/", "http://b.test/"].map(|url| url.parse().unwrap());
    let pause = Duration::from_millis(100);
    let mut navigations = 0;
    let visited = visit(&urls, pause, &options, || navigations += 1).await;
    let pauses: Vec<_> = visited.unwrap().iter().map(|page| page.pause).collect();
    assert_eq!((pauses.len(), navigations), (2, 2));
    assert_eq!(pauses[0], None);
    assert!(pauses[1] >= Some(pause), "{pauses:?}");
}

#[tokio::test]
async fn a_log_past_its_limit_ends_a_visit_with_an_error() {
    let mut options = options(&["flood=20000".to_owned()]);
    options.limits.file_bytes = 500_000;
    let urls = ["http://a.test/".parse().unwrap()];
    let visited = visit(&urls, Duration::ZERO, &options, || ()).await;
    let is_full = matches!(visited, Err(RecordError::LogLimit { limit: 500_000 }));
    assert!(is_full, "{visited:?}");
}
