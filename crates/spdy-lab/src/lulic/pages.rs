//! The pages of Lulic 2013 by name: the flags page, and substitutes for three pages that were copied from the web.
//!
//! Those copies no longer exist. Lulic's results show the number of bytes that passed the pipe, and the round trips of
//! DOMContentLoaded and load (the slopes of the medians over the true round trip). A substitute is a page with HTTP's bytes and round
//! trips, by the simplest structure that has both:
//!
//! ```text
//! document ─► sheet ─► imported sheet ─► .. ─► a script at the end waits for all of them: DOMContentLoaded
//!    └──────► images, six at a time: load
//! ```
//!
//! We chose the number of resources, their sizes and their dependencies. Nothing was fitted to Lulic's load times, nor to any
//! measurement over HTTPS and SPDY: those test the substitutes.

use std::fmt::Write as _;

use spdy_page::head;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_sim::seed;
use url::Url;

use crate::lulic::Parameters;

/// The names, for [`page`].
pub const NAMES: [&str; 4] = ["lulic-flags", "lulic-bing", "lulic-yahoo", "lulic-amazon"];

/// Parameters of a substitute.
struct StandIn {
    name: &'static str,
    host: &'static str,
    /// Bytes of the document.
    document: usize,
    /// Number of style sheets, each imported by the one before.
    sheets: usize,
    /// Bytes of each sheet.
    sheet: usize,
    /// Bytes of the script at the end.
    script: usize,
    images: usize,
    /// Bytes of all images.
    image_bytes: usize,
}

const STAND_INS: [StandIn; 3] = [
    StandIn {
        name: "lulic-bing",
        host: "www.bing-stand-in.test",
        document: 15_500,
        sheets: 2,
        sheet: 2_000,
        script: 3_000,
        images: 19,
        image_bytes: 3_500,
    },
    StandIn {
        name: "lulic-yahoo",
        host: "login.yahoo-stand-in.test",
        document: 20_000,
        sheets: 6,
        sheet: 5_800,
        script: 60_000,
        images: 20,
        image_bytes: 252_000,
    },
    StandIn {
        name: "lulic-amazon",
        host: "www.amazon-stand-in.test",
        document: 120_000,
        sheets: 9,
        sheet: 16_666,
        script: 100_000,
        images: 110,
        image_bytes: 1_577_000,
    },
];

/// The page `name`; `None` if it does not exist.
#[must_use]
pub fn page(name: &str) -> Option<Replica> {
    if name == NAMES[0] {
        return Some(Parameters::FITTED.page());
    }
    let stand_in = STAND_INS.iter().find(|stand_in| stand_in.name == name)?;
    Some(stand_in.replica())
}

impl StandIn {
    fn replica(&self) -> Replica {
        let page = format!("http://{}/", self.host);
        let page = Url::parse(&page).expect("the address of a stand-in");
        let at = |path: &str| page.join(path).expect("a path of a stand-in");
        let exchange = |path: &str, kind, content_type, body: Vec<u8>| {
            exchange(&page, at(path), kind, content_type, body)
        };
        let mut exchanges = vec![exchange(
            "/",
            Kind::Document,
            "text/html; charset=utf-8",
            self.html(),
        )];
        for number in 0..self.sheets {
            let import = if number + 1 < self.sheets {
                format!("@import url(\"/css/{}.css\");\n", number + 1)
            } else {
                String::new()
            };
            let path = format!("/css/{number}.css");
            let text = filled(import, "/* ", " */\n", self.sheet);
            exchanges.push(exchange(&path, Kind::Stylesheet, "text/css", text));
        }
        let script = filled(String::new(), "/* ", " */\n", self.script);
        exchanges.push(exchange(
            "/js/page.js",
            Kind::Script,
            "application/javascript",
            script,
        ));
        for number in 0..self.images {
            let path = format!("/i/{number}.png");
            let body = noise(&path, self.image(number));
            exchanges.push(exchange(&path, Kind::Image, "image/png", body));
        }
        Replica {
            name: self.name.to_owned(),
            source: "a stand-in for a lost page of Lulic 2013: same bytes and round trips over HTTP, all else made for this project, \
                     MIT OR Apache-2.0"
                .to_owned(),
            start: 0,
            exchanges,
            recorded: None,
            dom_content_loaded: None,
            load: None,
            paints: spdy_page::replica::Paints::default(),
            failures: Vec::new(),
        }
    }

    fn html(&self) -> Vec<u8> {
        let mut html = String::from(
            "<!DOCTYPE html>\n<html><head><title>A stand-in</title>\n<link rel=\"stylesheet\" href=\"/css/0.css\"></head><body>\n",
        );
        for number in 0..self.images {
            let _ = writeln!(html, "<p><img src=\"/i/{number}.png\" alt=\"\"></p>"); // a String takes all
        }
        let end = "<script src=\"/js/page.js\"></script>\n</body></html>\n";
        let mut html = filled(html, "<!-- ", " -->\n", self.document - end.len());
        html.extend_from_slice(end.as_bytes());
        html
    }

    /// Bytes of an image: evenly from a quarter of the mean to seven quarters, with large ones between small ones.
    fn image(&self, number: usize) -> usize {
        let mean = self.image_bytes / self.images;
        let place = number * 7 % self.images;
        mean / 4 + mean * 3 / 2 * place / (self.images - 1)
    }
}

/// `text` with a comment that pads it to `len` bytes.
pub(crate) fn filled(mut text: String, open: &str, close: &str, len: usize) -> Vec<u8> {
    let room = len.checked_sub(text.len() + open.len() + close.len());
    let room = room.unwrap_or_else(|| panic!("{len} bytes are too few for the resource"));
    text.push_str(open);
    let words = noise(open, room);
    text.extend(words.iter().map(|byte| char::from(b'a' + byte % 26)));
    text.push_str(close);
    text.into_bytes()
}

/// The same `len` bytes for the same `name`, which header compression and codings cannot shorten.
pub(crate) fn noise(name: &str, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    let mut state = seed::derive(0, name);
    while bytes.len() < len {
        state = seed::derive(state, "");
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// A GET and its response, with the heads of a browser and a server of 2013.
pub(crate) fn exchange(
    page: &Url,
    url: Url,
    kind: Kind,
    content_type: &str,
    body: Vec<u8>,
) -> Exchange {
    let accept = match kind {
        Kind::Document => {
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"
        }
        Kind::Stylesheet => "text/css,*/*;q=0.1",
        Kind::Image => "image/webp,*/*;q=0.8",
        _ => "*/*",
    };
    let host = head::authority(&url);
    let mut request = vec![
        ("Host", host.as_str()),
        ("Connection", "keep-alive"),
        ("Accept", accept),
        (
            "User-Agent",
            "Mozilla/5.0 (X11; Linux i686) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/30.0.1599.66 Safari/537.36",
        ),
        ("Accept-Encoding", "gzip,deflate,sdch"),
        ("Accept-Language", "es-AR,es;q=0.8"),
    ];
    if url != *page {
        request.insert(4, ("Referer", page.as_str()));
    }
    let length = body.len().to_string();
    let response = [
        ("Date", "Mon, 14 Oct 2013 10:00:00 GMT"),
        ("Server", "Apache/2.2.22 (Ubuntu)"),
        ("Last-Modified", "Fri, 11 Oct 2013 08:21:07 GMT"),
        ("Accept-Ranges", "bytes"),
        ("Content-Length", length.as_str()),
        ("Content-Type", content_type),
    ];
    Exchange {
        request_head: head::synthesize(&format!("GET {} HTTP/1.1", head::target(&url)), request),
        response_head: head::synthesize("HTTP/1.1 200 OK", response),
        body: body.into(),
        initiator: Initiator::Unknown,
        ..Exchange::synthetic(url, kind, content_type, Vec::new())
    }
}
