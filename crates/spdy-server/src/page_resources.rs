//! The resources of each page, known before any request: from the graph of a recording, or from the text of files.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use spdy_page::graph::{Node, PageGraph};
use spdy_page::references::{in_css, in_html};
use spdy_page::replica::{Kind, Replica};
use url::Url;

use crate::directory::Directory;
use crate::push_plan::PushCandidate;
use crate::stored_response::StoredResponse;

/// Limit of resources of one page.
const MAX_RESOURCES_PER_PAGE: usize = 256;
/// Limit of nested style sheets.
const MAX_SHEET_DEPTH: usize = 4;

/// Resources by page.
#[derive(Debug, Default)]
pub struct PageResources {
    /// By recorded host, or "" for files, then by target.
    pages: BTreeMap<String, BTreeMap<String, Vec<PushCandidate>>>,
}

impl PageResources {
    /// The resources of the documents in a recording that the load event waits for in its graph: style sheets, scripts, fonts and
    /// images, in the order in which a browser finds them.
    ///
    /// # Panics
    ///
    /// If [`Replica::start`] is not the index of an exchange.
    #[must_use]
    pub fn of_replica(replica: &Replica) -> Self {
        Self::of_graph(replica, &PageGraph::of(replica))
    }

    /// The same by another graph over the exchanges of `replica`; its URLs may differ from those in the recorded texts.
    ///
    /// # Panics
    ///
    /// If a node of `graph` refers to no exchange of `replica`.
    #[must_use]
    pub fn of_graph(replica: &Replica, graph: &PageGraph) -> Self {
        Self::gather(replica, graph, MAX_RESOURCES_PER_PAGE, |node| {
            let hinted = [Kind::Stylesheet, Kind::Script, Kind::Font, Kind::Image];
            hinted.contains(&node.kind) && node.before_load
        })
    }

    /// All resources that the documents of `graph` fetch by GET: of any kind, before or after load, and without a limit.
    ///
    /// # Panics
    ///
    /// As in [`of_graph`](Self::of_graph).
    #[must_use]
    pub fn all_of_graph(replica: &Replica, graph: &PageGraph) -> Self {
        Self::gather(replica, graph, usize::MAX, |_| true)
    }

    /// At most `max_per_document` nodes for each document, of those for which `is_included` is true.
    fn gather(
        replica: &Replica,
        graph: &PageGraph,
        max_per_document: usize,
        is_included: impl Fn(&Node) -> bool,
    ) -> Self {
        let mut needs = Self::default();
        // The document of each node; a parent precedes its children.
        let mut documents: Vec<usize> = Vec::with_capacity(graph.nodes.len());
        for (index, node) in graph.nodes.iter().enumerate() {
            let document = match node.parent() {
                Some(parent) if node.kind != Kind::Document => documents[parent],
                _ => index,
            };
            documents.push(document);
            let page = &replica.exchanges[graph.nodes[document].exchange];
            let exchange = &replica.exchanges[node.exchange];
            if document == index
                || !is_included(node)
                || node.is_redirect
                || exchange.method != Method::GET
                || exchange.status() != Some(200)
            {
                continue;
            }
            // A URL without origin is valid for every host name under which the page is requested.
            let url = if exchange.url.origin() == page.url.origin() {
                spdy_page::head::target(&exchange.url)
            } else {
                exchange.url.to_string()
            };
            let host = page.url.host_str().unwrap_or_default();
            let target = spdy_page::head::target(&page.url);
            needs.add(host, &target, max_per_document, url, Some(node.kind));
        }
        needs
    }

    /// For the HTML files in a folder: the resources in their text, and in the style sheets that they use.
    #[must_use]
    pub fn of_directory(directory: &Directory) -> Self {
        let mut resources = Self::default();
        // Any name works: URLs of this origin are stored without it.
        let Ok(origin) = Url::parse("http://site.invalid/") else {
            return resources;
        };
        for (path, response) in directory.responses() {
            let Some(url) = origin
                .join(&path)
                .ok()
                .filter(|_| kind(response) == Kind::Document)
            else {
                continue;
            };
            let target = spdy_page::head::target(&url);
            let mut urls = Vec::new();
            let mut visited = BTreeSet::new();
            collect(
                directory,
                in_html(&response.body, &url),
                0,
                &mut visited,
                &mut urls,
            );
            for resource_url in urls {
                let is_same_origin = resource_url.origin() == origin.origin();
                let text = if is_same_origin {
                    spdy_page::head::target(&resource_url)
                } else {
                    resource_url.to_string()
                };
                resources.add("", &target, MAX_RESOURCES_PER_PAGE, text, None);
            }
        }
        resources
    }

    /// True if no page has resources.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    fn add(&mut self, host: &str, target: &str, max: usize, url: String, kind: Option<Kind>) {
        let pages = self.pages.entry(host.to_owned()).or_default();
        let candidates = pages.entry(target.to_owned()).or_default();
        if candidates.len() < max {
            candidates.push(PushCandidate {
                url,
                kind,
                may_push: true,
                ..PushCandidate::default()
            });
        }
    }

    /// The resources that the page at `target` of `host` needs. The query of a file is ignored.
    pub(crate) fn of(&self, host: &str, target: &str) -> &[PushCandidate] {
        let path = target.split('?').next().filter(|_| host.is_empty());
        let pages = self.pages.get(host);
        let page = pages.and_then(|pages| pages.get(path.unwrap_or(target)));
        page.map_or(&[], Vec::as_slice)
    }
}

/// Collects `urls`, each style sheet followed by the resources that it references.
fn collect(
    directory: &Directory,
    urls: Vec<Url>,
    depth: usize,
    visited: &mut BTreeSet<Url>,
    collected: &mut Vec<Url>,
) {
    for url in urls {
        if collected.len() >= MAX_RESOURCES_PER_PAGE || !visited.insert(url.clone()) {
            continue;
        }
        let response = directory.response(&spdy_page::head::target(&url));
        let sheet = response.filter(|response| kind(response) == Kind::Stylesheet);
        collected.push(url.clone());
        if let Some(sheet) = sheet.filter(|_| depth < MAX_SHEET_DEPTH) {
            collect(
                directory,
                in_css(&sheet.body, &url),
                depth + 1,
                visited,
                collected,
            );
        }
    }
}

/// The kind of a response, by its content type.
pub(crate) fn kind(response: &StoredResponse) -> Kind {
    let content_type = response.headers.get(http::header::CONTENT_TYPE);
    content_type
        .and_then(|value| Kind::from_content_type(value.to_str().ok()?))
        .unwrap_or(Kind::Other)
}
