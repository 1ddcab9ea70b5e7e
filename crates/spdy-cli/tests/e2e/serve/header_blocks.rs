//! How header blocks are compressed, whichever command writes them: a value with a token costs its full size every time, and text
//! farther back than `--header-window` cannot be referenced.

use serde_json::Value;

use crate::support::program::{ServeProcess, run_expecting, spdy};

/// Asserts that `run`, which returns the bytes of its header blocks, writes more of them with the smallest window than with the
/// largest.
fn assert_grows_with_smaller_window(run: impl Fn(&[&str]) -> u64) {
    let [with_large_window, with_small_window] =
        ["15", "11"].map(|bits| run(&["--header-window", bits]));
    assert!(
        with_large_window < with_small_window,
        "{with_large_window} bytes in 32 KiB, {with_small_window} in 2"
    );
}

/// A header whose value may be compressed, is longer than the smallest window, and has no repetition.
fn long_header() -> String {
    let mut state = 1_u32;
    let text = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + (state >> 24) as u8 % 26)
    });
    format!("accept: {}", text.take(3000).collect::<String>())
}

fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("create a folder");
    for name in ["a.css", "b.css", "c.css"] {
        std::fs::write(folder.path().join(name), "p {}").expect("write the file");
    }
    folder
}

/// Header bytes on the wire of three requests, and of their responses.
fn header_bytes(server: &ServeProcess, options: &[&str]) -> [u64; 2] {
    let urls = ["a.css", "b.css", "c.css"].map(|name| format!("{}/{name}", server.origin(false)));
    let mut command = spdy(&["fetch", "-v", "--protocol", "spdy/3.1"]);
    let output = run_expecting(0, command.args(options).args(urls));
    let stderr = String::from_utf8(output.stderr).expect("text");
    let last = stderr.lines().last().expect("a summary line");
    let after_arrow = |part: &str| {
        let (_, wire) = part.split_once("-> ").expect("plain -> wire");
        let digits = wire.split(' ').next().expect("a number");
        digits.parse::<u64>().expect("a number")
    };
    let mut parts = last.split("headers ").skip(1).map(after_arrow);
    [(); 2].map(|()| parts.next().expect("both directions"))
}

#[test]
fn a_token_costs_its_bytes_every_time_and_a_public_value_once() {
    let folder = site();
    let server = ServeProcess::start(folder.path(), &["--protocols", "spdy/3.1"]);
    let token = "4f1c2ab98e77d033564f1c2ab98e77d0";
    let [[none, _], [public, _], [private, _]] =
        ["accept: */*", "accept: ", "x-csrf-token: "].map(|name| {
            let header = if name.ends_with(' ') {
                format!("{name}{token}")
            } else {
                name.to_owned()
            };
            header_bytes(&server, &["-H", &header])
        });
    assert!(public < none + 2 * 32, "{public} bytes, without it {none}");
    assert!(
        private >= none + 3 * 32,
        "{private} bytes, without it {none}"
    );
}

#[test]
fn a_smaller_header_window_makes_requests_longer() {
    let folder = site();
    let server = ServeProcess::start(folder.path(), &["--protocols", "spdy/3.1"]);
    let long = long_header();
    assert_grows_with_smaller_window(|options| {
        header_bytes(&server, &[&["-H", &long], options].concat())[0]
    });
}

#[test]
fn bench_and_race_have_a_header_window() {
    let folder = site();
    let server = ServeProcess::start(folder.path(), &["--protocols", "spdy/3.1"]);
    let url = format!("{}/a.css", server.origin(false));
    let json = |command: &mut std::process::Command| {
        let output = run_expecting(0, command);
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let bench_bytes = |options: &[&str]| {
        let mut command = spdy(&["bench", "--json", "-n", "20", "-p", "spdy/3.1", &url]);
        let report = json(command.args(options));
        report["bytes"]["sent_headers"].as_u64().expect("bytes")
    };
    let long = long_header();
    assert_grows_with_smaller_window(|options| bench_bytes(&[&["-H", &long], options].concat()));
    let race_bytes = |options: &[&str]| {
        let arguments = [
            "race",
            "portal",
            "--network",
            "cable",
            "--protocols",
            "spdy",
            "--json",
        ];
        let mut command = spdy(&arguments);
        let output = run_expecting(0, command.args(options));
        let text = String::from_utf8(output.stdout).expect("text");
        let first: Value =
            serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
        first["request_header_bytes_wire"].as_u64().expect("bytes")
    };
    // Its requests are short, so a smaller window loses no matches, but near distances are encoded in fewer bits.
    let [with_large_window, with_small_window] =
        ["header_window=15", "header_window=11"].map(|level| race_bytes(&["--set", level]));
    assert_ne!(with_large_window, with_small_window);
}
