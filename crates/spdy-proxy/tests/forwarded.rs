//! Behind another proxy: who is believed of the client, and what the origin and the client are told then. In time that stands.

#[path = "support/wire.rs"]
mod wire;

use wire::{Between, head, write};

const TOLD: &str = "X-Forwarded-For: 198.51.100.1, 203.0.113.7\r\nX-Forwarded-Proto: https\r\n";

/// What the origin and the client have of a redirect to the origin's own name, as one text in lower case, with `listen` in the configuration.
async fn told(listen: &str) -> String {
    let listen = format!("[listen]\ntls = []\nplain = ['0.0.0.0:8080']\n{listen}\n");
    let mut between = Between::start(&listen);
    let (mut client, _) = between.client();
    let request = format!("GET /a HTTP/1.1\r\nHost: www.site.test\r\n{TOLD}\r\n");
    write(&mut client, &request).await;
    let mut origin = between.asked().await;
    let asked = head(&mut origin).await;
    let there = "Location: http://origin.test:8000/b\r\nContent-Length: 0";
    write(
        &mut origin,
        &format!("HTTP/1.1 302 Found\r\n{there}\r\n\r\n"),
    )
    .await;
    let (answer, _) = between.wait(head(&mut client)).await;
    [asked, answer].concat().to_ascii_lowercase()
}

/// A site that wants https redirected for ever.
#[tokio::test]
async fn who_is_trusted_says_who_asked_and_whether_over_tls() {
    let told = told("trusted = ['192.0.2.0/24']").await;
    for line in [
        "x-forwarded-proto: https",
        "x-forwarded-for: 203.0.113.7",
        "location: https://www.site.test/b",
    ] {
        assert!(told.contains(&format!("\r\n{line}\r\n")), "{line}: {told}");
    }
}

#[tokio::test]
async fn who_is_not_is_the_client_whatever_it_says() {
    for listen in ["", "trusted = ['203.0.113.7', '10.0.0.0/8']"] {
        let told = told(listen).await;
        for line in [
            "x-forwarded-proto: http",
            "x-forwarded-for: 192.0.2.1",
            "location: http://www.site.test/b",
        ] {
            assert!(told.contains(&format!("\r\n{line}\r\n")), "{line}: {told}");
        }
    }
}
