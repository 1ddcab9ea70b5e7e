//! Checks the book in `docs/` and the READMEs: mdBook builds it, every link leads somewhere, pages are short and their words plain.
//!
//! - [`book`]: the table of contents, and the book as mdBook renders it
//! - [`limits`]: names of the code on the pages of limits
//! - [`links`]: links between files of the repository
//! - [`packages`]: what a published crate contains
//! - [`words`]: length of pages and sentences, and words that are not used

mod book;
mod limits;
mod links;
mod packages;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let root = crates.and_then(Path::parent);
    root.expect("the crate is two folders deep").to_owned()
}

/// All files under `folder` with the extension `extension`, sorted.
fn files_in(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            files.extend(files_in(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The pages of the book with its table of contents, and the texts at the root of the repository.
fn pages() -> Vec<PathBuf> {
    let root = repository();
    let mut pages = files_in(&root.join("docs"), "md");
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

/// The folders of the crates that are published.
fn published_crates() -> Vec<PathBuf> {
    let crates = repository().join("crates");
    let folders = fs::read_dir(&crates).expect("there are crates");
    let mut folders: Vec<_> = folders
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|folder| !read(&folder.join("Cargo.toml")).contains("publish = false"))
        .collect();
    folders.sort();
    folders
}

fn read(page: &Path) -> String {
    fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// The path of a file within the repository, for messages.
fn name_of(page: &Path) -> String {
    let root = repository();
    let name = page.strip_prefix(&root).unwrap_or(page);
    name.display().to_string()
}
