//! Links between files of the repository: each leads to a file, and to a heading of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::{name_of, pages, published_crates, read, repository};

/// The repository on the web. Pages of the book and of crates link to files outside of them by it.
const FORGE: &str = "https://github.com/spdy-rs/spdy/";

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
pub(crate) fn targets(line: &str) -> impl Iterator<Item = &str> {
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
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

/// The file that `path` names on `page`; `None` if it is outside of the repository.
fn linked_file(page: &Path, path: &str) -> Option<PathBuf> {
    if path.is_empty() {
        return Some(page.to_owned());
    }
    if let Some(path) = path.strip_prefix(FORGE) {
        let (_, path) = path.split_once("/HEAD/")?;
        return Some(repository().join(path));
    }
    if path.contains("://") || path.starts_with("mailto:") {
        return None;
    }
    let folder = page.parent().expect("a page is in a folder");
    Some(normal(&folder.join(path)))
}

#[test]
fn every_link_within_the_repository_leads_to_a_file_and_a_heading() {
    let readmes = published_crates().into_iter();
    let readmes = readmes.map(|folder| folder.join("README.md"));
    let mut dead = Vec::new();
    for page in pages().into_iter().chain(readmes) {
        let text = read(&page);
        for target in prose(&text).into_iter().flat_map(targets) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let Some(file) = linked_file(&page, path) else {
                continue;
            };
            let has_anchor = || anchor.is_empty() || anchors(&read(&file)).contains(anchor);
            let is_live = target.is_empty() || file.exists() && has_anchor();
            if !is_live {
                dead.push(format!("{}: {target}", name_of(&page)));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}
