//! `spdy accelerate --check` finds all errors that a start finds before it opens anything, and reports them with the same text.

use crate::support::accelerator::program::{check, check_with};
use crate::support::program::spdy;

const SITE: &str = "[[site]]\nnames = ['a.test']\norigin = 'https://b.test'\n";
const ACME: &str = "[listen]\ntls = ['127.0.0.1:0']\n[tls.acme]\nterms_of_service_agreed = true\n";

#[test]
fn check_rejects_everything_that_a_start_rejects() {
    let folder = tempfile::tempdir().expect("create a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("write the file");
        format!("{path:?}")
    };
    let short = file("short", "short\n");
    let (secret, token) = (
        file("secret", &"s".repeat(32)),
        file("token", &"t".repeat(16)),
    );
    let acme = format!("{ACME}folder = {:?}\n", folder.path().join("acme"));
    let shared =
        format!("secret_file = {secret}\n[cache.shared]\nurls = ['rediss://127.0.0.1:1']\n");
    let admin = "[admin]\naddress = '127.0.0.1:0'\n";
    let zone = "[dns]\nlisten = ['127.0.0.1:0']\n[[dns.zone]]\napex = 'a.test'\n";
    let broken = file(
        "broken.pem",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    );
    let missing_file = "'/nowhere/at-all'";
    for (text, code, expected) in [
        (
            format!("{zone}name_servers = []\n"),
            2,
            "has no name server",
        ),
        (
            format!("{zone}name_servers = ['ns.a.test']\n"),
            2,
            "has no address there",
        ),
        (
            format!("{admin}token_file = {missing_file}\n"),
            2,
            "/nowhere/at-all",
        ),
        (
            format!("{admin}token_file = {short}\n"),
            2,
            "expected at least 16",
        ),
        (
            format!("[timing]\ntoken_file = {missing_file}\n"),
            2,
            "/nowhere/at-all",
        ),
        (
            format!("[timing]\ntoken_file = {short}\n"),
            2,
            "expected at least 16",
        ),
        (
            format!("[upstream]\nauthorities = [{missing_file}]\n"),
            2,
            "/nowhere/at-all",
        ),
        (
            format!("[upstream]\nauthorities = [{broken}]\n"),
            1,
            "broken.pem",
        ),
        (
            format!("{acme}authority = {missing_file}\n"),
            2,
            "/nowhere/at-all",
        ),
        (format!("{acme}authority = {broken}\n"), 1, "broken.pem"),
        (
            format!("{acme}external_account = {{ id = 'a', key_file = {missing_file} }}\n"),
            2,
            "/nowhere/at-all",
        ),
        (
            format!(
                "{acme}external_account = {{ id = 'a', key_file = {} }}\n",
                file("key", "?!")
            ),
            2,
            "expected base64url",
        ),
        (
            format!("{shared}authority = {missing_file}\n"),
            2,
            "/nowhere/at-all",
        ),
        (
            format!("{shared}authority = {broken}\n"),
            2,
            "cache.shared: invalid cluster configuration",
        ),
    ] {
        let text = format!("{text}{SITE}");
        let checked = check(&text);
        assert_eq!(checked.0, code, "{text}\n{}", checked.1);
        assert!(checked.1.contains(expected), "{text}\n{}", checked.1);
        let started = check_with(&mut spdy(&["accelerate"]), &text);
        assert_eq!(checked, started, "{text}");
    }
    let (code, message) = check(&format!(
        "{admin}token_file = {token}\n[timing]\ntoken_file = {token}\n{SITE}"
    ));
    assert_eq!((code, &*message), (0, "good: a.test\n"));
    assert!(
        !folder.path().join("acme").exists(),
        "a check creates no files"
    );
}
