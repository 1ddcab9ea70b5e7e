//! Headers of a page load as browsers send them and servers answer: made up, yet of the usual shape.
//!
//! One host, one page, its style sheets, scripts and images; cookies that stay; user agent and accept
//! lines of a browser of SPDY's time. The same on every call.

/// Names and values of one header block.
pub type Pairs = Vec<(String, String)>;

const AGENT: &str = "Mozilla/5.0 (Windows NT 6.1; WOW64) AppleWebKit/537.36 (KHTML, like Gecko) \
                     Chrome/32.0.1700.107 Safari/537.36";
const COOKIE: &str = "sid=9f86d081884c7d659a2feaa0c55ad015; lang=en-US; theme=light; \
                      _ga=GA1.2.1172930401.1391001234; seen=1";
const HOST: &str = "www.example.com";
const PAGE: &str = "/articles/2014/a-page-of-usual-size.html";

/// The kinds of resources: suffix, type, and the browser's `Accept`.
const KINDS: [(&str, &str, &str); 4] = [
    ("css", "text/css", "text/css,*/*;q=0.1"),
    ("js", "application/javascript", "*/*"),
    ("png", "image/png", "image/webp,*/*;q=0.8"),
    ("jpg", "image/jpeg", "image/webp,*/*;q=0.8"),
];

/// Path, type and accept line of the resource `number`; 0 is the page.
fn resource(number: usize) -> (String, &'static str, &'static str) {
    if number == 0 {
        let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8";
        return (PAGE.into(), "text/html; charset=utf-8", accept);
    }
    // A few sheets and scripts, then pictures, in folders with numbers as sites have them.
    let kind = match number {
        1..=4 => 0,
        5..=12 => 1,
        _ => 2 + number % 2,
    };
    let (suffix, content_type, accept) = KINDS[kind];
    let digest = number.wrapping_mul(0x9e37_79b1) & 0x00ff_ffff;
    (
        format!("/static/{suffix}/{digest:06x}/item-{number}.{suffix}"),
        content_type,
        accept,
    )
}

fn pairs(list: &[(&str, &str)]) -> Pairs {
    list.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// The requests of a page of `count` resources, in SPDY/3's names, with a cookie if `cookie`.
#[must_use]
pub fn requests(count: usize, cookie: bool) -> Vec<Pairs> {
    let request = |number| {
        let (path, _, accept) = resource(number);
        let mut block = pairs(&[
            (":host", HOST),
            (":method", "GET"),
            (":path", &path),
            (":scheme", "https"),
            (":version", "HTTP/1.1"),
            ("accept", accept),
            ("accept-encoding", "gzip,deflate,sdch"),
            ("accept-language", "en-US,en;q=0.8"),
        ]);
        if cookie {
            block.extend(pairs(&[("cookie", COOKIE)]));
        }
        if number > 0 {
            let referer = format!("https://{HOST}{PAGE}");
            block.extend(pairs(&[("referer", &referer)]));
        }
        block.extend(pairs(&[("user-agent", AGENT)]));
        block
    };
    (0..count).map(request).collect()
}

/// The responses to [`requests`].
#[must_use]
pub fn responses(count: usize) -> Vec<Pairs> {
    let response = |number: usize| {
        let (_, content_type, _) = resource(number);
        let length = (number.wrapping_mul(7919) % 40_000 + 200).to_string();
        let tag = format!("\"{:08x}\"", number.wrapping_mul(0x85eb_ca6b) & 0xffff_ffff);
        let date = format!(
            "Sat, 01 Feb 2014 10:{:02}:{:02} GMT",
            number / 60,
            number % 60
        );
        pairs(&[
            (":status", "200 OK"),
            (":version", "HTTP/1.1"),
            ("cache-control", "public, max-age=31536000"),
            ("content-length", &length),
            ("content-type", content_type),
            ("date", &date),
            ("etag", &tag),
            ("last-modified", "Fri, 24 Jan 2014 08:12:33 GMT"),
            ("server", "nginx/1.4.4"),
            ("vary", "Accept-Encoding"),
        ])
    };
    (0..count).map(response).collect()
}
