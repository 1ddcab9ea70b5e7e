//! Real recordings are imported, or rejected with a reason: our own small ones always, the public corpus if it is next to the
//! repository (`../shared/corpus`, never committed).
//!
//! `cargo test -p spdy-page --test it corpus -- --nocapture` prints the table of outcomes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use spdy_page::archive;
use spdy_page::graph::{PageGraph, Trigger};
use spdy_page::open::{ImportOptions, open, read};

use crate::support::soundness;

fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort();
    files
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus")
}

/// Imports `path`, checks it against every law, and reports the outcome on one line.
fn outcome(path: &Path) -> Result<String, String> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let opened = open(&path.to_string_lossy()).map_err(|error| format!("{name:44} {error}"))?;
    let replica = &opened.replica;
    soundness::assert_sound(replica, &name);
    let graph = PageGraph::of(replica);
    soundness::assert_lawful(replica, &graph, &name);
    let again = read(
        archive::encode(replica, true).into(),
        &name,
        &ImportOptions::default(),
    );
    assert_eq!(
        again.expect("what we write, we read").replica,
        *replica,
        "{name}"
    );

    let bytes: usize = replica
        .exchanges
        .iter()
        .map(|exchange| exchange.body.len())
        .sum();
    let (mut by_bytes, mut by_done, mut depth) = (0, 0, vec![0; graph.nodes.len()]);
    for (index, node) in graph.nodes.iter().enumerate() {
        match node.trigger {
            Trigger::Start => {}
            Trigger::Bytes { .. } => by_bytes += 1,
            Trigger::Done { .. } => by_done += 1,
        }
        depth[index] = node.parent().map_or(0, |parent| depth[parent] + 1);
    }
    let dcl = graph
        .nodes
        .iter()
        .filter(|node| node.before_dom_content_loaded)
        .count();
    let load = graph.nodes.iter().filter(|node| node.before_load).count();
    let mut line = format!(
        "{name:44} {:4} exchanges {:3} hosts {:5} kB",
        replica.exchanges.len(),
        replica.hosts().len(),
        bytes / 1000
    );
    let deepest = depth.iter().max().unwrap_or(&0);
    let _ = write!(
        line,
        " | tree: {by_bytes} by text, {by_done} by others, depth {deepest}, {dcl} before DCL, {load} before load"
    );
    let _ = write!(line, " | {} | {}", replica.document().url, opened.notes);
    Ok(line)
}

#[test]
// A person runs this test for its table.
#[expect(
    clippy::print_stdout,
    reason = "a table of outcomes, shown on --nocapture"
)]
fn every_recording_of_the_public_corpus_imports_or_reports_why() {
    let mut lines = Vec::new();
    for folder in ["har", "warc"] {
        lines.extend(
            files(&corpus().join(folder))
                .iter()
                .map(|path| outcome(path)),
        );
    }
    if lines.is_empty() {
        println!("no corpus at {}: skipped", corpus().display());
        return;
    }
    for line in &lines {
        println!("{}", line.as_ref().unwrap_or_else(|reason| reason));
    }
    let failed: Vec<_> = lines
        .iter()
        .filter_map(|line| line.as_ref().err())
        .collect();
    // Its documents came over TLS, where the recorder did not see them.
    let is_expected = |reason: &str| {
        reason.starts_with("mnot-facebook.com") && reason.contains("no page load in the recording")
    };
    let unknown: Vec<_> = failed
        .iter()
        .filter(|reason| !is_expected(reason))
        .collect();
    assert!(unknown.is_empty(), "without a page: {unknown:#?}");
}
