//! Host aliases: what `--check` reports about them.

use crate::support::program::{run_expecting, spdy};

const SITE: &str = "www.site.test";
const FRAMES: &str = "frames.other-d.test";
const ZONE: &str = "x.names-e.test";

#[test]
fn check_lists_aliases_and_missing_steps() {
    let folder = tempfile::tempdir().expect("create a folder");
    let (secret, config) = (
        folder.path().join("secret"),
        folder.path().join("site.toml"),
    );
    std::fs::write(&secret, [b'x'; 32]).expect("write the file");
    let text = |dns: &str| {
        format!(
            "secret_file = {secret:?}\n[[site]]\nnames = ['{SITE}']\norigin = 'https://origin.test'\n\
             [site.rewrite]\nnames_under = '{ZONE}'\n[[site.rewrite.hosts]]\nhost = '{FRAMES}'\nmode = 'name'\nkinds = ['document']\n{dns}"
        )
    };
    let check = |text: &str, options: &[&str]| {
        std::fs::write(&config, text).expect("write the file");
        let mut command = spdy(&["accelerate", "--check"]);
        let output = run_expecting(0, command.arg(&config).args(options));
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
        (stdout, stderr)
    };
    let (stdout, stderr) = check(&text(""), &[]);
    let (name, target) = stdout.trim().split_once(" stands for ").expect("one name");
    assert_eq!(target, format!("https://{FRAMES}"));
    assert!(name.ends_with(&format!(".{ZONE}")), "{name}");
    assert!(
        stderr.contains(&format!("{name} is not served by [dns]")),
        "{stderr}"
    );
    let dns = "[dns]\nlisten = ['127.0.0.1:0']\n\
               [[dns.zone]]\napex = 'site.test'\nname_servers = ['ns.origin.test']\n\
               [[dns.zone.names]]\nname = 'www'\naddresses = ['192.0.2.1']\n\
               [[dns.zone]]\napex = 'names-e.test'\nname_servers = ['ns.origin.test']\n";
    let (stdout, stderr) = check(&text(dns), &["--json"]);
    assert!(!stderr.contains("is not served by [dns]"), "{stderr}");
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["sites"][0], SITE);
    assert_eq!(report["names"][0]["name"], name, "the name in JSON");
    assert_eq!(report["names"][0]["has_dns_record"], true);
    assert!(report["names"][0]["is_in_certificate"].is_null());
}
