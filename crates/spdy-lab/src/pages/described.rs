//! Pages that claims describe by numbers: objects, bytes and hosts.

use std::fmt::Write as _;

use spdy_page::replica::{Kind, Replica};
use url::Url;

use crate::lulic::pages::{exchange, filled, noise};

/// Description of a page.
pub(crate) struct Objects {
    pub(crate) count: usize,
    /// Bytes of each.
    pub(crate) bytes: usize,
    /// Number of hosts that they are spread over; the first also serves the document.
    pub(crate) hosts: usize,
    /// Bytes of a style sheet on the first host; 0 for none.
    pub(crate) sheet: usize,
    /// Minimum bytes of the document; it is longer if its references are.
    pub(crate) document: usize,
}

impl Objects {
    /// This many images on one host, nothing else.
    pub(crate) const fn new(count: usize, bytes: usize) -> Self {
        Self {
            count,
            bytes,
            hosts: 1,
            sheet: 0,
            document: 0,
        }
    }

    /// The page. Its document names all resources.
    pub(crate) fn page(&self) -> Replica {
        let images = (0..self.count).map(|number| (number % self.hosts, self.bytes));
        Replica {
            name: format!("{} objects of {} bytes", self.count, self.bytes),
            ..page_of(&images.collect::<Vec<_>>(), self.sheet, self.document)
        }
    }
}

/// A page with `images`, each with its host number and bytes; with a style sheet of `sheet` bytes on the first host if that is not 0;
/// and with a document of at least `document` bytes.
pub(crate) fn page_of(images: &[(usize, usize)], sheet: usize, document: usize) -> Replica {
    let host = |number: usize| format!("http://host{number}.page.test/");
    let url = |text: String| Url::parse(&text).unwrap_or_else(|reason| panic!("{text}: {reason}"));
    let page = url(host(0));
    let mut html = String::from("<!DOCTYPE html>\n<html><head><title>Objects</title>\n");
    let mut exchanges = Vec::new();
    if sheet > 0 {
        html.push_str("<link rel=\"stylesheet\" href=\"/page.css\">\n");
        let text = filled(String::new(), "/* ", " */\n", sheet);
        let at = url(format!("{page}page.css"));
        exchanges.push(exchange(&page, at, Kind::Stylesheet, "text/css", text));
    }
    html.push_str("</head><body>\n");
    for (number, &(host_number, bytes)) in images.iter().enumerate() {
        let at = format!("{}{number}.png", host(host_number));
        let _ = writeln!(html, "<img src=\"{at}\" alt=\"\">"); // a String takes all
        let body = noise(&at, bytes);
        exchanges.push(exchange(&page, url(at), Kind::Image, "image/png", body));
    }
    html.push_str("</body></html>\n");
    let html = if document > html.len() + 16 {
        filled(html, "<!-- ", " -->\n", document)
    } else {
        html.into_bytes()
    };
    let content_type = "text/html; charset=utf-8";
    let first = exchange(&page, page.clone(), Kind::Document, content_type, html);
    exchanges.insert(0, first);
    Replica {
        name: format!("{} objects", images.len()),
        source: "made for this project, MIT OR Apache-2.0".to_owned(),
        start: 0,
        exchanges,
        recorded: None,
        dom_content_loaded: None,
        load: None,
        paints: spdy_page::replica::Paints::default(),
        failures: Vec::new(),
    }
}
