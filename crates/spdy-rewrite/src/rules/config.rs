//! The configuration of one site, from which [`Rules`](crate::rules::Rules) are compiled.

use serde::{Deserialize, Serialize};

use crate::kind::{Kind, Kinds};
use crate::rules::host_limits::LimitsConfig;

/// The rules of one site as they are written, in TOML or otherwise.
///
/// ```toml
/// discover = true
/// deny = ["ads.example"]
/// own_hosts = ["img.site.test"]
/// pages_left = ["/admin/"]
/// lazy_attributes = ["data-src", "data-srcset"]
/// names_under = "x.site-assets.example"
///
/// [[hosts]]
/// host = "cdn.site-b.test"
/// path = "/assets/"
/// except = ["/assets/ads/"]
/// kinds = ["image", "style", "font", "script"]
///
/// [[hosts]]
/// host = "widgets.site-c.test"
/// mode = "name"
/// kinds = ["document", "image", "style", "script"]
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "RewriteConfig"))]
pub struct Config {
    /// Path of proxied URLs: one segment with its slashes. Default `/.spdy/`.
    pub prefix: String,
    /// A zone of the operator, such as `x.site-assets.example`, for hosts with `mode = "name"`. It must be of another
    /// registrable domain than every site, and all names in it must lead to the accelerator.
    pub names_under: Option<String>,
    /// A host that is proxied. If a host has several entries, the entry with the longest `path` that matches the URL
    /// applies.
    pub hosts: Vec<HostConfig>,
    /// Hosts that are never proxied; `*.` stands for one label.
    pub deny: Vec<String>,
    /// Other names of the site on this certificate and address. They share the session, so they are not rewritten.
    pub own_hosts: Vec<String>,
    /// The site's own hosts that these rules apply to. The code that compiles the rules sets it; it is not in the file.
    #[serde(skip)]
    pub site_names: Vec<String>,
    /// Whether to proxy hosts that are not listed: only https on port 443, and only resources that cannot run.
    pub discover: bool,
    /// Whether to evaluate and report the rules only. Pages and style sheets of the site then pass unchanged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Folders (ending in `/`) or single paths of pages that are passed on unchanged, except the policies of their heads.
    /// Percent-encoding, path parameters (`;v=1`) and repeated slashes make no difference.
    pub pages_left: Vec<String>,
    /// Attributes of lazy loaders that hold a URL, a `srcset` (if the name ends so) or a `url()`.
    pub lazy_attributes: Vec<String>,
    /// The `Referer` that proxied hosts get.
    pub referrer: Referrer,
    /// Limits of every proxied host, whether the response is stored or not, separately for each entry of `hosts` and for each
    /// discovered host.
    #[serde(skip_serializing_if = "LimitsConfig::is_empty")]
    pub limits: LimitsConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            prefix: "/.spdy/".to_owned(),
            names_under: None,
            hosts: Vec::new(),
            deny: Vec::new(),
            own_hosts: Vec::new(),
            site_names: Vec::new(),
            discover: false,
            dry_run: false,
            pages_left: Vec::new(),
            lazy_attributes: Vec::new(),
            referrer: Referrer::default(),
            limits: LimitsConfig::default(),
        }
    }
}

impl Config {
    /// The configured limits: for all hosts, then of each.
    pub fn limits_of_hosts(&self) -> impl Iterator<Item = &LimitsConfig> {
        let of_hosts = self.hosts.iter().map(|host| &host.limits);
        std::iter::once(&self.limits).chain(of_hosts)
    }

    /// The same without any limits.
    pub(crate) fn without_limits(&self) -> Self {
        let mut rest = self.clone();
        rest.limits = LimitsConfig::default();
        for host in &mut rest.hosts {
            host.limits = LimitsConfig::default();
        }
        rest
    }
}

/// A host that is proxied.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostConfig {
    /// Its name, or `*.` and a domain for every name one label below it; with `:port` if it is not the scheme's default
    /// port.
    pub host: String,
    /// The scheme of requests to it.
    #[serde(default)]
    pub scheme: Scheme,
    /// Where it is proxied.
    #[serde(default)]
    pub mode: HostMode,
    /// The part that is proxied: a folder (ending in `/`) or one path. A path may have the query with which modules import it, as
    /// `/react@18?target=es2022`; import maps then have it; all queries of the path are
    /// proxied. Entries for one path with different queries must have the same other
    /// settings, because the query of a request does not select an entry. Default `/`.
    #[serde(default = "root")]
    pub path: String,
    /// Folders or single paths within `path` that are not proxied. Percent-encoding, path parameters (`;v=1`) and repeated
    /// slashes make no difference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// The kinds of resources that are proxied.
    #[serde(default = "passive")]
    pub kinds: Vec<Kind>,
    /// Whether many sites use the host, such as a public CDN. Each of its scripts then needs its own capability, and its
    /// modules stay at the host.
    #[serde(default)]
    pub shared: bool,
    /// Whether pages need the host only for proxied resources, so that preconnects to it are removed. Before the first
    /// rewrite of a page it is true if all paths and all kinds are proxied and the host is not shared. Default learned
    /// from the last rewrite of a page.
    #[serde(default)]
    pub whole: Option<bool>,
    /// Whether its responses depend on `Accept-Language`. The header is then passed on.
    #[serde(default)]
    pub accept_language: bool,
    /// Whether its responses depend on the browser. The host then gets only the class of the browser.
    #[serde(default)]
    pub user_agent: bool,
    /// Limits of this host. Default those of `site.rewrite.limits`.
    #[serde(default, skip_serializing_if = "LimitsConfig::is_empty")]
    pub limits: LimitsConfig,
}

fn root() -> String {
    "/".to_owned()
}

fn passive() -> Vec<Kind> {
    vec![Kind::Image, Kind::Style, Kind::Font, Kind::Media]
}

impl HostConfig {
    /// All that cannot run of `host`, over HTTPS.
    pub fn passive(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            scheme: Scheme::Https,
            mode: HostMode::Path,
            path: root(),
            except: Vec::new(),
            kinds: passive(),
            shared: false,
            whole: None,
            accept_language: false,
            user_agent: false,
            limits: LimitsConfig::default(),
        }
    }

    /// All of `host` that may stand under the site's name, over HTTPS.
    pub fn all_kinds(host: &str) -> Self {
        Self {
            kinds: Kinds::PROXIED.iter().collect(),
            ..Self::passive(host)
        }
    }

    /// Everything of `host`, over HTTPS, under a name of its own.
    pub fn named(host: &str) -> Self {
        Self {
            mode: HostMode::Name,
            kinds: Kind::ALL.to_vec(),
            ..Self::passive(host)
        }
    }
}

/// How a proxied host is addressed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HostMode {
    /// A path under the site's own name.
    #[default]
    Path,
    /// A name of its own in the zone `names_under`, on the site's address and certificate.
    Name,
}

/// The schemes that can be proxied.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Deserialize, Serialize,
)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Scheme {
    /// HTTPS.
    #[default]
    Https,
    /// HTTP.
    Http,
}

impl Scheme {
    /// The letter for it in moved URLs.
    pub fn letter(self) -> char {
        match self {
            Self::Https => 's',
            Self::Http => 'p',
        }
    }

    /// As URLs spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    /// The port that is not written.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }

    /// The scheme of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "https" => Some(Self::Https),
            "http" => Some(Self::Http),
            _ => None,
        }
    }
}

/// The `Referer` that a proxied host gets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Referrer {
    /// The site's origin, if the browser sent a `Referer`, as browsers do for requests to other hosts.
    #[default]
    Origin,
    /// No `Referer`, for sites whose pages have `Referrer-Policy: no-referrer` or `same-origin`.
    None,
}
