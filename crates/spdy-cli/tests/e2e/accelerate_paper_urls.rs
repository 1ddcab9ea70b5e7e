//! The laboratory's switch for URLs as in the paper, where others could reach what it hides.

use crate::support::accelerator::Accelerator;
use crate::support::program::{ended_with, spdy};

fn config(listen: &str, lab: &str) -> String {
    format!(
        "{lab}[listen]\nplain = ['{listen}']\ntls = []\n[[site]]\nnames = ['www.site.test']\norigin = 'http://127.0.0.1:1'\n"
    )
}

#[test]
fn a_reload_does_not_turn_it_on_where_others_listen_whatever_it_says_of_listeners() {
    let program = Accelerator::start(&config("0.0.0.0:0", ""));
    program.reload(&config("127.0.0.1:0", "[lab]\npaper_urls = true\n"));
    let line = program.line_with("lab.paper_urls");
    assert!(line.contains("want listeners on loopback alone"), "{line}");
    assert!(line.contains("got 0.0.0.0:"), "{line}");
}

#[test]
fn listeners_of_the_command_line_count() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("site.toml");
    let text = config("127.0.0.1:0", "[lab]\npaper_urls = true\n");
    std::fs::write(&path, text).expect("the folder can be written to");
    let check = |words: &[&str]| {
        let mut command = spdy(&["accelerate"]);
        command.arg(&path).args(words);
        command
    };
    ended_with(0, &mut check(&["--check"]));
    for words in [["--plain", "0.0.0.0:0"], ["--tls", "[::]:0"]] {
        let told = ended_with(2, check(&["--check"]).args(words)).stderr;
        let told = String::from_utf8_lossy(&told);
        assert!(
            told.contains("lab.paper_urls: want listeners on loopback alone"),
            "{told}"
        );
    }
}
