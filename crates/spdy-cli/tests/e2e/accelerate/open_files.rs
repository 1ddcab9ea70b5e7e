//! The limit of open files of `spdy accelerate`.

use std::ffi::OsStr;

use crate::support::accelerator::program::Accelerator;

const CONFIG: &str = "[listen]\nplain = ['127.0.0.1:0']\ntls = []\n\
                      [[site]]\nnames = ['www.site.test']\norigin = 'http://127.0.0.1:1'\n";

/// Starts an accelerator with the shell's `limits` and a limit of `connections` in its configuration.
fn start_with_limits(limits: &str, connections: u32) -> Accelerator {
    start_with(CONFIG, limits, connections)
}

/// The same with the configuration `config` of the rest.
fn start_with(config: &str, limits: &str, connections: u32) -> Accelerator {
    let script = format!("{limits}; exec \"$@\"");
    let config = format!("[limits]\nmax_connections = {connections}\n{config}");
    Accelerator::start_under(&["sh", "-c", &script, "sh"].map(OsStr::new), &config)
}

fn has_warning(accelerator: &Accelerator) -> bool {
    let lines = accelerator.log_lines();
    lines
        .iter()
        .any(|line| line.contains("the limit of open files"))
}

#[test]
fn the_file_limit_is_raised_and_a_low_one_warned_about() {
    let low = start_with_limits("ulimit -n 700", 200);
    let line = low.line_with("the limit of open files is 700");
    assert!(
        line.contains("200 connections and 4096 WebSockets to origins need 912"),
        "{line}"
    );
    let folder = std::env::temp_dir();
    let with_folder = format!("{CONFIG}[[site.paths]]\npath = '/f/'\nfolder = {folder:?}\n");
    let with_folder = start_with(&with_folder, "ulimit -n 700", 50);
    let line = with_folder.line_with("the limit of open files is 700");
    assert!(
        line.contains("and 2048 files of folders need 2660"),
        "{line}"
    );
    let fewer = start_with_limits("ulimit -n 700", 50);
    assert!(!has_warning(&fewer), "{:?}", fewer.log_lines());
    let accelerator = start_with_limits("ulimit -Sn 100; ulimit -Hn 1000", 200);
    assert!(!has_warning(&accelerator), "{:?}", accelerator.log_lines());
    if let Ok(limits) = std::fs::read_to_string(format!("/proc/{}/limits", accelerator.id())) {
        let line = limits
            .lines()
            .find(|line| line.starts_with("Max open files"));
        let words: Vec<_> = line
            .expect("a line with the limit")
            .split_whitespace()
            .collect();
        assert_eq!(words[3..5], ["1000", "1000"], "{limits}");
    }
}
