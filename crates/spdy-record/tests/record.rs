//! What a recording does with a browser that is not well: `data/browser.sh` stands in for it.
#![cfg(unix)]

use std::path::PathBuf;
use std::time::Duration;

use spdy_record::error::RecordError;
use spdy_record::options::RecordOptions;
use spdy_record::record::record;
use tokio::net::TcpListener;

fn beside(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", name]
        .iter()
        .collect()
}

/// The stand-in, with these arguments of its own.
fn options(arguments: &[String]) -> RecordOptions {
    RecordOptions {
        browser: Some(beside("browser.sh")),
        browser_arguments: arguments.to_vec(),
        settle: Duration::from_millis(1),
        ..RecordOptions::default()
    }
}

#[tokio::test]
async fn an_interrupt_is_heard_while_the_browser_is_ending() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let options = options(&[format!("close={port}")]);
    let url = "http://a.test/".parse().unwrap();
    let mut loaded = false;
    let progress = |now: spdy_record::record::Progress| loaded = now.is_loaded;
    // Comes when the page is loaded and the browser was asked to end, which this one never does.
    let mut ending = None;
    let interrupt = async { ending = listener.accept().await.ok() };
    let recorded = record(&url, &options, progress, interrupt).await;
    assert!(
        matches!(recorded, Err(RecordError::Interrupted)),
        "{recorded:?}"
    );
    assert!(loaded && ending.is_some());
}
