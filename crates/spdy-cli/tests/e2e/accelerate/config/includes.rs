//! Sites in files of their own (`include`): errors of `--check`, environment variables, and a reload.

use std::path::Path;

use spdy_testkit::wait::until;

use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::PendingResponse;
use crate::support::program::{ServeProcess, output, spdy};

fn site(name: &str, origin: &str) -> String {
    format!("[[site]]\nnames = ['{name}']\norigin = '{origin}'\n")
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("write the file");
}

/// The exit code and stderr of `--check` for `main`, beside a folder `sites` with `files`.
fn check(main: &str, files: &[(&str, &str)], variables: &[(&str, &str)]) -> (i32, String) {
    let folder = tempfile::tempdir().expect("create a folder");
    let sites = folder.path().join("sites");
    std::fs::create_dir(&sites).expect("create a folder");
    for (name, text) in files {
        write(&sites.join(name), text);
    }
    let path = folder.path().join("main.toml");
    write(&path, main);
    let mut command = spdy(&["accelerate", "--check"]);
    let output = output(command.arg(path).envs(variables.iter().copied()));
    let stderr = String::from_utf8(output.stderr).expect("text is UTF-8");
    (output.status.code().expect("the program ends"), stderr)
}

#[test]
fn sites_of_a_folder_are_checked_with_those_of_the_main_file() {
    let main = format!(
        "include = ['sites/*.toml']\n{}",
        site("main.test", "http://o.test")
    );
    let (a, b) = (
        site("a.test", "http://o.test"),
        site("b.test", "http://o.test"),
    );
    let files = [("b.toml", &b[..]), ("a.toml", &a), ("note.txt", "no TOML")];
    let good = (0, "good: a.test, b.test, main.test\n".to_owned());
    assert_eq!(check(&main, &files, &[]), good);
    // Keys from the environment apply to the main file.
    let include = ("SPDY_ACCELERATE__INCLUDE", "['sites/a.toml']");
    let good = (0, "good: a.test, main.test\n".to_owned());
    assert_eq!(check(&main, &files, &[include]), good);
    let good = (0, "good: main.test\n".to_owned());
    assert_eq!(check(&main, &[], &[]), good, "there may be no file");
}

#[test]
fn check_names_the_file_of_a_fault() {
    let main = format!(
        "include = ['sites/*.toml']\n{}",
        site("main.test", "http://o.test")
    );
    let rule = "[[site.rewrite.hosts]]\nhost = 'c.test'\npath = 'x'\nkinds = ['image']\n";
    let site_a = site("a.test", "http://o.test");
    for (text, expected) in [
        (
            "[cache]\nmemory_mib = 1\n".to_owned(),
            "unknown field `cache`",
        ),
        (
            site("a.test", "http://o.test/path"),
            "site.origin: expected",
        ),
        (
            site("main.test", "http://o.test"),
            "each name in one site only",
        ),
        (format!("{site_a}{rule}"), "site a.test: "),
    ] {
        let (code, message) = check(&main, &[("a.toml", &text)], &[]);
        assert_eq!(code, 2, "{message}");
        assert!(message.contains("/sites/a.toml: "), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    let main = main.replace('*', "missing");
    let (code, message) = check(&main, &[], &[]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("/sites/missing.toml"), "{message}");
}

#[test]
fn a_reload_reads_the_files_again() {
    let files = tempfile::tempdir().expect("create a folder");
    let folder = tempfile::tempdir().expect("create a folder");
    write(&folder.path().join("a"), "a");
    let origin = ServeProcess::start(folder.path(), &[]);
    let origin_url = format!("http://{}", origin.plain);
    let pattern = files.path().join("*.toml").display().to_string();
    let main = format!(
        "include = [{pattern:?}]\n[listen]\ntls = []\nplain = ['127.0.0.1:0']\n{}",
        site("main.test", &origin_url)
    );
    let accelerator = Accelerator::start(&main);
    let status = |host: &str| {
        let head = format!("GET /a HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let response = PendingResponse::begin(accelerator.plain(), head.as_bytes());
        response.end(usize::MAX).status
    };
    assert_eq!((status("main.test"), status("new.test")), (200, 421));
    let path = files.path().join("new.toml");
    write(&path, &site("new.test", &origin_url));
    accelerator.reload_unchanged();
    until("the new site is served", || status("new.test") == 200);
    write(&path, "[cache]\n");
    accelerator.reload_unchanged();
    let line = accelerator.line_with("cannot reload the configuration");
    assert!(line.contains("new.toml"), "{line}");
    assert_eq!(status("new.test"), 200);
}
