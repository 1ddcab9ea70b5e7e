//! The table of contents, and the book as mdBook renders it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mdbook_driver::MDBook;
use mdbook_driver::config::Config;
use parking_lot::Mutex;
use tracing_subscriber::filter::LevelFilter;

use crate::links::targets;
use crate::{files_in, read, repository};

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let docs = repository().join("docs");
    let summary = read(&docs.join("SUMMARY.md"));
    let mut listed: Vec<_> = summary
        .lines()
        .flat_map(targets)
        .filter(|target| !target.is_empty())
        .map(|target| docs.join(target))
        .collect();
    listed.sort();
    let mut pages = files_in(&docs, "md");
    pages.retain(|page| !page.ends_with("SUMMARY.md"));
    assert_eq!(listed, pages);
}

/// What mdBook logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Builds the book into `folder` and returns the warnings.
fn build(folder: &Path) -> String {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let root = repository();
        let mut config = Config::from_disk(root.join("book.toml")).expect("book.toml is valid");
        config.build.build_dir = folder.to_owned();
        let book = MDBook::load_with_config(root, config).expect("SUMMARY.md is valid");
        book.build().expect("mdBook builds the book");
    });
    String::from_utf8(log.0.lock().clone()).expect("a log is UTF-8")
}

/// The values of the attribute `name` in `html`.
fn attributes<'a>(html: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let opening = format!(" {name}=\"");
    let starts = html.match_indices(&opening);
    let starts: Vec<_> = starts.map(|(at, it)| at + it.len()).collect();
    starts
        .into_iter()
        .filter_map(|start| html[start..].split('"').next())
}

/// The body of a page, without the table of contents and the buttons around it.
fn main_of(html: &str) -> &str {
    let (_, rest) = html.split_once("<main>").unwrap_or_default();
    rest.split("</main>").next().unwrap_or_default()
}

#[test]
fn mdbook_builds_the_book_and_no_link_of_a_page_is_broken() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let warnings = build(folder.path());
    assert!(warnings.is_empty(), "mdBook warns:\n{warnings}");

    let pages = files_in(folder.path(), "html");
    let pages: BTreeMap<PathBuf, String> = pages
        .into_iter()
        .map(|page| (page.clone(), read(&page)))
        .collect();
    let mut broken = Vec::new();
    for (page, html) in &pages {
        let body = main_of(html);
        for target in attributes(body, "href").chain(attributes(body, "src")) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
            let parent = page.parent().expect("a page is in a folder");
            let file = match path {
                "" => page.clone(),
                path => crate::links::normal(&parent.join(path)),
            };
            let has_heading = |html: &String| attributes(html, "id").any(|id| id == fragment);
            let is_there = match (fragment, pages.get(&file)) {
                ("", _) => file.exists(),
                (_, html) => html.is_some_and(has_heading),
            };
            if !is_there {
                let page = page.strip_prefix(folder.path()).unwrap_or(page);
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(pages.len() > 100, "only {} pages", pages.len());
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}
