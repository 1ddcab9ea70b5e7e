//! Tests between us and an independent peer, in both roles.
//!
//! ```text
//!                      our server                           our client
//! GET, 100 at once     spdy serve  <-- the peer's client    spdy fetch --> the peer's server
//! POST                 Site        <-- the peer's client    spdy fetch --> the peer's server
//! push                 Site        --> the peer's client    spdy fetch <-- the peer's server
//!                      spdy serve  --> the peer's client
//! ```
//!
//! A method of [`PeerTest`] is one of these tests; `peer_tests!` lists those that a peer passes. The tests that it fails, and
//! the reasons, are in `docs/reference/interoperability.md`.

use std::fs;
use std::process::Command;

use serde_json::Value;
use spdy::server::PushForm;
use spdy_net::protocol::Protocol;

use crate::support::certificate::CERTIFICATE;
use crate::support::files::{self, FILES, File, PAGE_NAME, sha256};
use crate::support::peers::{Peer, PeerFetch, peers_enabled};
use crate::support::program::{ServeProcess, run_expecting, spdy};
use crate::support::site::{DIGEST_PATH, Site};

/// Generates a module for each [`PeerTest`] of a group, with the tests that all of the group pass.
///
/// `every_peer` stands for the tests that every peer passes.
macro_rules! peer_tests {
    (@module $name:ident = $peer_test:expr => { every_peer $($more:ident)* }) => {
        peer_tests!(@module $name = $peer_test => {
            its_client_gets_every_file
            its_client_gets_a_hundred_at_once
            its_client_gets_its_posts_back
            its_client_gets_pages_with_pushes_in_the_default_form
            fetch_gets_every_file
            fetch_gets_a_hundred_at_once
            fetch_gets_its_posts_back
            $($more)*
        });
    };
    (@module $name:ident = $peer_test:expr => { $($test:ident)+ }) => {
        mod $name {
            use super::*;
            $(
                #[test]
                fn $test() {
                    $peer_test.$test();
                }
            )+
        }
    };
    ($($($name:ident = $peer_test:expr),+ => $tests:tt;)+) => {
        $($(peer_tests!(@module $name = $peer_test => $tests);)+)+
    };
}
pub(crate) use peer_tests;

/// The page of the push tests.
const PAGE: &str = "128";
/// Names of the files that are pushed with it.
const PUSHES: [&str; 2] = ["10k", "1m"];
/// Files that are pushed to clients, which may have windows of 64 KiB and read slowly.
const SMALL_PUSHES: [&str; 2] = ["0", "10k"];

/// Every file once, from 0 B to 20 MB.
pub(crate) fn every_file() -> Vec<&'static File> {
    FILES.files.iter().collect()
}

/// A hundred requests, the maximum that our sessions allow at once: small files and one of 1 MB.
pub(crate) fn a_hundred() -> Vec<&'static File> {
    let small = FILES.files.iter().filter(|file| file.len <= 10 << 10);
    let mut files: Vec<_> = small.cycle().take(99).collect();
    files.insert(
        50,
        FILES
            .files
            .iter()
            .find(|file| file.len == 1 << 20)
            .expect("a file of 1 MB"),
    );
    files
}

/// The page with references to the files that `--push graph` pushes.
fn graph_page() -> File {
    File {
        name: PAGE_NAME,
        len: files::PAGE.len(),
        sha256: sha256(files::PAGE.as_bytes()),
    }
}

fn file_named(name: &str) -> &'static File {
    let file = FILES.files.iter().find(|file| file.name == name);
    file.unwrap_or_else(|| panic!("no file {name}"))
}

/// A peer, a protocol, and whether TLS is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerTest {
    peer: Peer,
    protocol: &'static str,
    secure: bool,
    /// Whether our server is configured with the protocol.
    is_version_known: bool,
}

impl PeerTest {
    /// Prior knowledge, over TCP.
    pub(crate) const fn plain(peer: Peer, protocol: &'static str) -> Self {
        Self {
            peer,
            protocol,
            secure: false,
            is_version_known: true,
        }
    }

    /// Over TCP, where our server detects the protocol.
    pub(crate) const fn with_detection(peer: Peer, protocol: &'static str) -> Self {
        Self {
            is_version_known: false,
            ..Self::plain(peer, protocol)
        }
    }

    /// Over TLS with ALPN.
    pub(crate) const fn tls(peer: Peer, protocol: &'static str) -> Self {
        Self {
            peer,
            protocol,
            secure: true,
            is_version_known: true,
        }
    }

    /// The protocols of our server.
    fn protocols(self) -> Vec<Protocol> {
        match self.is_version_known {
            true => vec![self.protocol.parse().expect("a known protocol")],
            false => Protocol::ALL.to_vec(),
        }
    }

    fn urls(origin: &str, files: &[&'static File]) -> Vec<String> {
        let url = |file: &&File| format!("{origin}/{}", file.name);
        files.iter().map(url).collect()
    }

    // ---- the peer's client, our server ----

    pub(crate) fn its_client_gets_every_file(self) {
        self.serve_responds(&every_file());
    }

    pub(crate) fn its_client_gets_a_hundred_at_once(self) {
        self.serve_responds(&a_hundred());
    }

    /// The peer's client requests `files` from `spdy serve`, all at once over one session.
    fn serve_responds(self, files: &[&'static File]) {
        if !peers_enabled() {
            return;
        }
        let mut options = Vec::new();
        if self.is_version_known {
            options.extend(["--protocols", self.protocol]);
        }
        options.extend(self.peer.serve_options());
        let server = ServeProcess::start(&FILES.folder, &options);
        let origin = server.origin(self.secure);
        let result = self
            .peer
            .fetch(self.protocol, &Self::urls(&origin, files), &[]);
        self.expect_responses(&result, files);
    }

    fn expect_responses(self, result: &PeerFetch, files: &[&File]) {
        assert_eq!(result.errors, [] as [&str; 0], "{self:?}");
        assert_eq!(result.protocol.as_deref(), Some(self.protocol), "{self:?}");
        assert_eq!(result.responses.len(), files.len(), "{self:?}");
        for (response, file) in result.responses.iter().zip(files) {
            let actual = (
                response.status,
                response.bytes,
                response.sha256.as_deref(),
                response.error.as_deref(),
            );
            let expected = (
                self.peer.seen_status(200),
                file.len,
                Some(file.sha256.as_str()),
                None,
            );
            assert_eq!(actual, expected, "{self:?} from {}", response.url);
        }
    }

    fn site(self, push_form: PushForm) -> (Site, String) {
        let site = Site::start(
            self.protocols(),
            self.secure,
            self.peer.has_flow_control(),
            push_form,
        );
        let scheme = if self.secure { "https" } else { "http" };
        let origin = format!("{scheme}://{}", site.address);
        (site, origin)
    }

    /// The peer's client posts each file to our server, which returns the body.
    pub(crate) fn its_client_gets_its_posts_back(self) {
        self.its_client_posts(&every_file());
    }

    /// A body larger than the initial window.
    pub(crate) fn its_client_gets_a_long_post_back(self) {
        self.its_client_posts(&[file_named("1m")]);
    }

    /// Uploads fifty files at once, to show faults that occur only sometimes. The responses are short, so that this tests only
    /// uploads.
    pub(crate) fn its_client_uploads_fifty_files_at_once(self) {
        if !peers_enabled() {
            return;
        }
        let (_site, origin) = self.site(PushForm::default());
        let url = format!("{origin}{DIGEST_PATH}");
        let result = self.post(url, file_named("1m"), &["--repeat", "50"]);
        let digest = &file_named("1m").sha256;
        let response = File {
            name: "the digest of 1m",
            len: digest.len(),
            sha256: sha256(digest.as_bytes()),
        };
        self.expect_responses(&result, &[&response; 50]);
    }

    fn its_client_posts(self, files: &[&'static File]) {
        if !peers_enabled() {
            return;
        }
        let (_site, origin) = self.site(PushForm::default());
        for file in files {
            let result = self.post(format!("{origin}/echo"), file, &[]);
            self.expect_responses(&result, &[file]);
        }
    }

    fn post(self, url: String, file: &File, extra_options: &[&str]) -> PeerFetch {
        let path = FILES.folder.join(file.name);
        let mut options = vec!["--post".to_owned(), path.display().to_string()];
        options.extend(extra_options.iter().map(|&option| option.to_owned()));
        self.peer.fetch(self.protocol, &[url], &options)
    }

    fn push_to_its_client(
        self,
        form: PushForm,
        seconds: u32,
        extra_options: &[&str],
    ) -> (Site, PeerFetch) {
        let (site, origin) = self.site(form);
        let url = format!("{origin}/{PAGE}?push={}", SMALL_PUSHES.join(","));
        let mut options = self.peer.wait_for_pushes_options(SMALL_PUSHES.len());
        options.extend(["--seconds".to_owned(), seconds.to_string()]);
        options.extend(extra_options.iter().map(|&option| option.to_owned()));
        let result = self.peer.fetch(self.protocol, &[url], &options);
        (site, result)
    }

    /// In the form that the client supports.
    pub(crate) fn its_client_accepts_our_pushes(self) {
        self.accepts_pushes(self.peer.push_form());
    }

    /// Also in one block.
    pub(crate) fn its_client_accepts_our_pushes_in_one_block(self) {
        self.accepts_pushes(PushForm::OneBlock);
    }

    /// Also in two blocks with the version in both.
    pub(crate) fn its_client_accepts_our_pushes_with_the_version_twice(self) {
        self.accepts_pushes(PushForm::VersionTwice);
    }

    fn accepts_pushes(self, form: PushForm) {
        if !peers_enabled() {
            return;
        }
        let (site, result) = self.push_to_its_client(form, 20, &[]);
        self.expect_responses(&result, &[file_named(PAGE)]);
        self.expect_pushes(&result);
        let expected = SMALL_PUSHES.map(|name| (name.to_owned(), None));
        assert_eq!(site.pushes(), expected, "{self:?}");
    }

    fn expect_pushes(self, result: &PeerFetch) {
        // A path, or in SPDY/2 an absolute URL.
        let path = |url: &str| url.rfind('/').map_or("", |at| &url[at..]).to_owned();
        let mut actual: Vec<_> = result
            .pushed
            .iter()
            .map(|push| {
                let hash = push.sha256.as_deref();
                (path(&push.url), push.bytes, hash, push.error.as_deref())
            })
            .collect();
        actual.sort_unstable();
        let pushed = SMALL_PUSHES.map(file_named);
        let expected = pushed.map(|file| {
            let path = format!("/{}", file.name);
            (path, file.len, Some(file.sha256.as_str()), None)
        });
        assert_eq!(actual, expected, "{self:?}");
    }

    /// `spdy serve` pushes what a page references, in the form that the peer supports.
    pub(crate) fn its_client_accepts_pushes_of_serve(self) {
        if !peers_enabled() {
            return;
        }
        let form: &[&str] = match self.peer.push_form() {
            PushForm::TwoBlocks => &["--push-form", "two-blocks"],
            PushForm::VersionTwice => &["--push-form", "version-twice"],
            PushForm::OneBlock => &[], // the default
        };
        let options = self.peer.wait_for_pushes_options(SMALL_PUSHES.len());
        let result = self.fetch_graph_page(form, &options);
        self.expect_responses(&result, &[&graph_page()]);
        self.expect_pushes(&result);
    }

    /// Pushes of `spdy serve` in the default form end no session: repeated requests get the page.
    pub(crate) fn its_client_gets_pages_with_pushes_in_the_default_form(self) {
        if !peers_enabled() {
            return;
        }
        let repeat = ["--repeat".to_owned(), "5".to_owned()];
        let result = self.fetch_graph_page(&[], &repeat);
        self.expect_responses(&result, &[&graph_page(); 5]);
    }

    /// The peer's client requests the page from `spdy serve --push graph`.
    fn fetch_graph_page(self, form: &[&str], client: &[String]) -> PeerFetch {
        let mut options = vec!["--protocols", self.protocol, "--push", "graph"];
        options.extend(form);
        options.extend(self.peer.serve_options());
        let server = ServeProcess::start(&FILES.folder, &options);
        let url = format!("{}/{PAGE_NAME}", server.origin(self.secure));
        self.peer.fetch(self.protocol, &[url], client)
    }

    /// The client rejects pushes in every form. It still gets the page, and the session stays open.
    pub(crate) fn its_client_gets_the_page_with_pushes_it_rejects(self) {
        for form in [
            PushForm::TwoBlocks,
            PushForm::VersionTwice,
            PushForm::OneBlock,
        ] {
            self.rejects_pushes(form);
        }
    }

    /// The client resets pushes in other forms than its own. It still gets the page, and the session stays open.
    pub(crate) fn its_client_gets_the_page_with_pushes_in_another_form(self) {
        for form in [PushForm::TwoBlocks, PushForm::OneBlock] {
            self.rejects_pushes(form);
        }
    }

    fn rejects_pushes(self, form: PushForm) {
        if !peers_enabled() {
            return;
        }
        let push_options = self.peer.unusable_push_options();
        let (_site, result) = self.push_to_its_client(form, 20, push_options);
        self.expect_responses(&result, &[file_named(PAGE)]);
        let complete_pushes = result.pushed.iter().filter(|push| push.sha256.is_some());
        assert_eq!(complete_pushes.count(), 0, "{self:?}: {:?}", result.pushed);
    }

    /// The client needs the status in the SYN_STREAM of a push, and ends its session without it.
    pub(crate) fn its_client_ends_the_session_at_our_pushes_in_two_blocks(self) {
        if !peers_enabled() {
            return;
        }
        let (_site, result) = self.push_to_its_client(PushForm::TwoBlocks, 20, &[]);
        let errors = result.errors.join("\n");
        assert!(errors.contains("Missing `:status`"), "{self:?}: {result:?}");
    }

    // ---- our client, the peer's server ----

    pub(crate) fn fetch_gets_every_file(self) {
        self.fetch_gets(&every_file());
    }

    pub(crate) fn fetch_gets_a_hundred_at_once(self) {
        self.fetch_gets(&a_hundred());
    }

    /// `spdy fetch` with the options that this peer needs.
    fn fetch(self) -> Command {
        let mut command = spdy(&["fetch", "--protocol", self.protocol, "--json"]);
        command.args(self.peer.fetch_options());
        if self.secure {
            command.arg("--cacert").arg(&CERTIFICATE.authority);
        }
        command
    }

    /// Runs `command` and parses the result of each URL.
    fn results(self, command: &mut Command) -> Vec<Value> {
        let output = run_expecting(0, command);
        let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
        let results: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect();
        for result in &results {
            let actual = (
                &result["status"],
                &result["protocol"],
                &result["connection"],
            );
            let expected = (&200.into(), &self.protocol.into(), &0.into());
            assert_eq!(actual, expected, "{self:?}: {result}");
        }
        results
    }

    /// `spdy fetch` requests `files` from the peer's server, all at once over one session.
    fn fetch_gets(self, files: &[&'static File]) {
        if !peers_enabled() {
            return;
        }
        let (_process, origin) = self.peer.serve(self.protocol, self.secure);
        let urls = Self::urls(&origin, files);
        let folder = tempfile::tempdir().expect("create a folder");
        let mut command = self.fetch();
        command.arg("--output-dir").arg(folder.path()).args(&urls);
        let results = self.results(&mut command);
        assert_eq!(results.len(), urls.len(), "{self:?}: {results:?}");

        // Compares the written files and the reported results, independent of the order in which the bodies arrived.
        let mut expected: Vec<_> = files
            .iter()
            .map(|file| (file.len, file.sha256.clone()))
            .collect();
        let mut reported_bodies: Vec<_> = results.iter().map(reported).collect();
        let entries = fs::read_dir(folder.path()).expect("read the folder");
        let bodies =
            entries.map(|entry| fs::read(entry.expect("an entry").path()).expect("a file"));
        let mut written_bodies: Vec<_> = bodies.map(|body| (body.len(), sha256(&body))).collect();
        for list in [&mut expected, &mut reported_bodies, &mut written_bodies] {
            list.sort();
        }
        assert_eq!(reported_bodies, expected, "{self:?}, as reported");
        assert_eq!(written_bodies, expected, "{self:?}, as written");
    }

    /// `spdy fetch` posts each file, and gets the body back.
    pub(crate) fn fetch_gets_its_posts_back(self) {
        self.fetch_posts(&every_file());
    }

    fn fetch_posts(self, files: &[&'static File]) {
        if !peers_enabled() {
            return;
        }
        let (_process, origin) = self.peer.serve(self.protocol, self.secure);
        for file in files {
            let body = format!("@{}", FILES.folder.join(file.name).display());
            let mut command = self.fetch();
            command.args(["--data", &body, &format!("{origin}/echo")]);
            let actual: Vec<_> = self.results(&mut command).iter().map(reported).collect();
            assert_eq!(actual, [(file.len, file.sha256.clone())], "{self:?}");
        }
    }

    /// `spdy fetch` accepts the pushes of the peer's server.
    pub(crate) fn its_pushes_are_accepted(self) {
        if !peers_enabled() {
            return;
        }
        let results = self.fetch_page_with_pushes();
        let (page, pushes) = results.split_first().expect("the page");
        assert_eq!(page.get("pushed"), None, "{self:?}: {page}");
        assert_eq!(reported(page), size_and_hash(file_named(PAGE)), "{self:?}");
        let mut actual: Vec<_> = pushes
            .iter()
            .map(|push| {
                assert_eq!(push["pushed"]["claimed"], false, "{self:?}: {push}");
                assert_eq!(push["pushed"]["associated_to"], 1, "{self:?}: {push}");
                let url = push["url"].as_str().expect("a URL");
                (url.rsplit('/').next().unwrap_or_default(), reported(push))
            })
            .collect();
        actual.sort();
        assert_eq!(
            actual,
            PUSHES.map(|name| (name, size_and_hash(file_named(name)))),
            "{self:?}"
        );
    }

    /// A push responds to the request for its URL, which then is never sent.
    pub(crate) fn its_pushes_satisfy_requests(self) {
        if !peers_enabled() {
            return;
        }
        let (_process, origin) = self.peer.serve(self.protocol, self.secure);
        let mut command = self.fetch();
        command.args(["--push", "accept"]);
        let urls = PUSHES.map(|name| format!("{origin}/{name}"));
        command.arg(format!("{origin}/{PAGE}?push={}", PUSHES.join(",")));
        let results = self.results(command.args(&urls));
        assert_eq!(results.len(), 3, "{self:?}: {results:?}");
        for (result, name) in results[1..].iter().zip(PUSHES) {
            assert_eq!(result["pushed"]["claimed"], true, "{self:?}: {result}");
            assert_eq!(
                reported(result),
                size_and_hash(file_named(name)),
                "{self:?}"
            );
        }
    }

    /// The pushes have another origin than their page, so they are refused. The page is fetched.
    pub(crate) fn its_pushes_are_of_another_origin(self) {
        if !peers_enabled() {
            return;
        }
        let results = self.fetch_page_with_pushes();
        assert_eq!(results.len(), 1, "{self:?}: {results:?}");
        assert_eq!(
            reported(&results[0]),
            size_and_hash(file_named(PAGE)),
            "{self:?}"
        );
    }

    fn fetch_page_with_pushes(self) -> Vec<Value> {
        let (_process, origin) = self.peer.serve(self.protocol, self.secure);
        let mut command = self.fetch();
        command.args(["--push", "accept"]);
        let url = format!("{origin}/{PAGE}?push={}", PUSHES.join(","));
        self.results(command.arg(url))
    }
}

/// Size and hash of a file.
fn size_and_hash(file: &File) -> (usize, String) {
    (file.len, file.sha256.clone())
}

/// Size and hash, as `spdy fetch` reports them.
fn reported(result: &Value) -> (usize, String) {
    let bytes = result["bytes"].as_u64().expect("a number") as usize;
    (bytes, result["sha256"].as_str().expect("a hash").to_owned())
}
