//! Chooses what is pushed or hinted with a page, and in which order: its style sheets, the resources that only they and its modules name,
//! its scripts and fonts, and other resources that clients requested.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use spdy_page::replica::Kind;
use spdy_server::push_plan::PushCandidate;

use crate::prefetch::document_references::{
    DocumentReferences, ReferenceTables, ReferencedResource,
};
use crate::prefetch::reference_walk::MAX_VISITS;

/// Maximum number of resources of one page that only a sheet or a module names. The rest of the hints is for other resources.
pub(super) const MAX_DEEP: usize = 12;

/// A resource that may be pushed or hinted with a page.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The resource, by its full URL.
    pub resource: PushCandidate,
    /// The text that names exactly this URL.
    pub named_by: NamedBy,
}

/// The public text that names the URL of a resource.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NamedBy {
    /// The page.
    Page,
    /// A sheet or a module of the page.
    Subresource,
    /// None is known: clients requested it.
    Nothing,
}

/// The resources that clients requested after a page.
pub(super) struct LearnedCandidates {
    /// Those that clients of at least one network requested.
    pub(super) of_few: Vec<PushCandidate>,
    /// Those of them that clients of several networks requested.
    pub(super) of_many: Vec<PushCandidate>,
}

/// The candidates of the page `document` of `home`.
pub(super) fn page_candidates(
    documents: &ReferenceTables,
    home: &str,
    document: &DocumentReferences,
    learned: &LearnedCandidates,
) -> Vec<Candidate> {
    let LearnedCandidates { of_few, of_many } = learned;
    let references = document.contents.resources.iter();
    let mut needed_first: Vec<_> = references
        .filter(|resource| is_candidate(resource))
        .collect();
    // A client first needs the resources that block rendering.
    needed_first.sort_by_key(|resource| rank(resource.kind));
    let mut targets = BTreeSet::new();
    needed_first.retain(|resource| targets.insert(resource.target.clone()));
    let mut named = named_resources(documents, home, document, of_few);
    let mut of_page: Vec<_> = needed_first
        .into_iter()
        .map(|resource| resource.candidate(home, NamedBy::Page))
        .collect();
    let (mut deep, mut others) = (Vec::new(), Vec::new());
    for learned in of_few
        .iter()
        .filter(|learned| !targets.contains(&learned.url))
    {
        let is_supported = || of_many.iter().any(|it| it.url == learned.url);
        match named.remove(&learned.url) {
            Some((_, resource)) if resource.kind.is_none() => {}
            Some((NamedBy::Subresource, resource)) => {
                deep.push(resource.candidate(home, NamedBy::Subresource));
            }
            Some((named_by, resource)) if is_supported() => {
                others.push(resource.candidate(home, named_by));
            }
            None if is_supported() && !learned.url.contains('?') => {
                others.push(Candidate {
                    resource: PushCandidate {
                        url: [home, &learned.url].concat(),
                        ..learned.clone()
                    },
                    named_by: NamedBy::Nothing,
                });
            }
            _ => {}
        }
    }
    deep.truncate(MAX_DEEP);
    let is_sheet = |candidate: &Candidate| candidate.resource.kind == Some(Kind::Stylesheet);
    let after_sheets = of_page
        .iter()
        .take_while(|candidate| is_sheet(candidate))
        .count();
    of_page.splice(after_sheets..after_sheets, deep);
    of_page.extend(others);
    of_page
}

/// The resources among `learned` that a text of the page names, by target, with the first text that does.
fn named_resources(
    documents: &ReferenceTables,
    home: &str,
    page: &DocumentReferences,
    learned: &[PushCandidate],
) -> BTreeMap<String, (NamedBy, ReferencedResource)> {
    let mut named = BTreeMap::new();
    let mut sought: BTreeSet<&str> = learned.iter().map(|learned| &learned.url[..]).collect();
    if sought.is_empty() {
        return named;
    }
    let mut remaining = MAX_VISITS;
    documents.walk(home, page, &mut remaining, |depth, resource| {
        if sought.remove(&resource.target[..]) {
            let named_by = match depth {
                0 => NamedBy::Page,
                _ => NamedBy::Subresource,
            };
            named.insert(resource.target.clone(), (named_by, resource.clone()));
        }
        match sought.is_empty() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    named
}

impl ReferencedResource {
    fn candidate(&self, home: &str, named_by: NamedBy) -> Candidate {
        Candidate {
            resource: PushCandidate {
                // In full: alone, a path that begins with two slashes would name another host.
                url: match self.target.starts_with('/') {
                    true => [home, &self.target].concat(),
                    false => self.target.clone(),
                },
                kind: self.kind,
                by_cors: self.by_cors,
                is_unhintable: self.cannot_preload,
                may_push: true,
                ..PushCandidate::default()
            },
            named_by,
        }
    }
}

/// Whether a resource that a page names is a candidate before any client requested it. An image is not: a client may choose one of several,
/// and nothing waits for it.
fn is_candidate(resource: &ReferencedResource) -> bool {
    matches!(
        resource.kind,
        Some(Kind::Stylesheet | Kind::Script | Kind::Font)
    )
}

fn rank(kind: Option<Kind>) -> u8 {
    match kind {
        Some(Kind::Stylesheet) => 0,
        Some(Kind::Script | Kind::Font) => 1,
        _ => 2,
    }
}
