//! The clients of a visit: one for each site, or one for all.

use futures_util::future::join_all;
use spdy_client::client::Client;

use crate::load::Page;
use crate::options::{Options, site_of};

/// The clients of a load and of the pages that it loads before.
///
/// A client has the names, TLS sessions and connections of one site, so pages of another site cannot use them. Its limit of connections
/// to a host is for its site alone, as in browsers.
#[derive(Clone, Debug)]
pub struct SiteClients {
    /// In the order in which their sites are first visited.
    clients: Vec<Client>,
    /// For each page of the visit, until the loaded one, the index of its client.
    of_pages: Vec<usize>,
}

impl SiteClients {
    /// Creates the clients for a load of `page` with `options`. `create` receives the number of each client, from 0.
    #[must_use]
    pub fn new(page: &Page, options: &Options, create: impl FnMut(usize) -> Client) -> Self {
        let pages = page.earlier().pages.iter().map(|page| &**page);
        let hosts = pages.chain([page]).map(Page::own_host);
        let (of_pages, count) = partitions(hosts, options.site_partitions);
        Self {
            clients: (0..count).map(create).collect(),
            of_pages,
        }
    }

    /// The client of the loaded page.
    #[must_use]
    pub fn own(&self) -> &Client {
        self.client(self.of_pages[self.of_pages.len() - 1])
    }

    /// The number of clients.
    pub(crate) fn count(&self) -> usize {
        self.clients.len()
    }

    /// The index of the client of the page with this index in the visit.
    pub(crate) fn index_of_page(&self, page: usize) -> usize {
        self.of_pages[page]
    }

    /// The client with this index.
    pub(crate) fn client(&self, index: usize) -> &Client {
        &self.clients[index]
    }

    /// Closes every connection of all clients in order, see [`Client::close`].
    pub async fn close(&self) {
        join_all(self.clients.iter().map(Client::close)).await;
    }
}

/// For a load of one page.
impl From<Client> for SiteClients {
    fn from(client: Client) -> Self {
        Self {
            clients: vec![client],
            of_pages: vec![0],
        }
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
