//! A site that gives aliases to other hosts, and those hosts.

use std::sync::Arc;

use http::{Method, Request, StatusCode};
use spdy::body::Body;
use spdy_proxy::proxy::Proxy;

use crate::support::fields::{FRESH, HTML};
use crate::support::{self, CollectedResponse, Origin, accelerator_of, collect_response, respond};

/// An accelerator whose site gives an alias to `widgets.test` with documents, and one to `pictures.test` without.
pub(crate) struct AliasedSite {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) widgets: Origin,
    pub(crate) own: Origin,
    /// Labels, with zone and port.
    pub(crate) names: [String; 2],
    /// That of a host that leads to a private address.
    pub(crate) rebound: String,
    /// That of widgets.test for another site.
    pub(crate) of_second: String,
}

impl AliasedSite {
    pub(crate) fn start(page: &'static str) -> Self {
        let widgets = widgets();
        let port = widgets.address.port();
        let own = Origin::start(move |request: Request<bytes::Bytes>| {
            let text = page.replace("{widgets}", &format!("http://widgets.test:{port}"));
            std::future::ready(match request.uri().path() {
                "/" => respond(&[HTML, FRESH], text),
                _ => respond(&[FRESH], "own"),
            })
        });
        let text = format!(
            "secret_file = 's'\n[upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\n\
             resolve = {{ 'widgets.test' = '127.0.0.1', 'pictures.test' = '127.0.0.1', 'rebound.test' = '10.0.0.1' }}\n\
             [[site]]\nnames = ['www.site.test', 'site.test']\norigin = 'http://{}'\n\
             [site.rewrite]\nnames_under = 'x.assets.test'\n\
             [[site.rewrite.hosts]]\nhost = 'widgets.test:{port}'\nscheme = 'http'\nmode = 'name'\n\
             kinds = ['image', 'style', 'script', 'document']\n\
             [[site.rewrite.hosts]]\nhost = 'pictures.test:{port}'\nscheme = 'http'\nmode = 'name'\nkinds = ['image']\n\
             [[site.rewrite.hosts]]\nhost = 'rebound.test'\nmode = 'name'\nkinds = ['image']\n\
             [[site]]\nnames = ['www.second.test']\norigin = 'http://{}'\n\
             [site.rewrite]\nnames_under = 'x.assets.test'\n\
             [[site.rewrite.hosts]]\nhost = 'widgets.test:{port}'\nscheme = 'http'\nmode = 'name'\nkinds = ['image']\n",
            own.address, own.address
        );
        let config = spdy_proxy::config::Config::parse(&text).expect("a valid value");
        let sites = spdy_proxy::sites::site_table::Sites::compile(&config, &support::keys())
            .expect("valid sites");
        let name = |site: &str, url: &str| {
            let site = sites.find(site).expect("the site");
            let url = url::Url::parse(url).expect("a URL");
            let named = site.rules.alias_of(&url).expect("a name");
            let origin = named.origin().strip_prefix("https://");
            origin.expect("the site's scheme").to_owned()
        };
        let site = "www.site.test";
        let widgets_url = format!("http://widgets.test:{port}/");
        Self {
            names: [
                name(site, &widgets_url),
                name(site, &format!("http://pictures.test:{port}/")),
            ],
            rebound: name(site, "https://rebound.test/"),
            of_second: name("www.second.test", &widgets_url),
            proxy: accelerator_of(&text),
            widgets,
            own,
        }
    }

    pub(crate) async fn send_request(
        &self,
        method: Method,
        host: &str,
        target: &str,
        fields: &[(&str, &str)],
    ) -> CollectedResponse {
        self.send(method, host, target, fields, Body::empty()).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        host: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: Body,
    ) -> CollectedResponse {
        let mut request = Request::builder().method(method).uri(target);
        request = request.header("host", host);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(body).expect("a request");
        collect_response(&self.proxy, request, 1).await
    }

    /// Requests `widgets.test` by its alias.
    pub(crate) async fn get(&self, target: &str, fields: &[(&str, &str)]) -> CollectedResponse {
        self.send_request(Method::GET, &self.names[0], target, fields)
            .await
    }
}

pub(crate) fn widgets() -> Origin {
    Origin::start(|request: Request<bytes::Bytes>| {
        let path = request.uri().path().to_owned();
        let method = request.method().clone();
        let host = request.headers()["host"].to_str().unwrap().to_owned();
        std::future::ready(match path.as_str() {
            "/frame.html" => respond(
                &[
                    HTML,
                    FRESH,
                    ("set-cookie", "third=party"),
                    ("link", "</x.css>; rel=preload"),
                ],
                format!("<!doctype html><img src='http://{host}/a.png'><script src=b.js></script>"),
            ),
            "/a.png" => respond(
                &[
                    ("content-type", "image/png"),
                    FRESH,
                    ("set-cookie", "third=party"),
                ],
                "a picture",
            ),
            "/a.css" => respond(
                &[("content-type", "text/css"), FRESH],
                format!("@import 'http://{host}/b.css';"),
            ),
            "/b.js" => respond(&[("content-type", "text/javascript"), FRESH], "run()"),
            "/open.js" => respond(
                &[
                    ("content-type", "text/javascript"),
                    FRESH,
                    ("access-control-allow-origin", "https://www.site.test:8443"),
                ],
                "read()",
            ),
            "/form" if method == Method::POST => {
                let body = request.body().clone();
                respond(&[("content-type", "application/json")], body)
            }
            "/located" => respond(
                &[
                    ("content-type", "application/json"),
                    ("content-location", "/located"),
                    FRESH,
                ],
                request.body().clone(),
            ),
            "/form" => respond(&[("content-type", "application/json"), FRESH], "{}"),
            "/old.png" => {
                let mut response = respond(&[("location", "/a.png")], "");
                *response.status_mut() = StatusCode::FOUND;
                response
            }
            "/out.png" => {
                let to = "http://169.254.169.254/latest";
                let mut response = respond(&[("location", to)], "");
                *response.status_mut() = StatusCode::FOUND;
                response
            }
            "/collect" => respond(&[("content-type", "application/octet-stream")], "done"),
            "/odd.css" => respond(&[("content-type", "text/plain")], "a{}"),
            "/fixed.css" => respond(
                &[
                    ("content-type", "text/css"),
                    ("cache-control", "no-transform"),
                ],
                "@import '/b.css';",
            ),
            "/data" => {
                let accept = request.headers()["accept"].clone();
                respond(
                    &[("content-type", "application/json"), FRESH],
                    accept.as_bytes().to_vec(),
                )
            }
            "/.well-known/acme-challenge/a" => respond(&[("content-type", "image/png")], "proof"),
            _ => respond(&[HTML], "no"),
        })
    })
}
