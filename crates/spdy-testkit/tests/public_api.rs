//! Compares the public API of each published crate with `tests/public_api/CRATE.txt`, so that no change of it goes unnoticed.
//!
//! `scripts/rustdoc-with-pages` writes what this test reads, while `make test` runs the examples in the documentation. `make test`
//! runs this test after them. The format belongs to one version of Rust: with another, the test compares nothing, except in CI.

use std::fs;
use std::path::{Path, PathBuf};

use public_api::Builder;

/// The format of rustdoc's JSON that `public-api` reads: that of Rust 1.95.
const FORMAT: u64 = 57;

const UPDATE: &str = "UPDATE_DOCS=1 cargo test -p spdy-testkit --test public_api -- --ignored";

fn format_of(json: &str) -> u64 {
    let value: serde_json::Value = serde_json::from_str(json).expect("rustdoc writes JSON");
    value["format_version"].as_u64().expect("a format version")
}

/// Lines that only one of two sorted lists has, each after `-` or `+`.
fn difference(before: &str, after: &str) -> String {
    let removed = before
        .lines()
        .filter(|line| !after.lines().any(|it| it == *line));
    let added = after
        .lines()
        .filter(|line| !before.lines().any(|it| it == *line));
    let removed = removed.map(|line| format!("- {line}\n"));
    removed
        .chain(added.map(|line| format!("+ {line}\n")))
        .collect()
}

#[test]
#[ignore = "reads what rustdoc writes when it tests examples: `make test` runs it after them"]
fn public_api_changes_only_with_its_snapshot() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("crates/");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let written = target.with_file_name("public-api");
    let snapshots = crates.join("spdy-testkit/tests/public_api");
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let mut compared = 0;
    let mut changes = String::new();
    for entry in fs::read_dir(crates).expect("a folder") {
        let folder = entry.expect("a folder").path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        if manifest.contains("\npublish = false") {
            continue;
        }
        let name = folder.file_name().expect("a name").to_string_lossy();
        let path = written.join(format!("{}.json", name.replace('-', "_")));
        let json = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{path:?}: {error}: run `make test`, which writes it"));
        let format = format_of(&json);
        if format != FORMAT && std::env::var_os("CI").is_none() {
            return;
        }
        assert_eq!(format, FORMAT, "the format of rustdoc's JSON");
        let api = Builder::from_rustdoc_json(&path)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .build()
            .unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let api = format!("{api}");
        let snapshot = snapshots.join(format!("{name}.txt"));
        if update {
            fs::write(&snapshot, &api).expect("a writable folder");
        }
        let stored = fs::read_to_string(&snapshot).unwrap_or_default();
        let change = difference(&stored, &api);
        if stored != api {
            changes.push_str(&format!("{name}:\n{change}"));
        }
        compared += 1;
    }
    assert_eq!(compared, 10, "number of published crates");
    assert!(
        changes.is_empty(),
        "the public API changed; if that is intended, run `{UPDATE}`:\n{changes}"
    );
}
