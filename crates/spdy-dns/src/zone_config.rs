//! The configuration of a zone: names with their addresses, and the data of the zone itself.
//!
//! Names are written relative to the apex (`www`, `*.x`, `@` for the apex itself) or, with a dot at the end, whole
//! (`www.site.test.`).

use std::net::IpAddr;

use serde::Deserialize;

/// Largest TTL (RFC 2181 §8).
pub const MAX_TTL: u32 = 0x7fff_ffff;

/// A zone. [`Zones`](crate::zones::Zones) are made from several of them.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZoneConfig {
    /// The zone's name, such as `site.test`.
    pub apex: String,
    /// Its name servers, as in the parent zone, at least one. A name server within this zone needs an address here.
    pub name_servers: Vec<String>,
    /// Mail address of the zone's administrator, with `.` in place of `@`. Default `hostmaster` at the apex.
    #[serde(default)]
    pub contact: Option<String>,
    /// Time in seconds for which resolvers may cache a response, unless a name has its own. Default 60.
    #[serde(default = "default_ttl")]
    pub ttl: u32,
    /// Time in seconds for which resolvers may cache a negative response (RFC 2308 §4). Default 30.
    #[serde(default = "default_negative_ttl")]
    pub negative_ttl: u32,
    /// A name of the zone: relative to the apex (`www`, `*.x`, `@` for the apex), or complete with a final dot.
    #[serde(default)]
    pub names: Vec<NameConfig>,
}

/// The records of one name.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NameConfig {
    /// The name. `*` as its first label is a wildcard (RFC 4592).
    pub name: String,
    /// A and AAAA records.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// CNAME record, with no other record beside it and not at the apex (RFC 1034 §3.6.2). A name of another zone is written
    /// in full, with a final dot.
    #[serde(default)]
    pub alias: Option<String>,
    /// HTTPS record (RFC 9460), with the name's own addresses as hints.
    #[serde(default)]
    pub https: Option<HttpsConfig>,
    /// TXT records, each at most 255 octets.
    #[serde(default)]
    pub texts: Vec<String>,
    /// Time in seconds for which resolvers may cache a response. Default the zone's.
    #[serde(default)]
    pub ttl: Option<u32>,
}

/// An HTTPS record in service mode, with priority 1 and the name itself as target.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HttpsConfig {
    /// Protocols in addition to `http/1.1`, which is always included: `h3`, `h2`.
    #[serde(default)]
    pub alpn: Vec<String>,
    /// The port. Default that of the URL.
    #[serde(default)]
    pub port: Option<u16>,
}

fn default_ttl() -> u32 {
    60
}

fn default_negative_ttl() -> u32 {
    30
}

/// Why a zone configuration is invalid.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ZoneError {
    /// A name is invalid.
    #[error("zone {zone}: invalid name {name:?}: {reason}")]
    Name {
        /// The apex.
        zone: String,
        /// The configured name.
        name: String,
        /// The codec's error.
        reason: String,
    },
    /// Two zones have the same apex.
    #[error("zone {0} is configured twice")]
    DuplicateZone(String),
    /// The zone has no name server.
    #[error("zone {0} has no name server")]
    NoNameServer(String),
    /// A name server in the zone has no address.
    #[error("zone {zone}: name server {name} is in the zone but has no address there")]
    NameServer {
        /// The apex.
        zone: String,
        /// The server.
        name: String,
    },
    /// An alias looks like a name of another zone without its final dot.
    #[error(
        "zone {zone}: {name} is an alias of {target}, which does not exist; end a name of another zone with a dot"
    )]
    AliasOfNothing {
        /// The apex.
        zone: String,
        /// The alias.
        name: String,
        /// The target of the alias.
        target: String,
    },
    /// A name is not in the zone.
    #[error("zone {zone}: {name} is not in the zone")]
    Outside {
        /// The apex.
        zone: String,
        /// The name.
        name: String,
    },
    /// A name has two entries.
    #[error("zone {zone}: {name} is configured twice")]
    DuplicateName {
        /// The apex.
        zone: String,
        /// The name.
        name: String,
    },
    /// A CNAME at the apex, which also has SOA and NS records.
    #[error("zone {0}: an apex cannot be an alias; give it addresses")]
    ApexAlias(String),
    /// A CNAME beside another record.
    #[error("zone {zone}: {name} is an alias and cannot have other records")]
    AliasWithRecords {
        /// The apex.
        zone: String,
        /// The name.
        name: String,
    },
    /// A `*` that is not the first label.
    #[error("zone {zone}: {name} has a * that is not its first label")]
    Wildcard {
        /// The apex.
        zone: String,
        /// The name.
        name: String,
    },
    /// A TTL above the largest value.
    #[error("zone {zone}: TTL is {ttl} s, expected at most {MAX_TTL}")]
    Ttl {
        /// The apex.
        zone: String,
        /// The configured TTL.
        ttl: u32,
    },
    /// An ALPN identifier that cannot be encoded.
    #[error(
        "zone {zone}: invalid ALPN identifier {alpn:?}, expected 1 to 255 bytes without ',', '\\' and control characters"
    )]
    Alpn {
        /// The apex.
        zone: String,
        /// The configured identifier.
        alpn: String,
    },
    /// A text that is too long.
    #[error("TXT record has {0} bytes, expected at most {MAX_TEXT}")]
    Text(usize),
}

/// Longest string of a TXT record (RFC 1035 §3.3).
pub const MAX_TEXT: usize = 255;
