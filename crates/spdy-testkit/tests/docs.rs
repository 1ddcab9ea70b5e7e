//! The manual in `docs/`: each page is in the table of contents, each link leads to a page and a heading, and pages stay short.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Words of a page of prose. Reference and measurement pages are tables, and may be longer.
const MAX_WORDS: usize = 1_500;

fn repository() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let root = crates.and_then(Path::parent);
    root.expect("the crate is two folders deep").to_owned()
}

/// All Markdown files under `folder`.
fn pages_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut pages = Vec::new();
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            pages.extend(pages_in(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

/// The pages whose links are checked.
fn pages() -> Vec<PathBuf> {
    let root = repository();
    let mut pages = pages_in(&root.join("docs"));
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ] {
        pages.push(root.join(name));
    }
    pages
}

fn read(page: &Path) -> String {
    fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// The lines of `text` outside of fenced blocks.
fn prose(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push(line);
        }
    }
    lines
}

/// The targets of the links of a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let rests = line.split("](").skip(1);
    rests.filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

/// The anchors of a page's headings, as the forge and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut times = BTreeMap::<String, usize>::new();
    let headings = prose(text).into_iter();
    let titles = headings.filter_map(|line| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then_some(title.trim())
    });
    titles
        .map(|title| {
            let is_part = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
            let text: String = title.to_lowercase().chars().filter(is_part).collect();
            let anchor = text.replace(' ', "-");
            let before = times.entry(anchor.clone()).or_default();
            *before += 1;
            match *before {
                1 => anchor,
                n => format!("{anchor}-{}", n - 1),
            }
        })
        .collect()
}

/// `path` without `..`, which the file system would resolve by the folders that are there.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let mut dead = Vec::new();
    for page in pages() {
        let text = read(&page);
        let folder = page.parent().expect("a page is in a folder");
        for target in prose(&text).into_iter().flat_map(targets) {
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = match path {
                "" => page.clone(),
                path => normal(&folder.join(path)),
            };
            let has_anchor = || anchor.is_empty() || anchors(&read(&file)).contains(anchor);
            if !file.exists() || !has_anchor() {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

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
    let mut pages = pages_in(&docs);
    pages.retain(|page| !page.ends_with("SUMMARY.md"));
    assert_eq!(listed, pages);
}

#[test]
fn a_page_of_prose_has_at_most_1500_words() {
    let docs = repository().join("docs");
    for page in pages_in(&docs) {
        let kind = page.strip_prefix(&docs).expect("it is in docs");
        if kind.starts_with("reference") || kind.starts_with("measurements") {
            continue;
        }
        let words = read(&page).split_whitespace().count();
        assert!(words <= MAX_WORDS, "{}: {words} words", page.display());
    }
}
