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
    /// The prefix of moved URLs: a path of one segment, with its slashes. Default `/.spdy/`.
    pub prefix: String,
    /// A zone of the operator's, as `x.site-assets.example`, in which hosts of `mode = "name"` have their names. Of another
    /// registrable domain than any site's, and all names in it lead to the accelerator.
    pub names_under: Option<String>,
    /// The hosts that are moved.
    pub hosts: Vec<HostConfig>,
    /// Hosts that are never moved, whatever else is configured; `*.` stands for one label.
    pub deny: Vec<String>,
    /// Other names of the site, on the same address and certificate: a browser reaches them over the same session
    /// as it is, so what is there is left.
    pub own_hosts: Vec<String>,
    /// Those of its own hosts under which the site itself is served, by these rules. The code that compiles them sets it; it is not in
    /// the file.
    #[serde(skip)]
    pub site_names: Vec<String>,
    /// Whether unlisted hosts in pages are moved: those of https on port 443, and only resources that cannot run.
    pub discover: bool,
    /// The rules are tried, and nothing is moved by them: pages and sheets of the site pass as they are, and the would-be result of pages
    /// is reported.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Pages that are passed on as they are, but for the policies of their heads: folders (ending in `/`) or single paths. Percent-encoding,
    /// path parameters (`;v=1`) and repeated slashes make no difference.
    pub pages_left: Vec<String>,
    /// Attributes of lazy loaders that hold a URL, a `srcset` (if the name ends so) or a `url()`.
    pub lazy_attributes: Vec<String>,
    /// The `Referer` that moved hosts get.
    pub referrer: Referrer,
    /// Limits of the answers of each moved host, unless its own line overrides them.
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

/// A host that is moved.
#[derive(Clone, Debug, Eq, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostConfig {
    /// Its name, or `*.` and a domain for every name one label below; `:port` where it is not the scheme's own.
    pub host: String,
    /// The scheme of requests to it.
    #[serde(default)]
    pub scheme: Scheme,
    /// Where it is moved to.
    #[serde(default)]
    pub mode: HostMode,
    /// The part that is moved: a folder (ending in `/`) or one path. Default all of it.
    #[serde(default = "root")]
    pub path: String,
    /// Parts of it that are not moved: folders (ending in `/`) or single paths within `path`. Default none. Of a host with more than one
    /// entry they are those of the entry that governs the URL, the one with the longest path. Percent-encoding, path parameters (`;v=1`)
    /// and repeated slashes make no difference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// The kinds of resources that are moved. Default all that cannot run.
    #[serde(default = "passive")]
    pub kinds: Vec<Kind>,
    /// Whether many share it, as a public CDN: its scripts are then moved one by one, each under a capability. Its modules stay where
    /// they are, since what they import would need one each.
    #[serde(default)]
    pub shared: bool,
    /// Whether pages need the host only for moved resources, so that preconnects to it are removed. By default the last rewrite of a page
    /// decides; before that it is true if all paths and all kinds are moved, and the host is not shared.
    #[serde(default)]
    pub whole: Option<bool>,
    /// Whether its answers depend on Accept-Language, which is then passed on.
    #[serde(default)]
    pub accept_language: bool,
    /// Whether its answers depend on the browser: it then gets the class of it, no more.
    #[serde(default)]
    pub user_agent: bool,
    /// What its answers may cost.
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

/// Where a host is moved to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HostMode {
    /// A path under the site's own name.
    #[default]
    Path,
    /// A name in the zone `names_under`: an origin of its own on the site's address and certificate.
    Name,
}

/// The two schemes that are moved.
#[derive(
    Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Deserialize, Serialize,
)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Scheme {
    /// HTTPS.
    #[default]
    Https,
    /// HTTP, where the operator lists it.
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

/// The `Referer` that a moved host gets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Referrer {
    /// The site's origin, if the browser sent a `Referer`: the default of browsers for other hosts.
    #[default]
    Origin,
    /// None: for sites whose pages have `Referrer-Policy: no-referrer` or `same-origin`.
    None,
}
