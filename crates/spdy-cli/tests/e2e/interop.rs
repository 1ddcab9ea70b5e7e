//! What every independent peer must be able to do with us, and we with it.

use std::fs;

use serde_json::Value;

use crate::support::certificate::CERTIFICATE;
use crate::support::files::{FILES, File, sha256};
use crate::support::peers::{Peer, wanted};
use crate::support::program::{Served, ended_with, spdy};

/// Every file once, from 0 B to 20 MB.
pub(crate) fn every_file() -> Vec<&'static File> {
    FILES.files.iter().collect()
}

/// A hundred requests, as many as a session of ours allows at once: small files, and one of 1 MB among them.
pub(crate) fn a_hundred() -> Vec<&'static File> {
    let small = FILES.files.iter().filter(|file| file.len <= 10 << 10);
    let mut files: Vec<_> = small.cycle().take(99).collect();
    files.insert(
        50,
        FILES
            .files
            .iter()
            .find(|file| file.len == 1 << 20)
            .expect("there is one of 1 MB"),
    );
    files
}

/// `peer`'s client asks `spdy serve` for `files`, all at once over one session.
pub(crate) fn serve_answers(peer: Peer, secure: bool, files: fn() -> Vec<&'static File>) {
    if !wanted() {
        return;
    }
    let files = files();
    let served = Served::start(&FILES.folder, &[]);
    let origin = served.origin(secure);
    let urls: Vec<_> = files
        .iter()
        .map(|file| format!("{origin}/{}", file.name))
        .collect();
    let fetched = peer.fetch(&urls);
    assert_eq!(fetched.errors, [] as [&str; 0], "{peer:?} from {origin}");
    assert_eq!(
        fetched.protocol.as_deref(),
        Some("spdy/3.1"),
        "{peer:?} from {origin}"
    );
    assert_eq!(fetched.responses.len(), files.len());
    for (response, file) in fetched.responses.iter().zip(files) {
        let got = (
            response.status,
            response.bytes,
            response.sha256.as_deref(),
            response.error.as_deref(),
        );
        assert_eq!(
            got,
            (200, file.len, Some(file.sha256.as_str()), None),
            "{peer:?} from {}",
            response.url
        );
    }
}

/// `spdy fetch` asks `peer`'s server for `files`, all at once over one session.
pub(crate) fn fetch_gets(peer: Peer, secure: bool, files: fn() -> Vec<&'static File>) {
    if !wanted() {
        return;
    }
    let files = files();
    let (_running, origin) = peer.serve(secure);
    let urls: Vec<_> = files
        .iter()
        .map(|file| format!("{origin}/{}", file.name))
        .collect();
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut command = spdy(&["fetch", "--protocol", "spdy/3.1", "--json", "--output-dir"]);
    command.arg(folder.path());
    if secure {
        command.arg("--cacert").arg(&CERTIFICATE.authority);
    }
    let output = ended_with(0, command.args(&urls));
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let results: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(results.len(), urls.len(), "{text}");
    for result in &results {
        let got = (
            &result["status"],
            &result["protocol"],
            &result["connection"],
        );
        assert_eq!(
            got,
            (&200.into(), &"spdy/3.1".into(), &0.into()),
            "{peer:?}: {result}"
        );
    }

    // What it wrote, and what it says of it, without regard to the order in which the bodies came.
    let mut wanted: Vec<_> = files
        .iter()
        .map(|file| (file.len, file.sha256.clone()))
        .collect();
    let number = |result: &Value| result["bytes"].as_u64().expect("a number") as usize;
    let hash = |result: &Value| result["sha256"].as_str().expect("a hash").to_owned();
    let mut told: Vec<_> = results
        .iter()
        .map(|result| (number(result), hash(result)))
        .collect();
    let entries = fs::read_dir(folder.path()).expect("the folder is there");
    let bodies = entries.map(|entry| fs::read(entry.expect("an entry").path()).expect("a file"));
    let mut written: Vec<_> = bodies.map(|body| (body.len(), sha256(&body))).collect();
    for list in [&mut wanted, &mut told, &mut written] {
        list.sort();
    }
    assert_eq!(told, wanted, "{peer:?} from {origin}, as told");
    assert_eq!(written, wanted, "{peer:?} from {origin}, as written");
}
