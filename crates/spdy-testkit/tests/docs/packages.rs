//! The packages of the published crates: complete, and without a dependency on a crate that is not published.

use std::collections::BTreeSet;
use std::fs;

use crate::{name_of, published_crates, read, repository};

/// The value of `key` in the package table of a manifest.
fn value<'a>(manifest: &'a str, key: &str) -> Option<&'a str> {
    let package = manifest.split("\n[").next()?;
    let line = package.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once('=')?.1.trim())
}

/// The crates of this workspace that a manifest depends on, without those for tests.
fn own_dependencies(manifest: &str) -> BTreeSet<&str> {
    let tables = manifest.split("\n[").filter(|table| {
        let name = table.split(']').next().unwrap_or_default();
        name.ends_with("dependencies") && !name.ends_with("dev-dependencies")
    });
    let lines = tables.flat_map(str::lines);
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| name.starts_with("spdy")).collect()
}

#[test]
fn every_published_crate_has_a_complete_package() {
    let root = repository();
    let folders = published_crates();
    let names: BTreeSet<String> = folders
        .iter()
        .map(|folder| folder.file_name().expect("a name").to_string_lossy().into())
        .collect();
    assert_eq!(names.len(), 10, "{names:?}");
    for folder in &folders {
        let manifest = read(&folder.join("Cargo.toml"));
        let name = name_of(folder);
        for key in ["description", "repository", "license", "readme"] {
            assert!(value(&manifest, key).is_some(), "{name} has no {key}");
        }
        for key in ["keywords", "categories"] {
            let list = value(&manifest, key).unwrap_or_else(|| panic!("{name} has no {key}"));
            let count = list.matches('"').count() / 2;
            assert!((1..=5).contains(&count), "{name}: {key} = {list}");
        }
        assert_eq!(value(&manifest, "rust-version"), Some("\"1.88\""), "{name}");
        assert!(manifest.contains("[package.metadata.docs.rs]"), "{name}");
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let text = |path| fs::read(path).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(
                text(folder.join(licence)),
                text(root.join(licence)),
                "{name}"
            );
        }
        for dependency in own_dependencies(&manifest) {
            assert!(
                names.contains(dependency),
                "{name} depends on {dependency}, which is not published"
            );
        }
    }
}
