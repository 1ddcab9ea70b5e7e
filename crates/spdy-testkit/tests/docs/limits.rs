//! The pages of limits: each constant, field and test that they name is in the code.

use std::collections::BTreeSet;

use crate::{files_in, name_of, read, repository};

/// Whether `name` is the name of a constant, or a name of several words, as tests and fields have.
fn is_identifier(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.contains('_') && name.chars().all(is_part)
}

#[test]
fn names_on_the_pages_of_limits_are_in_the_code() {
    let crates = repository().join("crates");
    let sources: Vec<String> = files_in(&crates, "rs").iter().map(|it| read(it)).collect();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = sources
        .iter()
        .flat_map(|source| source.split(|c| !is_part(c)))
        .collect();
    let mut missing = Vec::new();
    for page in files_in(&repository().join("docs/reference"), "md") {
        if !name_of(&page).contains("limits-") {
            continue;
        }
        let text = read(&page);
        let names = text.split('`').skip(1).step_by(2);
        let unknown = names.filter(|name| is_identifier(name) && !words.contains(name));
        missing.extend(unknown.map(|name| format!("{}: {name}", name_of(&page))));
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
