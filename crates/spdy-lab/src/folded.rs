//! A page whose foreign hosts are folded into its own.

use spdy_page::head;
use spdy_page::replica::Replica;

/// Where what was folded is found on the page's own host: the accelerator's form of a foreign URL.
const FOLDED_PREFIX: &str = "/.spdy/1/";

/// `replica` with what `hosts` serve on the page's own host. Its graph stays what it was: exchanges keep their places.
pub(crate) fn folded(replica: &Replica, hosts: &[String]) -> Replica {
    let mut replica = replica.clone();
    let (own, address) = {
        let page = &replica.exchanges[replica.start];
        (page.url.clone(), page.address)
    };
    for exchange in &mut replica.exchanges {
        let host = head::authority(&exchange.url);
        if !hosts.contains(&host) {
            continue;
        }
        let mut url = own.clone();
        url.set_path(&format!("{FOLDED_PREFIX}{host}{}", exchange.url.path()));
        url.set_query(exchange.url.query());
        exchange.url = url;
        exchange.address = address;
    }
    replica
}
