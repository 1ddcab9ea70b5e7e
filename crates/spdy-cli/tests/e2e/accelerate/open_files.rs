//! How many files `spdy accelerate` may have open.

use std::ffi::OsStr;

use crate::support::accelerator::program::Accelerator;

const CONFIG: &str = "[listen]\nplain = ['127.0.0.1:0']\ntls = []\n\
                      [[site]]\nnames = ['www.site.test']\norigin = 'http://127.0.0.1:1'\n";

/// It, started where the shell has these limits, with more on its command line and 200 connections by its configuration.
fn start_with_limits(limits: &str, more: &str) -> Accelerator {
    let script = format!("{limits}; exec \"$@\" {more}");
    let config = format!("[limits]\nmax_connections = 200\n{CONFIG}");
    Accelerator::start_under(&["sh", "-c", &script, "sh"].map(OsStr::new), &config)
}

fn has_warning(accelerator: &Accelerator) -> bool {
    let said = accelerator.log_lines();
    said.iter().any(|line| line.contains("files may be open"))
}

#[test]
fn the_file_limit_is_raised_and_a_low_one_warned_about() {
    let low = start_with_limits("ulimit -n 700", "");
    let line = low.line_with("no more than 700 files may be open");
    assert!(
        line.contains("200 connections and 4096 WebSockets to origins want 912"),
        "{line}"
    );
    // The command line goes before the configuration.
    let fewer = start_with_limits("ulimit -n 700", "--max-connections 50");
    assert!(!has_warning(&fewer), "{:?}", fewer.log_lines());
    let enough = start_with_limits("ulimit -Sn 100; ulimit -Hn 1000", "");
    assert!(!has_warning(&enough), "{:?}", enough.log_lines());
    if let Ok(limits) = std::fs::read_to_string(format!("/proc/{}/limits", enough.id())) {
        let line = limits
            .lines()
            .find(|line| line.starts_with("Max open files"));
        let words: Vec<_> = line.expect("it is one").split_whitespace().collect();
        assert_eq!(words[3..5], ["1000", "1000"], "{limits}");
    }
}
