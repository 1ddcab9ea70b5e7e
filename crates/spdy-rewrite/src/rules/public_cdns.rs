//! Hosts that serve scripts of any author to any site, such as public CDNs. Each of their scripts needs its own capability
//! ([`shared`](crate::rules::config::HostConfig::shared)): otherwise, under `script-src 'self'`, a page that loads URLs from its
//! input could be made to load any of them.

use std::collections::BTreeSet;

use crate::kind::Kind;
use crate::rules::Rules;
use crate::rules::host_rule::HostRule;

/// Each host with a folder that anyone can publish to.
const SHARED: [(&str, &str); 14] = [
    ("ajax.aspnetcdn.com", "/ajax/"),
    ("ajax.googleapis.com", "/ajax/libs/"),
    ("cdn.jsdelivr.net", "/combine/"),
    ("cdn.jsdelivr.net", "/gh/"),
    ("cdn.jsdelivr.net", "/npm/"),
    ("cdn.skypack.dev", "/"),
    ("cdnjs.cloudflare.com", "/ajax/libs/"),
    ("code.jquery.com", "/"),
    ("esm.run", "/"),
    ("esm.sh", "/"),
    ("ga.jspm.io", "/"),
    ("maxcdn.bootstrapcdn.com", "/"),
    ("stackpath.bootstrapcdn.com", "/"),
    ("unpkg.com", "/"),
];

/// True if `host` is a known public CDN.
pub fn is_public_cdn(host: &str) -> bool {
    SHARED.iter().any(|(shared, _)| *shared == host)
}

impl Rules {
    /// The public CDNs whose scripts are all served under the site's own name: their entries may lack `shared`.
    pub fn unmarked_public_cdns(&self) -> BTreeSet<&'static str> {
        let of_entry = |entry: &HostRule| {
            let is_all = !entry.shared && !entry.is_alias() && entry.kinds.has(Kind::Script);
            let all = SHARED.iter().filter(move |_| is_all);
            let path = entry.path.clone();
            let pattern = entry.pattern.clone();
            all.filter(move |(host, folder)| pattern.matches(host) && folder.starts_with(&*path))
        };
        let hosts = self.entries.iter().flat_map(of_entry);
        hosts.map(|(host, _)| *host).collect()
    }
}
