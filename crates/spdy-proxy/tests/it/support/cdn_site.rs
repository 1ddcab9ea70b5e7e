//! A site whose pages reference `cdn.test`, and an accelerator that rewrites them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request, StatusCode};

use crate::support::fields::{CSS, FRESH, HTML};
use crate::support::{Origin, accelerator_of, pages, respond};

/// The accelerator before `own`, which moves what `cdn.test`, at `other`, has.
pub(crate) fn before(own: &Origin, other: &Origin, more: &str) -> Arc<spdy_proxy::proxy::Proxy> {
    let (origin, port) = (own.address, other.address.port());
    accelerator_of(&format!(
        "[upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\n\
         {more}\n[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['image', 'style', 'script', 'font']\n"
    ))
}

pub(crate) fn own(text: String) -> Origin {
    Origin::start(move |request: Request<bytes::Bytes>| {
        std::future::ready(match request.uri().path() {
            "/" => respond(&[HTML, FRESH], text.clone()),
            "/private" => respond(&[HTML, ("cache-control", "private")], text.clone()),
            _ => respond(&[FRESH], "own"),
        })
    })
}

pub(crate) fn other() -> Origin {
    Origin::start(pages(&[
        (
            "/a.css",
            &[CSS, FRESH, ("set-cookie", "third=party")],
            "body { background: url(b.png) } @import '/c.css';",
        ),
        ("/c.css", &[CSS, FRESH], "p { color: red }"),
        (
            "/b.png",
            &[("content-type", "image/png"), FRESH],
            "a picture",
        ),
        ("/page.html", &[HTML, FRESH], "<script>alert(1)</script>"),
        (
            "/jump.png",
            &[("location", "http://169.254.169.254/latest")],
            "",
        ),
    ]))
}

/// The references of a page of the site.
pub(crate) fn html(other: &Origin) -> String {
    let port = other.address.port();
    format!(
        "<!doctype html><link rel=stylesheet href='http://cdn.test:{port}/a.css'><img src='http://cdn.test:{port}/b.png'>"
    )
}

/// An origin of a page at `/` that answers each condition of a GET by 304; `more` has fields of the first request, of the second and so on.
pub(crate) fn changing(
    text: String,
    more: impl Fn(usize) -> Vec<(&'static str, &'static str)> + Send + Sync + 'static,
) -> Origin {
    let (count, more) = (Arc::new(AtomicUsize::new(0)), Arc::new(more));
    Origin::start(move |request: Request<bytes::Bytes>| {
        let nth = count.fetch_add(1, Ordering::SeqCst);
        let mut fields = vec![HTML, ("etag", "\"v1\"")];
        fields.extend(more(nth));
        let is_revalidation =
            request.method() == Method::GET && request.headers().contains_key("if-none-match");
        let mut response = respond(
            &fields,
            if is_revalidation {
                String::new()
            } else {
                text.clone()
            },
        );
        if is_revalidation {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        std::future::ready(response)
    })
}
