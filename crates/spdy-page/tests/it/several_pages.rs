//! Files with several pages: joined replicas.

use bytes::Bytes;
use spdy_page::builtin;
use spdy_page::error::OpenError;
use spdy_page::har_export;
use spdy_page::open::{self, ImportOptions};
use spdy_page::replica::archive;

fn joined(gzip: bool) -> Vec<u8> {
    let pages = [builtin::portal(), builtin::flags(), builtin::portal()];
    let files = pages.iter().map(|page| archive::encode(page, gzip));
    files.collect::<Vec<_>>().concat()
}

#[test]
fn joined_files_are_one_with_several_pages() {
    for gzip in [false, true] {
        let file = Bytes::from(joined(gzip));
        let page = |page| {
            let options = ImportOptions {
                page,
                ..ImportOptions::default()
            };
            open::read(file.clone(), "visit", &options)
        };
        assert_eq!(page(Some(2)).unwrap().replica, builtin::flags());
        let first = page(None).unwrap();
        assert_eq!(first.replica, builtin::portal());
        assert!(format!("{:?}", first.notes.remarks).contains("page 1 of 3"));
        assert_eq!(first.notes.pages, 3);
        for number in [0, 4] {
            let fault = page(Some(number)).unwrap_err();
            let is_expected =
                matches!(fault, OpenError::NoSuchPage { page, pages: 3 } if page == number);
            assert!(is_expected, "{fault}");
        }
    }
}

/// Pages without a document are omitted, but not as many as a file may have.
#[test]
fn pages_without_a_document_are_omitted_up_to_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let har = |before: usize| {
        let log = String::from_utf8(har_export::export(&builtin::flags())).unwrap();
        let empty = r#"{"startedDateTime":"2014-05-01T10:00:00Z","id":"empty","title":"","pageTimings":{}},"#;
        let list = r#""pages": ["#;
        assert!(log.contains(list));
        let log = log.replace(list, &format!("{list}{}", empty.repeat(before)));
        let path = folder.path().join("pages.har");
        std::fs::write(&path, log).unwrap();
        open::open_pages(path.to_str().unwrap(), 2)
    };
    for (before, expected) in [(0, Some(1)), (3, Some(1)), (40, None)] {
        let pages = har(before).ok();
        let counts = pages.map(|pages| (pages.len(), pages[0].notes.pages));
        let expected = expected.map(|count| (count, before + 1));
        assert_eq!(counts, expected, "{before}");
    }
}

#[test]
fn all_pages_are_opened_up_to_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("visit.warc.gz");
    std::fs::write(&path, joined(true)).unwrap();
    let path = path.to_str().unwrap();
    let pages = open::open_pages(path, 3).unwrap();
    let names: Vec<_> = pages.iter().map(|page| &page.replica.name[..]).collect();
    assert_eq!(names, ["portal", "flags", "portal"]);
    let fault = open::open_pages(path, 2).unwrap_err();
    assert!(
        matches!(fault, OpenError::Limit { limit: 2, .. }),
        "{fault}"
    );
    assert_eq!(open::open_pages("portal", 10).unwrap().len(), 1);
    assert!(open::open_pages("no such page", 10).is_err());
}
