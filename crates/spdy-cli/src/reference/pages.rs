//! Compares the generated pages with the files in `docs/reference`, or writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{command_line, configuration, json_output};

/// Makes the tests write the pages. Any value but the empty one does.
const UPDATE: &str = "UPDATE_DOCS";
const COMMAND: &str = "make reference";
/// Of any page of the book.
const MAX_WORDS: usize = 1_500;

/// A generated page.
pub(super) struct Page {
    /// The name of its file in the folder, with its extension.
    pub(super) file: String,
    pub(super) text: String,
}

impl Page {
    /// A page with a first line that names its generator.
    pub(super) fn new(file: &str, text: &str) -> Self {
        let origin = format!("<!-- Generated from the code. `{COMMAND}` writes it again. -->");
        Self {
            file: file.to_owned(),
            text: format!("{origin}\n\n{}\n", text.trim()),
        }
    }
}

fn folder(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("docs/reference").join(name)
}

/// The pages in `folder`, by the names of their files.
fn written(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let files = entries.map(|entry| entry.expect("the folder can be read").path());
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a file has a name");
        let text = fs::read_to_string(&path).expect("the page can be read");
        (name.to_string_lossy().into_owned(), text)
    };
    files.map(read).collect()
}

fn write(folder: &Path, pages: &BTreeMap<String, String>) {
    fs::create_dir_all(folder).expect("the folder can be created");
    for name in written(folder).keys() {
        if !pages.contains_key(name) {
            fs::remove_file(folder.join(name)).expect("the old page can be removed");
        }
    }
    for (name, text) in pages {
        fs::write(folder.join(name), text).expect("the page can be written");
    }
}

/// Compares `pages` with the files in `docs/reference/NAME`.
fn check(name: &str, pages: Vec<Page>) {
    let folder = folder(name);
    let pages = pages.into_iter().map(|page| (page.file, page.text));
    let pages: BTreeMap<_, _> = pages.collect();
    if std::env::var_os(UPDATE).is_some_and(|value| !value.is_empty()) {
        write(&folder, &pages);
    }
    let written = written(&folder);
    let mut names = pages.keys().chain(written.keys());
    let differs = names.find(|page| pages.get(*page) != written.get(*page));
    assert!(
        differs.is_none(),
        "docs/reference/{name}/{} differs from the code: run `{COMMAND}`, and list new pages in docs/SUMMARY.md",
        differs.map_or("", String::as_str)
    );
    let markdown = pages.iter().filter(|(page, _)| page.ends_with(".md"));
    for (page, text) in markdown {
        let words = text.split_whitespace().count();
        assert!(
            words <= MAX_WORDS,
            "{name}/{page}: {words} words; split it in reference/"
        );
    }
}

#[test]
fn pages_of_the_command_line_match_the_program() {
    check("cli", command_line::pages());
}

#[test]
fn pages_of_the_configuration_match_the_schema() {
    check("configuration", configuration::pages());
}

#[test]
fn schemas_of_json_match_the_results() {
    check("json", json_output::pages());
}
