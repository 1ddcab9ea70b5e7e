//! The page of Mineki, Uemura and Hasegawa 2013: many images on seven hosts.

use spdy_page::head;
use spdy_page::replica::Replica;

use crate::pages::described::Objects;

/// 42 images on this many hosts, a style sheet and a document, 320 kB.
pub(crate) fn page_on(hosts: usize) -> Replica {
    Objects {
        hosts,
        sheet: 20_000,
        document: 15_000,
        ..Objects::new(42, 6_785)
    }
    .page()
}

/// The page of the paper: 7 hosts.
pub(crate) fn page() -> Replica {
    Replica {
        name: "mineki".to_owned(),
        ..page_on(7)
    }
}

/// The same page, with responses that are fresh for a day.
pub(crate) fn fresh_page() -> Replica {
    let mut page = page();
    "mineki-fresh".clone_into(&mut page.name);
    for exchange in &mut page.exchanges {
        let (head, good) = (&exchange.response_head, Some("max-age=86400"));
        exchange.response_head = head::with_field(head, "Cache-Control", good);
    }
    page
}
