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

/// Segments of a path in which a version is looked for: `@scope/name@1.2`, `user/repository@1.2`, `v135/name@1.2`.
const VERSION_SEGMENTS: usize = 3;

/// The part of `path` on the public CDN `host` that contains one version of one package: its folder, such as `/npm/vue@3.5.0/`, or one
/// path.
///
/// `None` if `host` is no known public CDN, or if `path` has no version.
pub fn package_path<'a>(host: &str, path: &'a str) -> Option<&'a str> {
    let folders = SHARED.iter().filter(|(shared, _)| *shared == host);
    let mut within = folders.filter_map(|(_, folder)| Some((*folder, path.strip_prefix(folder)?)));
    let (folder, rest) = within.next()?;
    let segments = rest.split_inclusive('/').take(VERSION_SEGMENTS);
    let mut end = folder.len();
    for (number, segment) in segments.enumerate() {
        end += segment.len();
        let name = segment.trim_end_matches('/');
        let is_versioned = match folder {
            // Several packages in one response.
            "/combine/" => false,
            // A segment for the name, then one for the version.
            "/ajax/libs/" | "/ajax/" => {
                number == 1
                    && segment.ends_with('/')
                    && name.starts_with(|c: char| c.is_ascii_digit())
            }
            _ => {
                let version = name.rsplit_once('@');
                version.is_some_and(|(package, version)| !package.is_empty() && !version.is_empty())
            }
        };
        if is_versioned {
            return Some(&path[..end]);
        }
    }
    None
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_one_version_of_one_author() {
        for (host, path, package) in [
            (
                "cdn.jsdelivr.net",
                "/npm/vue@3.5.0/dist/vue.esm.js",
                Some("/npm/vue@3.5.0/"),
            ),
            (
                "cdn.jsdelivr.net",
                "/npm/@lit/core@3/a.js",
                Some("/npm/@lit/core@3/"),
            ),
            (
                "cdn.jsdelivr.net",
                "/gh/user/repo@1/a.js",
                Some("/gh/user/repo@1/"),
            ),
            ("cdn.jsdelivr.net", "/npm/vue@3.5.0", Some("/npm/vue@3.5.0")),
            ("cdn.jsdelivr.net", "/npm/vue/a.js", None),
            ("cdn.jsdelivr.net", "/npm/@lit/core/a.js", None),
            ("cdn.jsdelivr.net", "/combine/npm/a@1,npm/b@2/b.js", None),
            (
                "unpkg.com",
                "/three@0.160.0/build/three.module.js",
                Some("/three@0.160.0/"),
            ),
            (
                "esm.sh",
                "/v135/react@18/es2022/react.mjs",
                Some("/v135/react@18/"),
            ),
            (
                "cdnjs.cloudflare.com",
                "/ajax/libs/three.js/0.160.0/three.js",
                Some("/ajax/libs/three.js/0.160.0/"),
            ),
            (
                "cdnjs.cloudflare.com",
                "/ajax/libs/three.js/latest/three.js",
                None,
            ),
            ("code.jquery.com", "/jquery-3.7.1.js", None),
            ("cdn.example", "/npm/vue@3.5.0/a.js", None),
        ] {
            assert_eq!(package_path(host, path), package, "{host}{path}");
        }
    }
}
