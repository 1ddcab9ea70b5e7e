//! Links of the crates' front pages lead somewhere from docs.rs, where a README stands alone: relative paths lead nowhere there.

use std::fs;
use std::path::{Path, PathBuf};

/// Where files of the repository are found on the web; the part behind it is a path in the repository.
const FILES: [&str; 2] = [
    "https://github.com/spdy-rs/spdy/blob/HEAD/",
    "https://raw.githubusercontent.com/spdy-rs/spdy/HEAD/",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The READMEs that are part of a crate's documentation.
fn front_pages() -> Vec<PathBuf> {
    let crates = fs::read_dir(repository().join("crates")).expect("the folder of the crates");
    let folders = crates.map(|entry| entry.expect("a readable folder").path());
    let mut pages: Vec<_> = folders
        .filter(|folder| {
            let lib = fs::read_to_string(folder.join("src/lib.rs")).unwrap_or_default();
            lib.contains("include_str!(\"../README.md\")")
        })
        .map(|folder| folder.join("README.md"))
        .collect();
    pages.sort();
    pages
}

/// The targets of all links and images in `text`.
fn targets(text: &str) -> Vec<&str> {
    let links = text.split("](").skip(1);
    links
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
        .collect()
}

#[test]
fn no_link_of_a_front_page_is_relative_and_files_that_are_named_exist() {
    let pages = front_pages();
    assert!(pages.len() >= 5, "{pages:?}");
    let mut dead = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).expect("a README");
        for target in targets(&text) {
            // `[text](crate::item)` is rustdoc's own, which checks it.
            let is_item = target.contains("::") || !target.contains(['/', '.']);
            let path = FILES.iter().find_map(|base| target.strip_prefix(base));
            let lives = match path {
                Some(path) => {
                    let file = path.split('#').next().unwrap_or(path);
                    repository().join(file).exists()
                }
                None => is_item || target.starts_with("https://") || target.starts_with('#'),
            };
            if !lives {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}
