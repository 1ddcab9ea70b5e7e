//! The bodies that come through the accelerator, and the nodes of its hints.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::HeaderMap;
use spdy_page::head;
use url::{Position, Url};

/// The bodies that come through the accelerator, and its nodes by name.
pub(crate) struct ProxiedContent {
    /// By exchange.
    pub(crate) bodies: Vec<Option<DecodedBody>>,
    /// Nodes by their references in a page of the site: see [`reference`].
    pub(crate) nodes: BTreeMap<String, usize>,
    /// The page's own URL.
    pub(crate) own: Url,
    /// Makes a decoder for a response with these headers; `None` if a coding is unknown.
    pub(crate) decoder: fn(&HeaderMap) -> Option<Box<dyn BodyDecoder>>,
}

/// Undoes the codings of a body that came through an accelerator, which chooses its own.
pub(crate) trait BodyDecoder: Send {
    /// Decodes the next bytes.
    fn write(&mut self, piece: &[u8]) -> Result<Vec<u8>, String>;

    /// Returns the rest of the text.
    fn finish(self: Box<Self>) -> Result<Vec<u8>, String>;
}

/// A body without its codings.
pub(crate) struct DecodedBody {
    /// `None` if its coding cannot be undone.
    pub(crate) text: Option<Bytes>,
    /// It differs from the origin's, and offsets in it are those of the text.
    pub(crate) is_rewritten: bool,
    /// The accelerator responds instead of the origin, with its own status.
    pub(crate) is_replaced: bool,
}

impl ProxiedContent {
    /// The body of `exchange`, if it comes through the accelerator.
    pub(crate) fn body(&self, exchange: usize) -> Option<&DecodedBody> {
        self.bodies[exchange].as_ref()
    }

    /// The nodes that the `Link` fields of a document's head name as hints.
    pub(crate) fn hinted_nodes(&self, headers: &HeaderMap) -> Vec<usize> {
        let links = headers.get_all(http::header::LINK).iter();
        let links = links.filter_map(|link| link.to_str().ok());
        let hints = links.filter(|link| link.contains("preload") || link.contains("subresource"));
        let url = |link: &str| Some(link.split_once('<')?.1.split_once('>')?.0.to_owned());
        let target = |url: String| match Url::parse(&url) {
            Ok(url) => reference(&self.own, &url),
            Err(_) => url,
        };
        hints
            .filter_map(url)
            .filter_map(|url| self.nodes.get(&target(url)).copied())
            .collect()
    }
}

/// The reference to `url` in a page at `own`: its target if the host is the same, else the full URL.
pub(crate) fn reference(own: &Url, url: &Url) -> String {
    match own.host() == url.host() {
        true => head::target(url),
        false => url[..Position::AfterQuery].to_owned(),
    }
}
