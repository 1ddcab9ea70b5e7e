//! Reloads of the configuration while `spdy accelerate` runs: which keys take effect, and which are reported to need a restart.

use std::net::SocketAddr;

use spdy_testkit::wait::until;

use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::{PendingResponse, RawResponse};
use crate::support::program::ServeProcess;

/// The response for `target` at `host`, sent to `to` with `field`.
fn get_with_field(to: SocketAddr, host: &str, target: &str, field: &str) -> RawResponse {
    let head =
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{field}\r\n\r\n");
    PendingResponse::begin(to, head.as_bytes()).end(usize::MAX)
}

#[test]
fn a_reload_replaces_tokens_and_reports_restart_only_keys() {
    let folder = tempfile::tempdir().expect("create a folder");
    let site = folder.path().join("site");
    std::fs::create_dir(&site).expect("write the file");
    std::fs::write(site.join("a.txt"), "first").expect("write the file");
    let origin = ServeProcess::start(&site, &[]);
    let [first_token, second_token] = ["the first of tokens", "the second of tokens"];
    let token = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("write the file");
        path
    };
    let config = |admin: &str, timing: &str, extra_config: &str| {
        format!(
            "[listen]\nplain = ['127.0.0.1:0']\ntls = []\n[admin]\naddress = '127.0.0.1:0'\ntoken_file = {:?}\n\
             [timing]\ntoken_file = {:?}\n{extra_config}\n[[site]]\nnames = ['www.site.test']\norigin = 'http://{}'\n",
            token("admin", admin),
            token("timing", timing),
            origin.plain
        )
    };
    let accelerator = Accelerator::start(&config(first_token, second_token, ""));
    let (admin_address, plain_address) = (accelerator.admin(), accelerator.plain());
    let accepts = |admin: &str, timing: &str| {
        let field = format!("Authorization: Bearer {admin}");
        let pages = get_with_field(admin_address, "localhost", "/pages", &field);
        let field = format!("Spdy-Timing: {timing}");
        let response = get_with_field(plain_address, "www.site.test", "/a.txt", &field);
        (
            pages.status == 200,
            response.field("server-timing").is_some(),
        )
    };
    assert_eq!(accepts(first_token, second_token), (true, true));
    assert_eq!(accepts(second_token, first_token), (false, false));
    let metrics =
        || get_with_field(admin_address, "metrics.internal", "/metrics", "Accept: */*").status;
    assert_eq!(metrics(), 421);

    let retries = "[upstream]\nretries = 2";
    let new_config = config(second_token, first_token, retries)
        .replace("[admin]\n", "[admin]\nnames = ['metrics.internal']\n");
    accelerator.reload(&new_config);
    until("the new tokens are valid", || {
        accepts(second_token, first_token) == (true, true)
    });
    assert_eq!(
        accepts(first_token, second_token),
        (false, false),
        "the old tokens are invalid"
    );
    assert_eq!(metrics(), 200);
    let needs_restart = |line: &String| line.contains("takes effect only after a restart");
    assert_eq!(
        accelerator
            .log_lines()
            .iter()
            .find(|line| needs_restart(line)),
        None
    );

    let restart_only = "[cache]\nafter_cookies = true\n[learn]\npush = false";
    accelerator.reload(&config(second_token, first_token, restart_only));
    let line = accelerator.line_with("takes effect only after a restart");
    assert!(
        line.contains("cache.after_cookies, learn.push changed"),
        "{line}"
    );
}
