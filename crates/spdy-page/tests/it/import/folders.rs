//! Imports of folders: links to files, and recordings of mahimahi.

use spdy_page::graph::{PageGraph, Trigger};
use spdy_page::limits::Limits;
use spdy_page::open::{ImportOptions, OpenError, open, open_with};

use crate::support::import::{data, exchange, sound};

#[cfg(unix)]
#[test]
fn links_in_a_folder_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let linked = folder.path().join("mahimahi");
    std::fs::create_dir(&linked).unwrap();
    let real = std::fs::canonicalize(data("mahimahi")).unwrap();
    for entry in std::fs::read_dir(real).unwrap() {
        let entry = entry.unwrap();
        std::os::unix::fs::symlink(entry.path(), linked.join(entry.file_name())).unwrap();
    }
    let opened = open(linked.to_str().unwrap()).unwrap();
    assert_eq!(opened, open(&data("mahimahi")).unwrap());

    let nowhere = linked.join("nowhere");
    std::os::unix::fs::symlink("/no/such/file", &nowhere).unwrap();
    let message = open(linked.to_str().unwrap()).unwrap_err().to_string();
    let named = format!("cannot read {nowhere:?}: ");
    assert!(message.starts_with(&named), "{message}");
}

/// A device has no end and reports 0 bytes; opening a FIFO waits for a writer.
#[cfg(unix)]
#[test]
fn a_device_or_fifo_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    for path in ["/dev/zero", fifo.to_str().unwrap()] {
        let message = open(path).unwrap_err().to_string();
        assert_eq!(message, format!("{path:?} is neither a file nor a folder"));
    }
    // Beside files it is skipped, like a folder.
    for entry in std::fs::read_dir(data("mahimahi")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let opened = open(folder.path().to_str().unwrap()).unwrap();
    let plain = open(&data("mahimahi")).unwrap();
    assert_eq!(opened.replica.exchanges, plain.replica.exchanges);
}

#[test]
fn a_mahimahi_folder_is_a_page_with_unchunked_bodies() {
    let (replica, notes) = sound(open(&data("mahimahi")).unwrap());
    assert_eq!(replica.name, "mahimahi");
    let document = exchange(&replica, "/");
    assert_eq!(document.url.as_str(), "http://a.test:8080/");
    assert_eq!(
        &document.body[..],
        b"<!doctype html><title>t</title><img src=/b.png>"
    );
    assert_eq!(exchange(&replica, "/b.png").body.len(), 200);
    assert_eq!(
        PageGraph::of(&replica).nodes[1].trigger,
        Trigger::Bytes {
            parent: 0,
            at_byte: 47
        }
    );
    assert_eq!((notes.exchanges, notes.skipped.len()), (2, 0), "{notes}");

    let limits = |file_bytes, records| {
        let limits = Limits {
            file_bytes,
            records,
            ..Limits::default()
        };
        open_with(&data("mahimahi"), &ImportOptions { page: None, limits })
    };
    let bytes: u64 = std::fs::read_dir(data("mahimahi"))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    let bytes = usize::try_from(bytes).unwrap();
    assert!(limits(bytes, 2).is_ok());
    assert!(matches!(limits(bytes - 1, 2), Err(OpenError::Limit { .. })));
    assert!(matches!(
        limits(bytes, 1),
        Err(OpenError::Limit { limit: 1, .. })
    ));
}
