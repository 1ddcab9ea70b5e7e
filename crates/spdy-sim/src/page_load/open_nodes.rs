//! Style sheets and deferred scripts that are named and not settled, by document. Scripts and layout wait for them.

use std::collections::{BTreeMap, BTreeSet};

use super::outline::{Outline, Place, reveal_at};

/// Open nodes of each document, the first one in the text first.
type ByDocument<T> = BTreeMap<Option<usize>, BTreeSet<T>>;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct OpenNodes {
    sheets: ByDocument<Place>,
    /// The same style sheets with the offsets of their tags; imports have that of their sheet.
    sheet_tags: ByDocument<(u64, usize)>,
    /// With their turns.
    deferred: ByDocument<Place>,
}

impl OpenNodes {
    /// Adds `node` if anything waits for it.
    pub(super) fn insert(&mut self, outline: &Outline<'_>, node: usize) {
        let (document, place) = (outline.document[node], outline.place(node));
        let facts = &outline.nodes[node];
        if facts.blocks_scripts {
            self.sheets.entry(document).or_default().insert(place);
            let tag = (reveal_at(&outline.nodes[place.0]), node);
            self.sheet_tags.entry(document).or_default().insert(tag);
        }
        if outline.is_deferred(node) {
            let turn = outline.turn(node);
            self.deferred.entry(document).or_default().insert(turn);
        }
    }

    /// Removes `node`, which may be absent.
    pub(super) fn remove(&mut self, outline: &Outline<'_>, node: usize) {
        let (document, place) = (outline.document[node], outline.place(node));
        let facts = &outline.nodes[node];
        if facts.blocks_scripts {
            remove(&mut self.sheets, document, &place);
            let tag = (reveal_at(&outline.nodes[place.0]), node);
            remove(&mut self.sheet_tags, document, &tag);
        }
        if outline.is_deferred(node) {
            remove(&mut self.deferred, document, &outline.turn(node));
        }
    }

    /// True if a style sheet before `script` in its document is open.
    pub(super) fn has_sheet_before(&self, outline: &Outline<'_>, script: usize) -> bool {
        has_before(
            &self.sheets,
            outline.document[script],
            outline.place(script),
        )
    }

    /// True if a style sheet of `document` with a tag up to the byte `at` is open.
    pub(super) fn has_sheet_up_to(&self, document: usize, at: u64) -> bool {
        let tags = self.sheet_tags.get(&Some(document));
        let first = tags.and_then(BTreeSet::first);
        first.is_some_and(|&(tag, _)| tag <= at)
    }

    /// True if a deferred script before `script` in its document is open.
    pub(super) fn has_deferred_before(&self, outline: &Outline<'_>, script: usize) -> bool {
        has_before(
            &self.deferred,
            outline.document[script],
            outline.turn(script),
        )
    }

    /// The first open deferred script of each document.
    pub(super) fn first_deferred(&self) -> impl Iterator<Item = usize> {
        let firsts = self.deferred.values().filter_map(BTreeSet::first);
        firsts.map(|&(_, node)| node)
    }
}

fn has_before(nodes: &ByDocument<Place>, document: Option<usize>, place: Place) -> bool {
    let first = nodes.get(&document).and_then(BTreeSet::first);
    first.is_some_and(|&first| first < place)
}

fn remove<T: Ord>(nodes: &mut ByDocument<T>, document: Option<usize>, entry: &T) {
    let Some(of_document) = nodes.get_mut(&document) else {
        return;
    };
    of_document.remove(entry);
    if of_document.is_empty() {
        nodes.remove(&document);
    }
}
