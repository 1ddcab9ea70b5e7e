//! The laboratory's switch for URLs as in the paper, where others could reach what it hides.

use crate::support::accelerator::program::{Accelerator, check, check_by};
use crate::support::program::spdy;

fn config(listen: &str, lab: &str) -> String {
    format!(
        "{lab}[listen]\nplain = ['{listen}']\ntls = []\n[[site]]\nnames = ['www.site.test']\norigin = 'http://127.0.0.1:1'\n"
    )
}

#[test]
fn a_reload_cannot_enable_paper_urls_on_public_listeners() {
    let program = Accelerator::start(&config("0.0.0.0:0", ""));
    program.reload(&config("127.0.0.1:0", "[lab]\npaper_urls = true\n"));
    let line = program.line_with("lab.paper_urls");
    assert!(line.contains("want listeners on loopback alone"), "{line}");
    assert!(line.contains("got 0.0.0.0:"), "{line}");
}

#[test]
fn command_line_listeners_are_checked_too() {
    let text = config("127.0.0.1:0", "[lab]\npaper_urls = true\n");
    assert_eq!(check(&text).0, 0);
    for words in [["--plain", "0.0.0.0:0"], ["--tls", "[::]:0"]] {
        let mut command = spdy(&["accelerate", "--check"]);
        let (code, told) = check_by(command.args(words), &text);
        assert_eq!(code, 2, "{words:?}: {told}");
        assert!(
            told.contains("lab.paper_urls: want listeners on loopback alone"),
            "{told}"
        );
    }
}
