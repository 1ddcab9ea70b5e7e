//! Creates the replicas that are part of the program: `replicas/flags.warc.gz` and `replicas/portal.warc.gz`.
//!
//! ```text
//! npm pack famfamfam-flags@1.0.0 && tar xzf famfamfam-flags-1.0.0.tgz
//! cargo run -p spdy-page --example make_builtins -- package/dist/png crates/spdy-page/replicas
//! ```
//!
//! The same flags give the same files, byte for byte. The author of the flags put them in the public domain; everything else is
//! generated here from a fixed seed.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use spdy_page::graph::{PageGraph, Trigger};
use spdy_page::observation::Observation;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_page::{coding, head};
use url::Url;

/// Flags on the page: with the document, the 197 resources of the page that Lulic measured in 2013.
const FLAGS: usize = 196;

/// Omitted flags: three that others drew under their own terms, and territories until [`FLAGS`] remain.
const OMITTED_FLAGS: [&str; 47] = [
    "gg", "je", "mm", "ai", "an", "as", "aw", "ax", "bm", "bv", "cc", "ck", "cs", "cx", "eh", "fk",
    "fo", "gf", "gi", "gl", "gp", "gs", "gu", "hk", "hm", "io", "ky", "mo", "mp", "mq", "ms", "nc",
    "nf", "nu", "pf", "pm", "pn", "re", "sh", "sj", "tc", "tf", "tk", "um", "vg", "vi", "yt",
];

/// Bytes of all bodies of the portal, as transferred.
const PORTAL_BYTES: usize = 320_000;

/// Images of the portal; with the document and a style sheet, 44 resources.
const PORTAL_IMAGES: usize = 42;

const FLAGS_HOST: &str = "www.world-flags.test";

/// The document and the style sheet are on the first.
const PORTAL_HOSTS: [&str; 7] = [
    "www.portal.test",
    "img.portal.test",
    "thumbs.portal.test",
    "static.portal-cdn.test",
    "media.newswire.test",
    "ads.banner-house.test",
    "pixel.counter.test",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(flags), Some(out)) = (arguments.next(), arguments.next()) else {
        return Err("usage: make_builtins <directory of the flags> <output directory>".into());
    };
    for replica in [make_flags(Path::new(&flags))?, make_portal()] {
        let bytes: usize = replica
            .exchanges
            .iter()
            .map(|exchange| exchange.body.len())
            .sum();
        let file = spdy_page::archive::encode(&replica, true);
        let path = Path::new(&out).join(format!("{}.warc.gz", replica.name));
        std::fs::write(&path, &file)?;
        let heads = |pick: fn(&Exchange) -> usize| {
            replica.exchanges.iter().map(pick).sum::<usize>() / replica.exchanges.len()
        };
        writeln!(
            std::io::stdout(),
            "{}: {} exchanges on {} hosts, bodies {bytes} bytes (document {}), heads {} and {} bytes on average, file {}",
            path.display(),
            replica.exchanges.len(),
            replica.hosts().len(),
            replica.document().body.len(),
            heads(|exchange| exchange.request_head.len()),
            heads(|exchange| exchange.response_head.len()),
            file.len(),
        )?;
    }
    Ok(())
}

fn make_flags(directory: &Path) -> Result<Replica, Box<dyn std::error::Error>> {
    let mut codes = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let code = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default()
            .to_owned();
        if code.len() == 2 && !OMITTED_FLAGS.contains(&code.as_str()) {
            codes.push(code);
        }
    }
    codes.sort();
    if codes.len() < FLAGS {
        return Err(format!(
            "found {} flags in {}, expected {FLAGS}",
            codes.len(),
            directory.display()
        )
        .into());
    }
    codes.truncate(FLAGS);
    let mut html = String::from(
        "<!DOCTYPE html>\n<html><head><title>Flags of the world</title></head>\n<body><h1>Flags of the world</h1>\n",
    );
    for code in &codes {
        html.push_str(&format!(
            "<p><img src=\"/png/{code}.png\" alt=\"{}\"></p>\n",
            code.to_ascii_uppercase()
        ));
    }
    html.push_str("</body></html>\n");

    let page = Url::parse(&format!("http://{FLAGS_HOST}/"))?;
    let mut exchanges = vec![document(&page, &html, 10)];
    for code in &codes {
        let body = std::fs::read(directory.join(format!("{code}.png")))?;
        exchanges.push(image(
            &page,
            page.join(&format!("/png/{code}.png"))?,
            body,
            10,
        ));
    }
    let source = "famfamfam flag icons by Mark James (http://www.famfamfam.com), public domain, free for any use, as \
                  packed in npm famfamfam-flags 1.0.0, without gg, je and mm, which others drew; page and heads made \
                  for this project, MIT OR Apache-2.0";
    Ok(finish("flags", source, exchanges))
}

fn make_portal() -> Replica {
    let page = Url::parse(&format!("http://{}/", PORTAL_HOSTS[0]))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut chance = Chance(0x5eed_0320_0044_0007);
    let images: Vec<String> = (0..PORTAL_IMAGES)
        .map(|number| {
            let host = PORTAL_HOSTS[host_of_image(number)];
            let name = [
                "logo", "teaser", "photo", "thumb", "banner", "icon", "chart",
            ][chance.below(7)];
            format!("http://{host}/i/{name}-{number:02}.png")
        })
        .collect();
    let html = portal_html(&images, &mut chance);
    let css = portal_css(&mut chance);

    let mut exchanges = vec![document(&page, &html, 20), stylesheet(&page, &css)];
    let used_bytes: usize = exchanges.iter().map(|exchange| exchange.body.len()).sum();
    // Sizes as on the web: many small images, and a few that make up most of the bytes.
    let weights: Vec<f64> = (0..PORTAL_IMAGES)
        .map(|_| (chance.unit() * 2.2 - 1.1).exp().powi(2))
        .collect();
    let total: f64 = weights.iter().sum();
    let share = (PORTAL_BYTES - used_bytes) as f64 / total;
    for ((number, url), weight) in images.iter().enumerate().zip(&weights) {
        let size = ((weight * share) as usize).max(120);
        let url = Url::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        let address = 20 + host_of_image(number) as u8;
        exchanges.push(image(&page, url, png(size, &mut chance), address));
    }
    let source = "made for this project after the page of Mineki et al., SPDY accelerator (42 images on 7 hosts, a style \
                  sheet and a document, 320 kB), MIT OR Apache-2.0";
    finish("portal", source, exchanges)
}

/// Six images for each host, assigned in turn.
fn host_of_image(number: usize) -> usize {
    number % PORTAL_HOSTS.len()
}

/// Builds a replica, with initiators by its texts.
fn finish(name: &str, source: &str, exchanges: Vec<Exchange>) -> Replica {
    let recorded = "2013-06-04T10:00:00Z"
        .parse()
        .unwrap_or_else(|error| panic!("{error}"));
    let mut replica = Replica {
        name: name.to_owned(),
        source: source.to_owned(),
        start: 0,
        exchanges,
        recorded: Some(recorded),
        dom_content_loaded: None,
        load: None,
        paints: spdy_page::replica::Paints::default(),
        failures: Vec::new(),
    };
    let graph = PageGraph::of(&replica);
    for node in &graph.nodes {
        replica.exchanges[node.exchange].initiator = match node.trigger {
            Trigger::Start => Initiator::Navigation,
            Trigger::Bytes { parent, at_byte } => Initiator::Resource {
                index: graph.nodes[parent].exchange,
                at_byte: Some(at_byte),
            },
            Trigger::Done { parent } => Initiator::Resource {
                index: graph.nodes[parent].exchange,
                at_byte: None,
            },
        };
    }
    replica
}

fn document(page: &Url, html: &str, address: u8) -> Exchange {
    let body =
        coding::encode(html.as_bytes(), "gzip", None).unwrap_or_else(|error| panic!("{error}"));
    let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    exchange(
        page,
        page.clone(),
        Kind::Document,
        accept,
        "text/html; charset=utf-8",
        Some("gzip"),
        body,
        address,
    )
}

fn stylesheet(page: &Url, css: &str) -> Exchange {
    let body =
        coding::encode(css.as_bytes(), "gzip", None).unwrap_or_else(|error| panic!("{error}"));
    let url = page
        .join("/css/portal.css")
        .unwrap_or_else(|error| panic!("{error}"));
    exchange(
        page,
        url,
        Kind::Stylesheet,
        "text/css,*/*;q=0.1",
        "text/css",
        Some("gzip"),
        body,
        20,
    )
}

fn image(page: &Url, url: Url, body: Vec<u8>, address: u8) -> Exchange {
    exchange(
        page,
        url,
        Kind::Image,
        "image/webp,*/*;q=0.8",
        "image/png",
        None,
        body,
        address,
    )
}

/// An exchange with the heads of a browser and a server of 2013.
#[expect(
    clippy::too_many_arguments,
    reason = "one row of a table, called from three places above"
)]
fn exchange(
    page: &Url,
    url: Url,
    kind: Kind,
    accept: &str,
    content_type: &str,
    content_encoding: Option<&str>,
    body: Vec<u8>,
    address: u8,
) -> Exchange {
    let host = head::authority(&url);
    // Chrome 27, reloading: its fields, in its order.
    let agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/27.0.1453.93 Safari/537.36";
    let mut request = vec![
        ("Host", host.as_str()),
        ("Connection", "keep-alive"),
        ("Accept", accept),
        ("User-Agent", agent),
        ("Accept-Encoding", "gzip,deflate,sdch"),
        ("Accept-Language", "en-US,en;q=0.8"),
    ];
    if url != *page {
        request.insert(4, ("Referer", page.as_str()));
    }
    let length = body.len().to_string();
    let mut response = vec![
        ("Date", "Tue, 04 Jun 2013 10:00:00 GMT"),
        ("Server", "Apache/2.2.22 (Ubuntu) PHP/5.3.10"),
        ("Last-Modified", "Mon, 03 Jun 2013 08:21:07 GMT"),
        ("Accept-Ranges", "bytes"),
        ("Content-Length", length.as_str()),
        ("Content-Type", content_type),
    ];
    if let Some(coding) = content_encoding {
        response.splice(
            4..4,
            [("Vary", "Accept-Encoding"), ("Content-Encoding", coding)],
        );
    }
    Exchange {
        method: http::Method::GET,
        address: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, address))),
        request_head: head::synthesize(&format!("GET {} HTTP/1.1", head::target(&url)), request),
        response_head: head::synthesize("HTTP/1.1 200 OK", response),
        body: body.into(),
        body_is_real: true,
        kind,
        initiator: Initiator::Unknown,
        started: None,
        queued: None,
        wait: None,
        receive: None,
        observed: Observation::default(),
        url,
    }
}

fn portal_html(images: &[String], chance: &mut Chance) -> String {
    let mut html = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>The Portal</title>\n",
    );
    html.push_str(
        "<link rel=\"stylesheet\" href=\"/css/portal.css\"></head>\n<body>\n<h1>The Portal</h1>\n",
    );
    for (number, image) in images.iter().enumerate() {
        html.push_str(&format!(
            "<div class=\"box b{}\"><h2>{}</h2>\n",
            number % 9,
            sentence(chance, 5)
        ));
        html.push_str(&format!(
            "<a href=\"/story/{number}\"><img src=\"{image}\" alt=\"{}\"></a>\n",
            sentence(chance, 3)
        ));
        for _ in 0..2 {
            html.push_str(&format!("<p>{}.</p>\n", sentence(chance, 28)));
        }
        html.push_str("</div>\n");
    }
    html.push_str("</body></html>\n");
    html
}

fn portal_css(chance: &mut Chance) -> String {
    let mut css =
        String::from("body { margin: 0; font: 13px/1.5 Arial, sans-serif; color: #222 }\n");
    for rule in 0..220 {
        let [width, margin, padding] = [chance.below(900), chance.below(40), chance.below(24)];
        let color = chance.below(0x100_0000);
        css.push_str(&format!(
            ".{}-{rule} {{ width: {width}px; margin: {margin}px; padding: {padding}px; color: #{color:06x} }}\n",
            WORDS[chance.below(WORDS.len())]
        ));
    }
    css
}

const WORDS: [&str; 48] = [
    "harbour", "morning", "council", "bridge", "record", "station", "garden", "market", "winter",
    "signal", "teacher", "window", "railway", "letter", "mountain", "river", "engine", "island",
    "paper", "summer", "museum", "factory", "ticket", "village", "weather", "driver", "concert",
    "budget", "library", "orchard", "opens", "closes", "reports", "finds", "plans", "moves",
    "again", "slowly", "nearly", "before", "after", "under", "the", "a", "its", "every", "new",
    "old",
];

fn sentence(chance: &mut Chance, words: usize) -> String {
    let words: Vec<_> = (0..words)
        .map(|_| WORDS[chance.below(WORDS.len())])
        .collect();
    words.join(" ")
}

/// A valid PNG of exactly `size` bytes: coloured noise, stored uncompressed, and a comment as filler.
fn png(size: usize, chance: &mut Chance) -> Vec<u8> {
    const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
    const CHUNK: usize = 12;
    // Bytes of the file without its rows: signature, IHDR, IDAT, IEND, zlib's header and checksum.
    let fixed = SIGNATURE.len() + CHUNK * 3 + 13 + 6;
    let comment = b"Comment\0";
    let room = size.saturating_sub(fixed + CHUNK + comment.len());
    let width = ((room as f64 / 3.0).sqrt() as usize).clamp(1, 512);
    let row = 1 + 3 * width;
    let block = |raw: usize| raw + 5 * raw.div_ceil(0xffff);
    let mut height = room / row;
    while height > 1 && block(height * row) > room {
        height -= 1;
    }
    let height = height.max(1);
    let tint = [chance.below(256), chance.below(256), chance.below(256)];
    let mut rows = Vec::with_capacity(height * row);
    for _ in 0..height {
        // The row's filter: none.
        rows.extend([0]);
        for _ in 0..width {
            rows.extend(tint.map(|base| (base as u8).wrapping_add(chance.below(97) as u8)));
        }
    }
    let mut header = Vec::new();
    header.extend_from_slice(&(width as u32).to_be_bytes());
    header.extend_from_slice(&(height as u32).to_be_bytes());
    header.extend_from_slice(&[8, 2, 0, 0, 0]);

    let mut file = SIGNATURE.to_vec();
    push_chunk(&mut file, b"IHDR", &header);
    let data = zlib_stored(&rows);
    let used = file.len() + CHUNK + data.len() + CHUNK;
    let filler_len = size
        .checked_sub(used + CHUNK + comment.len())
        .unwrap_or_else(|| panic!("{size} bytes are too few for a PNG"));
    let text: Vec<u8> = comment
        .iter()
        .copied()
        .chain((0..filler_len).map(|_| b'a' + chance.below(26) as u8))
        .collect();
    push_chunk(&mut file, b"tEXt", &text);
    push_chunk(&mut file, b"IDAT", &data);
    push_chunk(&mut file, b"IEND", &[]);
    assert_eq!(file.len(), size);
    file
}

fn push_chunk(file: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    file.extend_from_slice(&(data.len() as u32).to_be_bytes());
    let mut sum = flate2::Crc::new();
    sum.update(kind);
    sum.update(data);
    file.extend_from_slice(kind);
    file.extend_from_slice(data);
    file.extend_from_slice(&sum.sum().to_be_bytes());
}

/// A zlib stream of stored blocks (RFC 1950, RFC 1951 §3.2.4).
fn zlib_stored(raw: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let mut blocks = raw.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        out.push(u8::from(blocks.peek().is_none()));
        let len = block.len() as u16;
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(block);
    }
    let (low, high) = raw.iter().fold((1u32, 0u32), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    out.extend_from_slice(&(high << 16 | low).to_be_bytes());
    out
}

/// SplitMix64: the same pseudo-random numbers on every machine.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
