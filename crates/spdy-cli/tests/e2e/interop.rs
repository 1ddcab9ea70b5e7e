//! What every independent peer must be able to do with us, and we with it.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::support::files::{FILES, File, sha256};
use crate::support::peers::{Peer, wanted};
use crate::support::program::{Served, ended_with, spdy};

/// The largest file of all.
const ALL: usize = usize::MAX;
/// Small files: many of them at once make the crowd.
const SMALL: usize = 10 << 10;

/// Every file, from 0 B to 20 MB, at once over one session to `peer`'s client.
pub(crate) fn serve_answers_with_every_file(peer: Peer, secure: bool) {
    if wanted() {
        let served = Served::start(&FILES.folder, &[]);
        check_client(peer, &served.origin(secure), FILES.up_to(ALL), 1);
    }
}

/// A hundred requests at once over one session to `peer`'s client.
pub(crate) fn serve_answers_a_crowd(peer: Peer, secure: bool) {
    if wanted() {
        let served = Served::start(&FILES.folder, &[]);
        check_client(peer, &served.origin(secure), FILES.up_to(SMALL), 34);
    }
}

fn check_client<'a>(
    peer: Peer,
    origin: &str,
    files: impl Iterator<Item = &'a File> + Clone,
    times: usize,
) {
    let asked: Vec<_> = (0..times).flat_map(|_| files.clone()).collect();
    let urls: Vec<_> = asked
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
    assert_eq!(fetched.responses.len(), asked.len());
    for (response, file) in fetched.responses.iter().zip(asked) {
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

/// Every file, from 0 B to 20 MB, at once over one session from `peer`'s server.
pub(crate) fn fetch_gets_every_file(peer: Peer, secure: bool) {
    if wanted() {
        check_server(peer, secure, FILES.up_to(ALL), 1);
    }
}

/// A hundred requests at once over one session from `peer`'s server.
pub(crate) fn fetch_gets_a_crowd(peer: Peer, secure: bool) {
    if wanted() {
        check_server(peer, secure, FILES.up_to(SMALL), 34);
    }
}

fn check_server<'a>(
    peer: Peer,
    secure: bool,
    files: impl Iterator<Item = &'a File> + Clone,
    times: usize,
) {
    let (_running, origin) = peer.serve(secure);
    let by_name: BTreeMap<_, _> = files.clone().map(|file| (file.name, file)).collect();
    // Different queries make different URLs, so that each gets a file of its own.
    let urls: Vec<_> = (0..times)
        .flat_map(|time| files.clone().map(move |file| (file.name, time)))
        .map(|(name, time)| format!("{origin}/{name}?{time}"))
        .collect();
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut command = spdy(&[
        "fetch",
        "--protocol",
        "spdy/3.1",
        "--json",
        "--insecure",
        "--output-dir",
    ]);
    let output = ended_with(0, command.arg(folder.path()).args(&urls));
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let results: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(results.len(), urls.len(), "{text}");
    for result in results {
        let url = result["url"].as_str().expect("a URL");
        let name = url
            .rsplit('/')
            .next()
            .and_then(|name| name.split('?').next())
            .expect("a name");
        let file = by_name[name];
        assert_eq!(result["status"], 200, "{peer:?}: {result}");
        assert_eq!(result["protocol"], "spdy/3.1", "{peer:?}: {result}");
        let path = result["file"].as_str().expect("where the body went");
        let body = fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(
            (body.len(), sha256(&body)),
            (file.len, file.sha256.clone()),
            "{peer:?}: {result}"
        );
    }
}
