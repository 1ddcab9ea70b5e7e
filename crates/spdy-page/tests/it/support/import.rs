//! Recordings in `tests/data`, and exchanges of the imported replica.

use std::path::Path;

use spdy_page::coding;
use spdy_page::graph::PageGraph;
use spdy_page::head::Head;
use spdy_page::open::OpenedReplica;
use spdy_page::replica::{Exchange, Replica};

use crate::support::soundness;

pub(crate) fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
        .to_string_lossy()
        .into_owned()
}

pub(crate) fn exchange<'a>(replica: &'a Replica, path: &str) -> &'a Exchange {
    let found = replica
        .exchanges
        .iter()
        .find(|exchange| exchange.url.path() == path && exchange.status() != Some(301));
    found.unwrap_or_else(|| panic!("no exchange of {path}"))
}

pub(crate) fn text(exchange: &Exchange) -> String {
    let codings = Head::parse(&exchange.response_head)
        .unwrap()
        .content_codings();
    String::from_utf8(
        coding::decode(&exchange.body, &codings, 1 << 20)
            .unwrap()
            .text,
    )
    .unwrap()
}

pub(crate) fn sound(opened: OpenedReplica) -> (Replica, spdy_page::notes::ImportNotes) {
    soundness::assert_sound(&opened.replica, "small");
    soundness::assert_lawful(&opened.replica, &PageGraph::of(&opened.replica), "small");
    (opened.replica, opened.notes)
}
