//! Attacks through the aliases of hosts in the operator's zone, over real sockets against the running program. A listener at a
//! denied address must get no connection.

use std::net::SocketAddr;

use crate::accelerate::abuse::proxied_urls::Canary;
use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::clients::raw_client::RawResponse;
use crate::support::origins::scripted::{
    OriginAddresses, OriginRequest, Origins, Step, complete_response,
};

const SITE: &str = "www.site.test";
const SECOND: &str = "www.second.test";
const PICTURES: &str = "pictures.test";
const ZONE: &str = "x.names-e.test";
const CLOSE: &str = "Connection: close\r\n\r\n";
const AS_IMAGE: &str =
    "Sec-Fetch-Dest: image\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Site: cross-site\r\n";

/// Both sites have this page. One of its images is on a host that resolves to the canary.
fn respond(request: &OriginRequest, addresses: &OriginAddresses, canary: SocketAddr) -> Vec<Step> {
    match (request.host, request.target.as_str()) {
        (SITE, "/") => {
            let page = format!(
                "<img src='{}/a.png'><img src='http://rebound.test:{}/a.png'>",
                addresses.origin(PICTURES),
                canary.port()
            );
            complete_response("200 OK\r\nContent-Type: text/html\r\n", page.as_bytes())
        }
        (PICTURES, "/a.png") => {
            complete_response("200 OK\r\nContent-Type: image/png\r\n", b"a picture")
        }
        (PICTURES, "/to-canary") => {
            complete_response(&format!("302 Found\r\nLocation: http://{canary}/\r\n"), b"")
        }
        (PICTURES, "/page") => {
            complete_response("200 OK\r\nContent-Type: text/html\r\n", b"<p>hello")
        }
        _ => complete_response("404 Not Found\r\nContent-Type: text/plain\r\n", b"no\n"),
    }
}

struct Setup {
    canary: Canary,
    origins: Origins,
    program: AcceleratedSite,
    /// The alias of the image host, for the first site.
    name: String,
    /// The alias of a host that resolves to the canary.
    rebound: String,
    /// The alias of the image host, for the second site.
    second_name: String,
}

impl Setup {
    fn start() -> Self {
        let canary = Canary::start();
        let canary_address = canary.address;
        let hosts = [(SITE, "http"), (PICTURES, "http")];
        let origins = Origins::start(&hosts, move |request, addresses| {
            respond(request, addresses, canary_address)
        });
        let (port, canary_port) = (
            origins.addresses.address(PICTURES).port(),
            canary_address.port(),
        );
        let folder = tempfile::tempdir().expect("create a folder");
        let secret = folder.path().join("secret");
        std::fs::write(&secret, [b'x'; 32]).expect("write the file");
        let named = |host: &str| {
            format!(
                "[[site.rewrite.hosts]]\nhost = '{host}'\nscheme = 'http'\nmode = 'name'\nkinds = ['image']\n"
            )
        };
        let hosts = [
            format!("{PICTURES}:{port}"),
            format!("rebound.test:{canary_port}"),
        ];
        let rewrite = format!(
            "[site.rewrite]\nnames_under = '{ZONE}'\n{}",
            hosts.map(|host| named(&host)).concat()
        );
        let site_origin = origins.addresses.origin(SITE);
        let program = AcceleratedSite::start(
            &origins,
            &Setting {
                // Without prefetches, so that the host only gets requests of the test's clients.
                top: &format!("secret_file = {secret:?}\n[learn]\nprefetch = false"),
                site: &format!(
                    "{rewrite}[[site]]\nnames = ['{SECOND}']\norigin = '{site_origin}'\naddress = '127.0.0.1'\n{rewrite}"
                ),
                upstream: &format!(
                    "allow_addresses = ['127.0.0.2/32']\nallow_ports = [{port}, {canary_port}]\n\
                     resolve = {{ '{PICTURES}' = '127.0.0.2', 'rebound.test' = '127.0.0.99' }}"
                ),
                ..Setting::default()
            },
        );
        let names = |site: &str| names_in(&program.get(site, "/", "").text());
        let ([name, rebound], [second_name, _]) = (names(SITE), names(SECOND));
        Self {
            canary,
            origins,
            program,
            name,
            rebound,
            second_name,
        }
    }

    /// Sends `message`; returns the response and the number of requests that the image host got.
    fn exchange(&self, message: &str) -> (RawResponse, usize) {
        let count_requests = |setup: &Self| {
            let requests = setup.origins.requests().into_iter();
            requests.filter(|request| request.host == PICTURES).count()
        };
        let requests_before = count_requests(self);
        let response = self.program.exchange(message.as_bytes());
        (response, count_requests(self) - requests_before)
    }
}

/// The aliases in the page, in order.
fn names_in(page: &str) -> [String; 2] {
    let mut parts = page.split("https://").skip(1).map(|part| {
        let end = part.find(ZONE).expect(page) + ZONE.len();
        part[..end].to_owned()
    });
    [(); 2].map(|()| parts.next().expect(page))
}

#[test]
fn aliases_accept_only_requests_that_a_page_would_make() {
    let setup = Setup::start();
    let (name, second) = (&setup.name, &setup.second_name);
    assert_ne!(name, second);
    let get = |host: &str, target: &str, fields: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{fields}{CLOSE}")
    };
    let by = |method: &str, fields: &str| {
        format!("{method} /a.png HTTP/1.1\r\nHost: {name}\r\n{fields}{CLOSE}")
    };
    let socket = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    for (what, message, statuses) in [
        (
            "an unknown label",
            get(&format!("aaaaaaaaaaaaaaaa.{ZONE}"), "/a.png", ""),
            &[421][..],
        ),
        ("a truncated label", get(&name[1..], "/a.png", ""), &[421]),
        (
            "an additional label",
            get(&format!("a.{name}"), "/a.png", ""),
            &[421],
        ),
        ("the zone", get(ZONE, "/a.png", ""), &[421]),
        (
            "only the label",
            get(name.split('.').next().expect("a label"), "/a.png", ""),
            &[421],
        ),
        ("the host itself", get(PICTURES, "/a.png", ""), &[421]),
        (
            "a dot at the end",
            get(&format!("{name}."), "/a.png", ""),
            &[421],
        ),
        (
            "a user before the name",
            get(&format!("{SITE}@{name}"), "/a.png", ""),
            &[400, 421],
        ),
        (
            "the name as a user",
            get(&format!("{name}@{SITE}"), "/a.png", ""),
            &[400, 421],
        ),
        (
            "two hosts",
            get(name, "/a.png", &format!("Host: {SITE}\r\n")),
            &[400],
        ),
        (
            // The host in the URL counts, not the Host field (RFC 9112 §3.2.2).
            "the site's absolute URL",
            get(name, &format!("http://{SITE}/nothing"), ""),
            &[404],
        ),
        (
            "another site's absolute URL",
            get(name, "http://evil.test/a.png", ""),
            &[400, 421],
        ),
        (
            "a proxied URL on the name",
            get(name, "/.spdy/1/-/p/pictures.test/a.png", ""),
            &[404],
        ),
        (
            "the name as a proxied URL",
            get(SITE, &format!("/.spdy/1/-/s/{name}/a.png"), ""),
            &[404],
        ),
        (
            "a backslash and another host",
            get(name, "/a.png\\@evil.test/", ""),
            &[400, 404],
        ),
        ("dots in its path", get(name, "/x/../a.png", ""), &[404]),
        (
            "a page",
            get(
                name,
                "/a.png",
                "Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n",
            ),
            &[404],
        ),
        (
            "a frame from an alias for images",
            get(
                name,
                "/a.png",
                "Sec-Fetch-Dest: iframe\r\nSec-Fetch-Mode: navigate\r\n",
            ),
            &[404],
        ),
        (
            "a service worker",
            get(name, "/a.png", "Service-Worker: script\r\n"),
            &[404],
        ),
        (
            "a URL entered by the user",
            get(name, "/a.png", "Sec-Fetch-Site: none\r\n"),
            &[404],
        ),
        (
            "a page of the second site",
            get(name, "/a.png", &format!("Origin: https://{SECOND}\r\n")),
            &[404],
        ),
        (
            "the other site's alias",
            get(second, "/a.png", &format!("Origin: https://{SITE}\r\n")),
            &[404],
        ),
        (
            "an unknown page",
            get(name, "/a.png", "Referer: https://evil.test/\r\n"),
            &[404],
        ),
        (
            "a loop",
            get(name, "/a.png", &format!("CDN-Loop: {SITE}\r\n")),
            &[404, 508],
        ),
        (
            "POST to an alias for images",
            by("POST", "Content-Length: 0\r\n"),
            &[405],
        ),
        ("DELETE", by("DELETE", ""), &[405]),
        ("TRACE", by("TRACE", ""), &[405, 501]),
        (
            "CONNECT",
            format!("CONNECT {name}:443 HTTP/1.1\r\nHost: {name}\r\n{CLOSE}"),
            &[400, 404, 405, 501],
        ),
        (
            "GET with a body",
            by("GET", "Content-Length: 3\r\n"),
            &[404],
        ),
        (
            "a WebSocket",
            get(name, "/a.png", socket).replace("Connection: close", "Connection: Upgrade"),
            &[404],
        ),
    ] {
        let (response, forwarded_requests) = setup.exchange(&message);
        assert!(
            statuses.contains(&response.status),
            "{what}: expected {statuses:?}, found {:?} {}",
            response.head,
            response.text()
        );
        assert_eq!(forwarded_requests, 0, "{what}: its host got a request");
    }
    let absolute_url = format!("http://{name}/a.png");
    for (host, target) in [
        (name.clone(), "/a.png"),
        (name.to_ascii_uppercase(), "/a.png"),
        (format!("{name}:1"), "/a.png"),
        (SITE.to_owned(), &absolute_url),
    ] {
        let (response, _) = setup.exchange(&get(&host, target, AS_IMAGE));
        assert_eq!(
            (response.status, response.text()),
            (200, "a picture".to_owned()),
            "{host}"
        );
    }
    assert_eq!(setup.canary.connections(), 0);
}

#[test]
fn an_aliased_host_cannot_redirect_the_accelerator() {
    let setup = Setup::start();
    let name = &setup.name;
    let response = setup.program.get(name, "/to-canary", "");
    assert_eq!(response.status, 404, "an open redirect: {}", response.head);
    let page = setup.program.get(name, "/to-canary", AS_IMAGE);
    let to = format!("http://{}/", setup.canary.address);
    assert_eq!((page.status, page.field("location")), (302, Some(to)));
    for fields in ["", AS_IMAGE] {
        let response = setup.program.get(name, "/page", fields);
        assert_eq!(
            (response.status, response.text()),
            (404, String::new()),
            "a page"
        );
        let response = setup.program.get(&setup.rebound, "/a.png", fields);
        assert_eq!(response.status, 502, "{}", response.head);
        assert!(
            !response.text().contains("127.0.0.99"),
            "{}",
            response.text()
        );
    }
    assert_eq!(setup.canary.connections(), 0);
}
