//! Behind another proxy: which proxies are trusted for the client's address, and what the origin and the client receive. In virtual time.

use http::{Request, Response};
use spdy::body::Body;
use tokio::io::AsyncReadExt as _;

use crate::support::wire::{Between, head, write};

const FORWARDED: &str =
    "X-Forwarded-For: 198.51.100.1, 203.0.113.7\r\nX-Forwarded-Proto: https\r\n";

/// What the origin and the client have of a redirect to the origin's own name, as one text in lower case, with `listen` in the configuration.
async fn redirect_heads(listen: &str) -> String {
    let listen = format!("[listen]\ntls = []\nplain = ['0.0.0.0:8080']\n{listen}\n");
    let mut between = Between::start(&listen);
    let (mut client, _) = between.client();
    let request = format!("GET /a HTTP/1.1\r\nHost: www.site.test\r\n{FORWARDED}\r\n");
    write(&mut client, &request).await;
    let mut origin = between.next_connection().await;
    let request_head = head(&mut origin).await;
    let fields = "Location: http://origin.test:8000/b\r\nContent-Length: 0";
    write(
        &mut origin,
        &format!("HTTP/1.1 302 Found\r\n{fields}\r\n\r\n"),
    )
    .await;
    let (response_head, _) = between.wait(head(&mut client)).await;
    [request_head, response_head].concat().to_ascii_lowercase()
}

/// Regression: a site that requires https redirected for ever.
#[tokio::test]
async fn trusted_proxy_sets_client_and_scheme() {
    let heads = redirect_heads("trusted = ['192.0.2.0/24']").await;
    for line in [
        "x-forwarded-proto: https",
        "x-forwarded-for: 203.0.113.7",
        "location: https://www.site.test/b",
    ] {
        assert!(
            heads.contains(&format!("\r\n{line}\r\n")),
            "{line}: {heads}"
        );
    }
}

#[tokio::test]
async fn untrusted_forwarded_headers_are_ignored() {
    for listen in ["", "trusted = ['203.0.113.7', '10.0.0.0/8']"] {
        let heads = redirect_heads(listen).await;
        for line in [
            "x-forwarded-proto: http",
            "x-forwarded-for: 192.0.2.1",
            "location: http://www.site.test/b",
        ] {
            assert!(
                heads.contains(&format!("\r\n{line}\r\n")),
                "{line}: {heads}"
            );
        }
    }
}

/// Regression: it reached the origin. The URI of `*` has no path (RFC 9110 §7.1).
#[tokio::test]
async fn options_without_a_path_is_redirected_to_tls_as_well() {
    let listen = "[listen]\ntls = ['0.0.0.0:8443']\nplain = ['0.0.0.0:8080']\n";
    let mut between = Between::start(&format!("{listen}---redirect_to_https = true\n"));
    between.serve_origin(|_: Request<Body>| async { Response::new(Body::from("origin")) });
    let (mut client, _) = between.client();
    write(
        &mut client,
        "OPTIONS * HTTP/1.1\r\nHost: www.site.test\r\n\r\n",
    )
    .await;
    let answered = between.wait(head(&mut client)).await.0;
    let response = answered.to_ascii_lowercase();
    assert!(response.starts_with("http/1.1 308"), "{response}");
    assert!(
        response.contains("\r\nlocation: https://www.site.test:8443\r\n"),
        "{response}"
    );
}

/// The head that the origin receives of a request with `fields` and `listen` in the configuration, in lower case.
async fn origin_head(listen: &str, request_line: &str, fields: &str) -> String {
    let listen = format!("[listen]\ntls = []\nplain = ['0.0.0.0:8080']\n{listen}\n");
    let mut between = Between::start(&listen);
    let (mut client, _) = between.client();
    let request = format!("{request_line}\r\nHost: www.site.test\r\n{fields}\r\n");
    write(&mut client, &request).await;
    let mut origin = between.next_connection().await;
    head(&mut origin).await.to_ascii_lowercase()
}

/// Fields by which a client claims another address, host or target, and what none of them may bring to the origin.
const FORGED: &str = "Proxy: http://forged.test\r\nTrue-Client-IP: 6.6.6.6\r\nCF-Connecting-IP: 6.6.6.6\r\n\
    X-Client-IP: 6.6.6.6\r\nX-Cluster-Client-IP: 6.6.6.6\r\nX-HTTP-Host-Override: forged.test\r\n\
    X-Real-IP: 6.6.6.6\r\nX-ProxyUser-Ip: 6.6.6.6\r\nFastly-Client-IP: 6.6.6.6\r\nFly-Client-IP: 6.6.6.6\r\n\
    X-Forwarded-Server: forged.test\r\nX-Host: forged.test\r\nForwarded: for=6.6.6.6\r\n\
    X-Original-URL: /forged\r\nX-Rewrite-URL: /forged\r\nTrue_Client_IP: 6.6.6.6\r\n\
    X.Real.IP: 6.6.6.6\r\nX!Forwarded!For: 6.6.6.6\r\nIncap-Client-IP: 6.6.6.6\r\n\
    X-Original-Forwarded-For: 6.6.6.6\r\nX-SSL: forged\r\nRemote.User: forged\r\nX-Auth~Request-User: forged\r\n";

#[tokio::test]
async fn forged_headers_do_not_reach_the_origin() {
    for listen in ["", "trusted = ['192.0.2.0/24']"] {
        for line in ["GET /a HTTP/1.1", "POST /a HTTP/1.1\r\nContent-Length: 0"] {
            let head = origin_head(listen, line, FORGED).await;
            assert!(
                !head.contains("6.6.6.6") && !head.contains("forged"),
                "{listen} {line}: {head}"
            );
        }
    }
}

#[tokio::test]
async fn trusted_proxy_may_use_its_own_client_ip_header() {
    let fields = "X-Forwarded-For: 203.0.113.7\r\nCF-Connecting-IP: 203.0.113.7\r\nClient-Cert: :AA==:\r\n\
         Remote-User: alice\r\nX-SSL-Client-Verify: SUCCESS\r\nX-Forwarded-User: alice\r\nX-SSL-Client: 1\r\n\
         X-Client-Verify: SUCCESS\r\nX-Client-DN: CN=alice\r\nX-TLS-Client-DN: CN=alice\r\nSSL-Cert: AA\r\n\
         X-Client-SSL-Verify: 0\r\n";
    for (listen, expected) in [("", false), ("trusted = ['192.0.2.0/24']", true)] {
        let request_head = origin_head(listen, "GET /a HTTP/1.1", fields).await;
        for field in [
            "cf-connecting-ip: 203.0.113.7",
            "client-cert: :aa==:",
            "remote-user: alice",
            "x-ssl-client-verify: success",
            "x-forwarded-user: alice",
            "x-ssl-client: 1",
            "x-client-verify: success",
            "x-client-dn: cn=alice",
            "x-tls-client-dn: cn=alice",
            "ssl-cert: aa",
            "x-client-ssl-verify: 0",
        ] {
            assert_eq!(
                request_head.contains(field),
                expected,
                "{field}, {listen:?}: {request_head}"
            );
        }
    }
}

/// The answer may be for that user: an authenticating proxy stands in front, and the only cache directive is `max-age`.
#[tokio::test]
async fn response_to_proxy_identified_user_is_stored_only_if_public() {
    let trusted = "[listen]\ntls = []\nplain = ['0.0.0.0:8080']\ntrusted = ['192.0.2.0/24']\n";
    let alice = "X-Forwarded-For: 203.0.113.7\r\nRemote-User: alice\r\n";
    let anonymous = "X-Forwarded-For: 203.0.113.7\r\n";
    for (fields, control, is_stored) in [
        (alice, "max-age=60", false),
        (alice, "public, max-age=60", true),
        (anonymous, "max-age=60", true),
    ] {
        let mut between = Between::start(trusted);
        let (mut client, _) = between.client();
        let request =
            |fields: &str| format!("GET /me HTTP/1.1\r\nHost: www.site.test\r\n{fields}\r\n");
        write(&mut client, &request(fields)).await;
        let mut origin = between.next_connection().await;
        head(&mut origin).await;
        let response = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: {control}\r\nContent-Length: 5\r\n\r\nalice"
        );
        write(&mut origin, &response).await;
        between.wait(head(&mut client)).await;
        client.read_exact(&mut [0; 5]).await.expect("the body");
        write(&mut client, &request(anonymous)).await;
        let is_hit = tokio::select! {
            biased;
            (response, _) = between.wait(head(&mut client)) => response.contains("hit"),
            _ = head(&mut origin) => false,
        };
        assert_eq!(is_hit, is_stored, "{fields} {control}");
    }
}
