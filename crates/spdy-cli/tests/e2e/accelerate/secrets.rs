//! Rotates the secret of capability URLs while the accelerator runs: URLs of the previous secret still work.

use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::origins::scripted::{Origins, complete_response};

const SITE: &str = "www.site.test";
const CDN: &str = "cdn.test";

/// A page with a script on a host that many sites share, so its URL has a capability.
fn origins() -> Origins {
    Origins::start(
        &[(SITE, "http"), (CDN, "https")],
        |request, addresses| match request.host {
            SITE => {
                let cdn = addresses.origin(CDN);
                let page = format!("<!doctype html><script src=\"{cdn}/a.js\"></script>");
                complete_response(
                    "200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=600\r\n",
                    page.as_bytes(),
                )
            }
            _ => complete_response(
                "200 OK\r\nContent-Type: text/javascript\r\nCache-Control: max-age=600\r\n",
                b"1",
            ),
        },
    )
}

/// The URL of the script in the page.
fn script_url(accelerated_site: &AcceleratedSite) -> String {
    let page = accelerated_site.get(SITE, "/", "").text();
    let at = page.find("/.spdy/1/u").expect("the script is proxied");
    let end = page[at..].find('"').expect("the attribute ends");
    page[at..at + end].to_owned()
}

fn status(accelerated_site: &AcceleratedSite, target: &str) -> u16 {
    accelerated_site.get(SITE, target, "").status
}

#[test]
fn urls_of_the_previous_secret_work_until_it_is_removed() {
    let origins = origins();
    let folder = tempfile::tempdir().expect("create a folder");
    let [current, former] = ["secret", "former"].map(|name| folder.path().join(name));
    let rotate = |now: u8| {
        std::fs::write(&former, [now - 1; 32]).expect("write the test's file");
        std::fs::write(&current, [now; 32]).expect("write the test's file");
    };
    rotate(1);
    let accelerated_site = AcceleratedSite::start(
        &origins,
        &Setting {
            top: &format!("secret_file = {current:?}\nformer_secret_file = {former:?}"),
            site: &format!(
                "[[site.rewrite.hosts]]\nhost = '{CDN}:{}'\nkinds = ['script']\nshared = true\n",
                origins.addresses.address(CDN).port()
            ),
            upstream: "allow_addresses = ['127.0.0.0/8']",
            ..Setting::default()
        },
    );
    let pages = || {
        let requests = origins.requests();
        requests
            .iter()
            .filter(|request| request.host == SITE)
            .count()
    };
    let first = script_url(&accelerated_site);
    assert_eq!(first, script_url(&accelerated_site));
    assert_eq!((status(&accelerated_site, &first), pages()), (200, 1));

    rotate(2);
    accelerated_site.reload();
    let second = script_url(&accelerated_site);
    assert_eq!(pages(), 2, "a page of the former secret is not served");
    let at = "/.spdy/1/u".len();
    let [first_parts, second_parts] = [&first, &second].map(|url| url[at..].split_at(1));
    assert_ne!(first_parts.1, second_parts.1, "URLs of different secrets");
    // The key ID does not matter: another build may name the keys differently.
    let renamed = [
        (second_parts.0, first_parts.1),
        (first_parts.0, second_parts.1),
    ];
    let renamed = renamed.map(|(key_id, rest)| format!("/.spdy/1/u{key_id}{rest}"));
    for url in [&first, &second, &renamed[0], &renamed[1]] {
        assert_eq!(status(&accelerated_site, url), 200, "{url}");
    }
    let forged = [
        first.replace("/a.js", "/b.js"),
        second.replace("/a.js", "/b.js"),
    ];
    for forged in &forged {
        assert_eq!(status(&accelerated_site, forged), 404, "{forged}");
    }

    rotate(3);
    accelerated_site.reload();
    assert_eq!(status(&accelerated_site, &first), 404, "its secret is gone");
    assert_eq!(status(&accelerated_site, &second), 200);
    let requests = origins.requests();
    let request = requests.iter().find(|request| request.target == "/b.js");
    assert!(request.is_none(), "{request:?}");
}
