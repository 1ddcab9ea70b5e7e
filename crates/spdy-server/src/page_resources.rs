//! The resources of each page, found before any request: in the graph of a recording, or in the text of files.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use spdy_page::graph::{Node, PageGraph};
use spdy_page::references::{in_css, in_html};
use spdy_page::replica::{Kind, Replica};
use url::Url;

use crate::directory::Directory;
use crate::push_plan::PushCandidate;
use crate::stored_response::StoredResponse;

/// Things that are kept of one page.
const MAX_RESOURCES_PER_PAGE: usize = 256;
/// Style sheets that lead to one another.
const MAX_SHEET_DEPTH: usize = 4;

/// Needs by page.
#[derive(Debug, Default)]
pub struct PageResources {
    /// By recorded host, or "" for files, then by target.
    pages: BTreeMap<String, BTreeMap<String, Vec<PushCandidate>>>,
}

impl PageResources {
    /// Of the documents in a recording: what their graph says that load waits for, style sheets, scripts, fonts and
    /// images, in the order in which a browser finds them.
    ///
    /// # Panics
    ///
    /// If [`Replica::start`] is no index of an exchange.
    #[must_use]
    pub fn of_replica(replica: &Replica) -> Self {
        Self::of_graph(replica, &PageGraph::of(replica))
    }

    /// The same by another graph over the exchanges of `replica`: its resources may lie elsewhere than its texts say.
    ///
    /// # Panics
    ///
    /// If a node of `graph` names no exchange of `replica`.
    #[must_use]
    pub fn of_graph(replica: &Replica, graph: &PageGraph) -> Self {
        Self::gather(replica, graph, MAX_RESOURCES_PER_PAGE, |node| {
            let hinted = [Kind::Stylesheet, Kind::Script, Kind::Font, Kind::Image];
            hinted.contains(&node.kind) && node.before_load
        })
    }

    /// Everything that the documents of `graph` fetch by GET, whatever it is, before load or after, and however much.
    ///
    /// # Panics
    ///
    /// As [`of_graph`](Self::of_graph).
    #[must_use]
    pub fn all_of_graph(replica: &Replica, graph: &PageGraph) -> Self {
        Self::gather(replica, graph, usize::MAX, |_| true)
    }

    /// At most `most` nodes for each document, of those that are `wanted`.
    fn gather(
        replica: &Replica,
        graph: &PageGraph,
        most: usize,
        wanted: impl Fn(&Node) -> bool,
    ) -> Self {
        let mut needs = Self::default();
        // The document that each node belongs to; a parent stands before its children.
        let mut documents: Vec<usize> = Vec::with_capacity(graph.nodes.len());
        for (index, node) in graph.nodes.iter().enumerate() {
            let document = match node.parent() {
                Some(parent) if node.kind != Kind::Document => documents[parent],
                _ => index,
            };
            documents.push(document);
            let page = &replica.exchanges[graph.nodes[document].exchange];
            let thing = &replica.exchanges[node.exchange];
            if document == index
                || !wanted(node)
                || node.is_redirect
                || thing.method != Method::GET
                || thing.status() != Some(200)
            {
                continue;
            }
            // Written without its origin a URL is right whatever name the page is asked for by.
            let url = if thing.url.origin() == page.url.origin() {
                spdy_page::head::target(&thing.url)
            } else {
                thing.url.to_string()
            };
            let host = page.url.host_str().unwrap_or_default();
            let target = spdy_page::head::target(&page.url);
            needs.add(host, &target, most, url, Some(node.kind));
        }
        needs
    }

    /// Of the HTML files in a folder: what their text names, and what the style sheets named there name.
    #[must_use]
    pub fn of_directory(directory: &Directory) -> Self {
        let mut needs = Self::default();
        // Any name will do: what is of this origin is told without it.
        let Ok(origin) = Url::parse("http://site.invalid/") else {
            return needs;
        };
        for (path, answer) in directory.answers() {
            let Some(url) = origin
                .join(&path)
                .ok()
                .filter(|_| kind(answer) == Kind::Document)
            else {
                continue;
            };
            let target = spdy_page::head::target(&url);
            let mut found = Vec::new();
            let mut seen = BTreeSet::new();
            collect(
                directory,
                in_html(&answer.body, &url),
                0,
                &mut seen,
                &mut found,
            );
            for thing in found {
                let here = thing.origin() == origin.origin();
                let written = if here {
                    spdy_page::head::target(&thing)
                } else {
                    thing.to_string()
                };
                needs.add("", &target, MAX_RESOURCES_PER_PAGE, written, None);
            }
        }
        needs
    }

    /// Whether no page needs anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    fn add(&mut self, host: &str, target: &str, most: usize, url: String, kind: Option<Kind>) {
        let pages = self.pages.entry(host.to_owned()).or_default();
        let wishes = pages.entry(target.to_owned()).or_default();
        if wishes.len() < most {
            wishes.push(PushCandidate {
                url,
                kind,
                may_push: true,
                ..PushCandidate::default()
            });
        }
    }

    /// What the page at `target` of `host` needs. A query is nothing to a file.
    pub(crate) fn of(&self, host: &str, target: &str) -> &[PushCandidate] {
        let path = target.split('?').next().filter(|_| host.is_empty());
        let pages = self.pages.get(host);
        let page = pages.and_then(|pages| pages.get(path.unwrap_or(target)));
        page.map_or(&[], Vec::as_slice)
    }
}

/// Style sheets are followed by what they name.
fn collect(
    directory: &Directory,
    urls: Vec<Url>,
    depth: usize,
    seen: &mut BTreeSet<Url>,
    found: &mut Vec<Url>,
) {
    for url in urls {
        if found.len() >= MAX_RESOURCES_PER_PAGE || !seen.insert(url.clone()) {
            continue;
        }
        let answer = directory.answer(&spdy_page::head::target(&url));
        let sheet = answer.filter(|answer| kind(answer) == Kind::Stylesheet);
        found.push(url.clone());
        if let Some(sheet) = sheet.filter(|_| depth < MAX_SHEET_DEPTH) {
            collect(directory, in_css(&sheet.body, &url), depth + 1, seen, found);
        }
    }
}

/// What an answer is, by its own word.
pub(crate) fn kind(answer: &StoredResponse) -> Kind {
    let content_type = answer.headers.get(http::header::CONTENT_TYPE);
    content_type
        .and_then(|value| Kind::from_content_type(value.to_str().ok()?))
        .unwrap_or(Kind::Other)
}
