//! The clients of a visit: for each site one for its pages and one for their frames of other sites, or one for all.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use spdy_client::client::{Client, Stats};

use crate::load::Page;
use crate::options::{Options, site_of};

/// The clients of a load and of the pages that it loads before.
///
/// A client has the names, TLS sessions and connections of the pages of one site, or of all frames of other sites in them, so nothing
/// else can use them. Its limit of connections to a host is its own. Chromium separates them so by a key of the site of the page, and of
/// whether a frame is of another (`NetworkAnonymizationKey`).
#[derive(Clone, Debug)]
pub struct SiteClients {
    /// In the order in which their sites are first visited, then those of frames.
    clients: Vec<Client>,
    /// For each page of the visit, until the loaded one, the index of its client.
    of_pages: Vec<usize>,
    /// The same for its frames of other sites; the index of its own client if they share that.
    of_frames: Vec<usize>,
}

impl SiteClients {
    /// Creates the clients for a load of `page` with `options`. `create` receives the number of each client, from 0.
    #[must_use]
    pub fn new(page: &Page, options: &Options, create: impl FnMut(usize) -> Client) -> Self {
        let earlier = page.earlier().pages.iter().map(|page| &**page);
        let pages: Vec<&Page> = earlier.chain([page]).collect();
        let hosts = pages.iter().map(|page| page.own_host());
        let (of_pages, mut count) = partitions(hosts, options.site_partitions);
        let mut of_frames = of_pages.clone();
        if options.site_partitions {
            let mut of_site = BTreeMap::new();
            for (index, page) in pages.iter().enumerate() {
                if page.has_cross_site_frames() {
                    of_frames[index] = *of_site.entry(of_pages[index]).or_insert_with(|| {
                        count += 1;
                        count - 1
                    });
                }
            }
        }
        Self {
            clients: (0..count).map(create).collect(),
            of_pages,
            of_frames,
        }
    }

    /// The number of clients.
    pub(crate) fn count(&self) -> usize {
        self.clients.len()
    }

    /// The index of the client of the page with this index in the visit.
    pub(crate) fn index_of_page(&self, page: usize) -> usize {
        self.of_pages[page]
    }

    /// The clients of the page with this index in the visit.
    pub(crate) fn of_page(&self, page: usize) -> PageClients<'_> {
        let (own, frames) = (self.of_pages[page], self.of_frames[page]);
        PageClients {
            own: &self.clients[own],
            frames: (frames != own).then(|| &self.clients[frames]),
        }
    }

    /// The clients of the loaded page.
    pub(crate) fn of_loaded_page(&self) -> PageClients<'_> {
        self.of_page(self.of_pages.len() - 1)
    }

    /// Closes every connection of all clients in order, see [`Client::close`].
    pub async fn close(&self) {
        join_all(self.clients.iter().map(Client::close)).await;
    }
}

/// The clients of one page.
#[derive(Clone, Copy)]
pub(crate) struct PageClients<'a> {
    own: &'a Client,
    /// `None` if its frames use its own.
    frames: Option<&'a Client>,
}

impl<'a> PageClients<'a> {
    /// The client of requests of the page, or of those in frames that [are separate](Page::is_separate) from it.
    pub(crate) fn client(self, is_separate: bool) -> &'a Client {
        let frames = self.frames.filter(|_| is_separate);
        frames.unwrap_or(self.own)
    }

    /// True if frames of other sites have a client of their own.
    pub(crate) const fn are_separate(self) -> bool {
        self.frames.is_some()
    }

    /// The counts of both.
    pub(crate) fn stats(self) -> Stats {
        let frames = self.frames.map(Client::stats).unwrap_or_default();
        self.own.stats() + frames
    }
}

/// For each of the pages on `hosts` the number of its partition, in the order of first use, and the count of partitions. With
/// `are_separate`, each site has its own.
fn partitions<'a>(hosts: impl Iterator<Item = &'a str>, are_separate: bool) -> (Vec<usize>, usize) {
    let mut sites: Vec<&str> = Vec::new();
    let of_pages = hosts.map(|host| {
        let site = if are_separate { site_of(host) } else { "" };
        let known = sites.iter().position(|other| *other == site);
        known.unwrap_or_else(|| {
            sites.push(site);
            sites.len() - 1
        })
    });
    let of_pages = of_pages.collect();
    (of_pages, sites.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_site_has_a_partition_unless_all_share_one() {
        let hosts = [
            "www.bbc.co.uk",
            "a.cloudfront.net",
            "news.bbc.co.uk",
            "ft.co.uk",
            "b.cloudfront.net",
            "a.cloudfront.net",
        ];
        let separate = partitions(hosts.into_iter(), true);
        assert_eq!(separate, (vec![0, 1, 0, 2, 3, 1], 4));
        assert_eq!(partitions(hosts.into_iter(), false), (vec![0; 6], 1));
    }
}
