//! A live page without a browser: its document, what its text names, what the style sheets among that name, and what scripts import.
//!
//! ```text
//! document ──▶ frontier ──▶ so many at once ──▶ exchange ── a document or sheet? ──▶ frontier
//!                 └─ once each, up to a limit     └─ a redirect? what it leads to ──▶ frontier
//! ```
//!
//! Other requests of scripts are not found, and frames are not entered: a browser finds more. `crawl_network.rs` limits which addresses
//! are contacted, and `crawl_budget.rs` limits requests, bytes and time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use anyhow::Context;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_client::client::Client;
use spdy_client::config::Config;
use spdy_frame::priority::Priority;
use spdy_page::coding;
use spdy_page::es_modules::{self, DocumentModules, ImportMap};
use spdy_page::head::{self, Head};
use spdy_page::observation::Observation;
use spdy_page::references;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_rewrite::css::{self, StylesheetContext};
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::kind::Kind as Use;
use spdy_rewrite::rules::Rules;
use url::Url;

use super::crawl_budget::Budget;
use super::crawl_network::crawl_network;

/// Resources of one page that are fetched; redirects count.
const MAX_RESOURCES: usize = 500;
/// Bytes of one body.
const MAX_BODY_BYTES: usize = 32 << 20;
/// Bytes that a text may decode to.
const MAX_TEXT_BYTES: usize = 64 << 20;
/// Requests in progress at a time.
const MAX_CONCURRENT: usize = 16;
/// Redirects that lead from one URL to another, one after the other.
const MAX_REDIRECTS: u8 = 10;

/// A page as far as its text shows it.
pub(crate) struct CrawlResult {
    pub(crate) replica: Replica,
    /// What could not be fetched, a sentence each.
    pub(crate) remarks: Vec<String>,
}

/// Fetches the page at `url`. `progress` gets the number of fetched resources and of all resources found.
///
/// # Errors
///
/// The document could not be fetched, or is not a document.
pub(crate) async fn crawl(
    url: &Url,
    mut config: Config,
    budget: Budget,
    mut progress: impl FnMut(usize, usize),
) -> anyhow::Result<CrawlResult> {
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let network = crawl_network(url, &mut config).await?;
    let client = Client::new(runtime, network, config);
    let mut page = CrawlState {
        frontier: Frontier::new(MAX_RESOURCES),
        exchanges: Vec::new(),
        document: None,
        import_map: ImportMap::default(),
        failures: Vec::new(),
    };
    page.frontier.add(CrawlRequest::document(url.clone()));
    let mut under_way = FuturesUnordered::new();
    loop {
        while under_way.len() < MAX_CONCURRENT
            && !budget.is_spent()
            && let Some(errand) = page.frontier.next()
        {
            let document = page.document_url().unwrap_or(url).clone();
            under_way.push(fetch(&client, &budget, document, errand));
        }
        let next = tokio::time::timeout_at(budget.end(), under_way.next());
        let (errand, fetched) = match next.await {
            Ok(Some(fetched)) => fetched,
            Ok(None) => break,
            Err(_) => {
                let (most, late) = (budget.most_time, under_way.len());
                page.failures.push(format!(
                    "{late} resources did not arrive within the limit of {most:?}"
                ));
                break;
            }
        };
        match fetched {
            Ok(exchange) => page.take(&errand, exchange),
            Err(error) if page.exchanges.is_empty() => {
                return Err(error).with_context(|| format!("cannot fetch {url}"));
            }
            Err(error) => page.failures.push(format!("{}: {error:#}", errand.url)),
        }
        progress(page.exchanges.len(), page.frontier.seen_count());
    }
    // What is on its way holds connections open.
    drop(under_way);
    client.close().await;
    page.into_crawled(url, &budget)
}

/// A resource to fetch.
#[derive(Clone, Debug)]
struct CrawlRequest {
    url: Url,
    /// `None` for a document.
    used_as: Option<Use>,
    by_cors: bool,
    initiator: Initiator,
    redirects: u8,
}

impl CrawlRequest {
    fn document(url: Url) -> Self {
        Self {
            url,
            used_as: None,
            by_cors: false,
            initiator: Initiator::Navigation,
            redirects: 0,
        }
    }
}

/// The resources still to fetch, each URL once.
struct Frontier {
    seen: BTreeSet<String>,
    waiting: VecDeque<CrawlRequest>,
    limit: usize,
    /// URLs beyond the limit.
    refused: usize,
}

impl Frontier {
    fn new(limit: usize) -> Self {
        Self {
            seen: BTreeSet::new(),
            waiting: VecDeque::new(),
            limit,
            refused: 0,
        }
    }

    fn add(&mut self, errand: CrawlRequest) {
        if self.seen.contains(errand.url.as_str()) {
            return;
        }
        if self.seen.len() == self.limit {
            self.refused += 1;
            return;
        }
        self.seen.insert(errand.url.to_string());
        self.waiting.push_back(errand);
    }

    fn next(&mut self) -> Option<CrawlRequest> {
        self.waiting.pop_front()
    }

    fn seen_count(&self) -> usize {
        self.seen.len()
    }
}

/// The page so far.
struct CrawlState {
    frontier: Frontier,
    exchanges: Vec<Exchange>,
    /// The index of the page's own document.
    document: Option<usize>,
    /// Where the imports of its modules lead.
    import_map: ImportMap,
    failures: Vec<String>,
}

impl CrawlState {
    fn document_url(&self) -> Option<&Url> {
        Some(&self.exchanges[self.document?].url)
    }

    fn take(&mut self, errand: &CrawlRequest, exchange: Exchange) {
        let index = self.exchanges.len();
        if let Some(next) = redirect_target(&exchange) {
            if errand.redirects < MAX_REDIRECTS {
                self.frontier.add(CrawlRequest {
                    url: next,
                    initiator: Initiator::Redirect { index },
                    redirects: errand.redirects + 1,
                    ..errand.clone()
                });
            } else {
                let url = &errand.url;
                self.failures
                    .push(format!("{url}: more than {MAX_REDIRECTS} redirects"));
            }
        } else {
            let is_page = errand.used_as.is_none();
            if is_page {
                self.document = Some(index);
            }
            for (url, used_as, by_cors) in names(&exchange, is_page, &mut self.import_map) {
                self.frontier.add(CrawlRequest {
                    url,
                    used_as: Some(used_as),
                    by_cors,
                    initiator: Initiator::Resource {
                        index,
                        at_byte: None,
                    },
                    redirects: 0,
                });
            }
        }
        self.exchanges.push(exchange);
    }

    fn into_crawled(self, url: &Url, budget: &Budget) -> anyhow::Result<CrawlResult> {
        let start = self.document.filter(|&at| {
            let exchange = &self.exchanges[at];
            exchange.kind == Kind::Document && exchange.status() == Some(200)
        });
        let Some(start) = start else {
            let last = self.exchanges.last().and_then(Exchange::status);
            let found = last.map_or("nothing".to_owned(), |status| format!("{status}"));
            let reason = self.failures.first().map(|reason| format!("; {reason}"));
            let reason = reason.unwrap_or_default();
            anyhow::bail!("no page at {url}: expected status 200 and HTML, found {found}{reason}");
        };
        let mut remarks = self.failures;
        if !self.frontier.waiting.is_empty() {
            let (most, more) = (budget.most_bytes >> 20, self.frontier.waiting.len());
            let time = budget.most_time;
            remarks.push(format!(
                "{more} resources were not fetched: the limits of a page are {most} MiB and {time:?}"
            ));
        }
        if self.frontier.refused > 0 {
            let (most, more) = (MAX_RESOURCES, self.frontier.refused);
            remarks.push(format!("{more} resources were not fetched: limit {most}"));
        }
        Ok(CrawlResult {
            replica: Replica {
                name: url.host_str().unwrap_or("page").to_owned(),
                source: format!("fetched from {url} without a browser; licence not recorded"),
                start,
                exchanges: self.exchanges,
                recorded: None,
                dom_content_loaded: None,
                load: None,
                paints: spdy_page::replica::Paints::default(),
                failures: Vec::new(),
            },
            remarks,
        })
    }
}

/// The target of a redirect.
fn redirect_target(exchange: &Exchange) -> Option<Url> {
    let status = StatusCode::from_u16(exchange.status()?).ok()?;
    let head = Head::parse(&exchange.response_head)?;
    let location = head.value("location").filter(|_| status.is_redirection())?;
    let mut next = exchange.url.join(location).ok()?;
    next.set_fragment(None);
    matches!(next.scheme(), "http" | "https").then_some(next)
}

/// What the text of `exchange` names, what each is used as, and whether the page may read it. The page itself brings its
/// `import_map`, by which scripts import.
fn names(exchange: &Exchange, is_page: bool, import_map: &mut ImportMap) -> Vec<(Url, Use, bool)> {
    let (url, head) = (&exchange.url, Head::parse(&exchange.response_head));
    let codings = head.map(|head| head.content_codings()).unwrap_or_default();
    let Ok(decoded) = coding::decode(&exchange.body, &codings, MAX_TEXT_BYTES) else {
        return Vec::new();
    };
    let mut root = url.clone();
    root.set_path("/");
    root.set_query(None);
    // Rules that rewrite nothing still classify every reference.
    let Ok(rules) = Rules::compile(&root, &spdy_rewrite::rules::config::Config::default(), None)
    else {
        return Vec::new();
    };
    let mut imported = Vec::new();
    let mut import = |script: &str, map: &ImportMap, from: &Url| {
        let urls = es_modules::specifiers(script).into_iter();
        let urls = urls.filter_map(|specifier| map.resolve(specifier, from));
        imported.extend(urls.filter(|url| matches!(url.scheme(), "http" | "https")));
    };
    let (urls, references) = match exchange.kind {
        Kind::Document if is_page => {
            let modules = DocumentModules::of_html(&decoded.text);
            let base = modules.base_url(url);
            *import_map = ImportMap::of(&modules.import_maps, &base);
            for script in &modules.inline {
                import(script, import_map, &base);
            }
            let mut headers = HeaderMap::new();
            let kind = HeaderValue::from_static("text/html");
            headers.insert(header::CONTENT_TYPE, kind);
            let rules = Arc::new(rules);
            let head = PageHead::rewrite(&rules, url, StatusCode::OK, &mut headers, false);
            let mut page = HtmlRewriter::new(&rules, url, head, None);
            let mut unread = Vec::new();
            page.write(&decoded.text, &mut unread);
            let references = page.end(&mut unread).take_references();
            (references::in_html(&decoded.text, url), references)
        }
        Kind::Stylesheet => {
            let sheet =
                css::rewrite_bytes(&rules, &StylesheetContext::own(url), &decoded.text, None);
            (references::in_css(&decoded.text, url), sheet.references)
        }
        Kind::Script => {
            import(&String::from_utf8_lossy(&decoded.text), import_map, url);
            (Vec::new(), Vec::new())
        }
        _ => return Vec::new(),
    };
    let mut used: BTreeMap<String, (Use, bool)> = BTreeMap::new();
    for reference in references {
        let bare = reference.url.split('#').next().unwrap_or_default();
        let resource_use = (reference.kind, reference.by_cors);
        used.entry(bare.to_owned()).or_insert(resource_use);
    }
    let with_use = |url: Url| {
        let (used_as, by_cors) = *used.get(url.as_str()).unwrap_or(&(Use::Image, false));
        (url, used_as, by_cors)
    };
    let imported = imported.into_iter().map(|mut url| {
        url.set_fragment(None);
        (url, Use::Script, true)
    });
    urls.into_iter().map(with_use).chain(imported).collect()
}

async fn fetch(
    client: &Client,
    budget: &Budget,
    document: Url,
    errand: CrawlRequest,
) -> (CrawlRequest, anyhow::Result<Exchange>) {
    let fetched = exchange(client, budget, &document, &errand).await;
    (errand, fetched)
}

/// Sends a request like a browser's.
async fn exchange(
    client: &Client,
    budget: &Budget,
    document: &Url,
    errand: &CrawlRequest,
) -> anyhow::Result<Exchange> {
    let url = &errand.url;
    let fields = fields(document, errand);
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = url.as_str().parse()?;
    for (name, value) in &fields {
        let name = HeaderName::from_static(name);
        request.headers_mut().insert(name, value.parse()?);
    }
    let priority = match errand.used_as {
        None | Some(Use::Style) => Priority::HIGHEST,
        Some(Use::Script | Use::Font) => Priority::new(2),
        Some(_) => Priority::new(4),
    };
    let (head, body) = client.send(request, priority).await?.into_parts();
    let body = budget.collect(body, MAX_BODY_BYTES).await?;
    let line = format!("GET {} HTTP/1.1", head::target(url));
    let host = ("host", head::authority(url));
    let request_head = head::synthesize(&line, std::iter::once(host).chain(fields));
    let response = Response::from_parts(head, ());
    Ok(Exchange {
        url: url.clone(),
        method: http::Method::GET,
        address: None,
        request_head,
        response_head: response_head(&response),
        kind: kind(errand, &response),
        body,
        body_is_real: true,
        initiator: errand.initiator,
        started: None,
        queued: None,
        wait: None,
        receive: None,
        observed: Observation::default(),
    })
}

fn response_head(response: &Response<()>) -> bytes::Bytes {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let line = format!("HTTP/1.1 {} {reason}", status.as_str());
    let fields = response.headers().iter();
    let fields = fields.filter(|(name, _)| *name != header::TRANSFER_ENCODING);
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    head::synthesize(&line, fields.map(|(name, value)| (name, text(value))))
}

fn kind(errand: &CrawlRequest, response: &Response<()>) -> Kind {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|content_type| content_type.to_str().ok());
    match errand.used_as {
        None => Kind::of(content_type, &errand.url, None),
        Some(Use::Style) => Kind::Stylesheet,
        Some(Use::Script | Use::Worker) => Kind::Script,
        Some(Use::Document) => Kind::Document,
        Some(Use::Font) => Kind::Font,
        Some(Use::Media) => Kind::Media,
        Some(Use::Image) => Kind::Image,
    }
}

/// The header fields of the request, in the order of browsers.
fn fields(document: &Url, errand: &CrawlRequest) -> Vec<(&'static str, String)> {
    let (accept, destination) = match errand.used_as {
        None => ("text/html,application/xhtml+xml,*/*;q=0.8", "document"),
        Some(Use::Style) => ("text/css,*/*;q=0.1", "style"),
        Some(Use::Image) => ("image/avif,image/webp,image/*,*/*;q=0.8", "image"),
        Some(Use::Script) => ("*/*", "script"),
        Some(Use::Font) => ("*/*", "font"),
        Some(Use::Media) => ("*/*", "video"),
        Some(Use::Document) => ("text/html,application/xhtml+xml,*/*;q=0.8", "iframe"),
        Some(Use::Worker) => ("*/*", "worker"),
    };
    let mode = match errand.used_as {
        None | Some(Use::Document) => "navigate",
        Some(_) if errand.by_cors => "cors",
        Some(_) => "no-cors",
    };
    let is_same = errand.url.origin() == document.origin();
    let site = match errand.used_as {
        None => "none",
        Some(_) if is_same => "same-origin",
        Some(_) => "cross-site",
    };
    let mut fields = vec![
        ("accept", accept.to_owned()),
        ("accept-encoding", "gzip, br".to_owned()),
        ("user-agent", format!("spdy/{}", env!("CARGO_PKG_VERSION"))),
        ("sec-fetch-dest", destination.to_owned()),
        ("sec-fetch-mode", mode.to_owned()),
        ("sec-fetch-site", site.to_owned()),
    ];
    if errand.used_as.is_some() {
        let origin = document.origin().ascii_serialization();
        if errand.by_cors {
            fields.push(("origin", origin.clone()));
        }
        fields.push(("referer", format!("{origin}/")));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(number: usize) -> CrawlRequest {
        CrawlRequest {
            used_as: Some(Use::Image),
            ..CrawlRequest::document(format!("http://a.test/{number}.png").parse().unwrap())
        }
    }

    #[test]
    fn a_url_is_fetched_once_and_no_more_are_than_the_limit() {
        let mut frontier = Frontier::new(3);
        for number in [1, 2, 1, 3, 2] {
            frontier.add(image(number));
        }
        assert_eq!((frontier.seen_count(), frontier.refused), (3, 0));
        frontier.add(image(4));
        frontier.add(image(1));
        assert_eq!((frontier.seen_count(), frontier.refused), (3, 1));
        let order: Vec<_> = std::iter::from_fn(|| frontier.next()).collect();
        let order: Vec<_> = order.iter().map(|errand| errand.url.path()).collect();
        assert_eq!(order, ["/1.png", "/2.png", "/3.png"]);
    }

    #[tokio::test]
    async fn a_page_that_exceeds_the_time_limit_fails() {
        let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await;
        let silent = silent.expect("loopback has a free port");
        let address = silent.local_addr().expect("a bound socket");
        let url = Url::parse(&format!("http://{address}/")).expect("a URL");
        let budget = Budget::new(1, std::time::Duration::ZERO);
        let config = Config::default();
        let crawled = crawl(&url, config, budget, |_, _| {}).await;
        let error = crawled.err().expect("no response arrives").to_string();
        assert!(
            error.contains("did not arrive within the limit of 0ns"),
            "{error}"
        );
    }

    #[test]
    fn script_imports_are_resolved_by_the_import_map() {
        let mut map = ImportMap::default();
        let mut named = |kind, url: &str, text: &str| {
            let url = Url::parse(url).unwrap();
            let exchange = Exchange::synthetic(url, kind, "text/html", text.to_owned());
            let named = names(&exchange, kind == Kind::Document, &mut map).into_iter();
            let named = named.map(|(url, used_as, by_cors)| (url.to_string(), used_as, by_cors));
            named.collect::<Vec<_>>()
        };
        let html = "<script type=importmap>{\"imports\": {\"lib\": \"https://cdn.test/lib.js\"}}</script>\
                    <script type=module>import 'lib'; import 'data:text/javascript,1'</script>";
        let lib = ("https://cdn.test/lib.js".to_owned(), Use::Script, true);
        let of_page = named(Kind::Document, "https://www.test/a/", html);
        assert_eq!(of_page, std::slice::from_ref(&lib));
        let own = ("https://other.test/x/own.js".to_owned(), Use::Script, true);
        let script = "import './own.js'; import('lib'); import 'bare'";
        let of_script = named(Kind::Script, "https://other.test/x/y.js", script);
        assert_eq!(of_script, [own, lib]);
    }

    #[test]
    fn references_are_requested_with_their_destination() {
        let named = |kind, media, text: &str| {
            let url = Url::parse("https://www.test/a/").unwrap();
            let exchange = Exchange::synthetic(url, kind, media, text.to_owned());
            let named = names(&exchange, true, &mut ImportMap::default()).into_iter();
            let named = named.map(|(url, used_as, by_cors)| (url.to_string(), used_as, by_cors));
            named.collect::<Vec<_>>()
        };
        let html = "<link rel=stylesheet href=//cdn.test/x><script src=b.js crossorigin></script>\
                    <img src=/c><iframe src=d.html></iframe>";
        assert_eq!(
            named(Kind::Document, "text/html", html),
            [
                ("https://cdn.test/x".to_owned(), Use::Style, false),
                ("https://www.test/a/b.js".to_owned(), Use::Script, true),
                ("https://www.test/c".to_owned(), Use::Image, false),
            ]
        );
        let css = "@font-face { src: url(//fonts.test/f) } p { background: url(../g) }";
        assert_eq!(
            named(Kind::Stylesheet, "text/css", css),
            [
                ("https://fonts.test/f".to_owned(), Use::Font, true),
                ("https://www.test/g".to_owned(), Use::Image, false),
            ]
        );
    }
}
