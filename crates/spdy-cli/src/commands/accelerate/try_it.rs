//! Prints how to request a site that its name does not lead to yet: with curl and with Chromium.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use spdy_accelerator::Ready;

use crate::output::{DIM, Printer};

/// Prints commands for the first site of `ready`, whose local authority has its certificate in `authority`.
pub(super) fn print(ready: &Ready<'_>, authority: &Path, printer: &Printer) {
    let listener = ready.listening.iter().find(|listener| listener.tls);
    // A wildcard is no name that can be requested.
    let site = ready.sites.iter().find(|name| !name.contains('*'));
    let (Some(listener), Some(site)) = (listener, site) else {
        return;
    };
    let port = listener.address.port();
    let address = match listener.address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => "127.0.0.1".to_owned(),
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => "[::1]".to_owned(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let authority = authority.display();
    printer.note(format_args!(
        "{DIM}try: curl --cacert {authority} --resolve {site}:{port}:{address} https://{site}:{port}/{DIM:#}"
    ));
    printer.note(format_args!(
        "{DIM} or: chromium --host-resolver-rules=\"MAP {site}:443 {address}:{port}\" https://{site}/   (the browser must trust {authority}){DIM:#}"
    ));
}
