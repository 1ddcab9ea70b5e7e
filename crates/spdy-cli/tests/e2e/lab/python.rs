//! The Python package in `python/`: it is installed as users do, and its own tests and its notebook run with the built program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::support::peers::{peers_enabled, require};
use crate::support::program::output_within;

/// It took 80 s of processor time on a busy machine, most of it for imports and for page loads of an unoptimised build.
const LONGEST: Duration = Duration::from_secs(600);

/// The repository's root.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_python_package_passes_its_tests_and_its_notebook_runs() {
    if !peers_enabled() {
        return;
    }
    let environment = repository().join("target/python");
    let python = environment.join("bin/python");
    require(
        "the environment of python/",
        environment.join("installed").is_file(),
    );
    let folder = tempfile::tempdir().expect("create a folder");
    let command = |words: &[&str]| {
        let mut command = Command::new(&python);
        command
            .args(words)
            .current_dir(folder.path())
            // Caches of all runs: without them, fonts are searched and modules compiled by each process.
            .env("PYTHONPYCACHEPREFIX", environment.join("compiled"))
            .env("MPLCONFIGDIR", environment.join("matplotlib"))
            // Nothing is read from or written to the user's own settings of Jupyter.
            .env("IPYTHONDIR", folder.path().join("ipython"))
            .env("JUPYTER_CONFIG_DIR", folder.path().join("config"))
            .env("JUPYTER_DATA_DIR", folder.path().join("data"))
            .env("JUPYTER_PLATFORM_DIRS", "1")
            .env("PYTHONPATH", folder.path().join("package"))
            .env("SPDY", env!("CARGO_BIN_EXE_spdy"));
        command
    };
    let package = repository().join("python");
    let package = package.to_str().expect("a path of text");
    let tests = format!("{package}/tests");
    let install = "-m pip install --quiet --disable-pip-version-check --no-index --no-build-isolation --no-deps --target package";
    let pytest = "-m pytest --quiet --tb short --basetemp pytest";
    for (words, path) in [(install, package), (pytest, &tests)] {
        let words: Vec<_> = words.split(' ').chain([path]).collect();
        let output = output_within(LONGEST, &mut command(&words));
        assert!(
            output.status.success(),
            "{words:?} failed: {}\nstdout: {}\nstderr: {}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
