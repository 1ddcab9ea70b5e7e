//! How header blocks are written, whichever command writes them. What `--secret-header` names is not written as a
//! repetition: all the values here are too short to be repeated even whole, so that each costs its bytes every time.
//! And what `--header-window` leaves out cannot be repeated.

use serde_json::Value;

use crate::support::program::{Served, ended_with, spdy};

/// Bytes of the header blocks that `run` writes without and with the option: the second are `least` more.
fn grows(run: impl Fn(&[&str]) -> u64, name: &str, least: u64) {
    let (open, kept) = (run(&[]), run(&["--secret-header", name]));
    assert!(open + least <= kept, "{name}: {open} bytes, and {kept}");
}

/// The same with the largest window and the smallest.
fn grows_with_less_window(run: impl Fn(&[&str]) -> u64) {
    let [most, least] = ["15", "11"].map(|bits| run(&["--header-window", bits]));
    assert!(most < least, "{most} bytes in 32 KiB, {least} in 2");
}

/// A header that is more than the smallest window holds, and has nothing twice.
fn long_header() -> String {
    let mut state = 1_u32;
    let text = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + (state >> 24) as u8 % 26)
    });
    format!("x-long: {}", text.take(3000).collect::<String>())
}

fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for name in ["a.css", "b.css", "c.css"] {
        std::fs::write(folder.path().join(name), "p {}").expect("a file can be written");
    }
    folder
}

/// Header bytes on the wire of three requests, and of their answers.
fn fetched(served: &Served, more: &[&str]) -> [u64; 2] {
    let urls = ["a.css", "b.css", "c.css"].map(|name| format!("{}/{name}", served.origin(false)));
    let mut command = spdy(&["fetch", "-v", "--protocol", "spdy/3.1"]);
    let output = ended_with(0, command.args(more).args(urls));
    let told = String::from_utf8(output.stderr).expect("text");
    let last = told.lines().last().expect("it sums up");
    let after_arrow = |part: &str| {
        let (_, wire) = part.split_once("-> ").expect("plain -> wire");
        let digits = wire.split(' ').next().expect("a number");
        digits.parse::<u64>().expect("a number")
    };
    let mut parts = last.split("headers ").skip(1).map(after_arrow);
    [(); 2].map(|()| parts.next().expect("both directions"))
}

#[test]
fn a_client_and_a_server_keep_what_they_are_told_to_keep() {
    let folder = site();
    let served = Served::start(folder.path(), &["--protocols", "spdy/3.1"]);
    grows(|more| fetched(&served, more)[0], "user-agent", 10);
    let by_server = |more: &[&str]| {
        let options = [&["--protocols", "spdy/3.1"], more].concat();
        fetched(&Served::start(folder.path(), &options), &[])[1]
    };
    grows(by_server, "Content-Type", 10);
    let long = long_header();
    grows_with_less_window(|more| fetched(&served, &[&["-H", &long], more].concat())[0]);
}

#[test]
fn a_load_and_a_race_keep_it_too() {
    let folder = site();
    let served = Served::start(folder.path(), &["--protocols", "spdy/3.1"]);
    let url = format!("{}/a.css", served.origin(false));
    let json = |command: &mut std::process::Command| {
        let output = ended_with(0, command);
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let by_bench = |more: &[&str]| {
        let mut command = spdy(&["bench", "--json", "-n", "20", "-p", "spdy/3.1", &url]);
        let report = json(command.args(more));
        report["bytes"]["sent_headers"].as_u64().expect("bytes")
    };
    grows(by_bench, "user-agent", 100);
    let long = long_header();
    grows_with_less_window(|more| by_bench(&[&["-H", &long], more].concat()));
    let by_race = |more: &[&str]| {
        let choices = [
            "race",
            "flags",
            "--network",
            "cable",
            "--protocols",
            "spdy",
            "--json",
        ];
        let mut command = spdy(&choices);
        let output = ended_with(0, command.args(more));
        let text = String::from_utf8(output.stdout).expect("text");
        let first: Value =
            serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
        first["request_header_bytes_wire"].as_u64().expect("bytes")
    };
    grows(by_race, ":method", 100);
    // Its requests are short: less window costs none of them anything, but what is near is written in fewer bits.
    let [most, least] = ["15", "11"].map(|bits| by_race(&["--header-window", bits]));
    assert_ne!(most, least);
}

#[test]
fn plain_zlib_keeps_no_secret_and_says_so() {
    let choices = [
        "fetch",
        "--compression",
        "6",
        "--secret-header",
        "x-token",
        "http://127.0.0.1:1/",
    ];
    let output = ended_with(2, &mut spdy(&choices));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("x-token wants --compression masked"),
        "{told}"
    );
}
