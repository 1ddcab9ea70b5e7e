//! `clock = "real"`: which experiments are rejected. Loads in real time are tested in `tests/on_time`.

use crate::support::lab::experiment_folder::{Lab, text};
use crate::support::program::run_expecting;

const BOTH_CLOCKS: &str = "name = 'clocks'\nruns = 2\npages = ['lulic-bing']\nprotocols = ['http', 'spdy']\n[factors]\nnetwork = \
                           'lte'\nclock = ['virtual', 'real']\n";

#[test]
fn virtual_time_factors_are_refused_in_real_time() {
    let lab = Lab::new(BOTH_CLOCKS);
    for (factor, expected) in [
        ("tcp = '2009'", "uses the kernel's TCP, not that of 2009"),
        ("preset = 'lulic'", "expected tcp=today"),
        ("accelerator = 'warm'", "need clock=virtual"),
        ("backhaul = '20ms'", "need clock=virtual"),
    ] {
        std::fs::write(lab.path("small.toml"), format!("{BOTH_CLOCKS}{factor}\n"))
            .expect("a folder");
        let stderr = text(&run_expecting(1, &mut lab.command(&["run", "small.toml"])).stderr);
        assert!(
            stderr.contains("clock=real") && stderr.contains(expected),
            "{factor}: {stderr}"
        );
    }
    std::fs::write(
        lab.path("small.toml"),
        BOTH_CLOCKS.replace("'real'", "'wall'"),
    )
    .expect("a folder");
    let stderr = text(&run_expecting(1, &mut lab.command(&["run", "small.toml"])).stderr);
    assert!(
        stderr.contains("line 7") && stderr.contains("expected virtual or real"),
        "{stderr}"
    );
}
