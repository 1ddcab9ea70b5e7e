//! The configured zones, and how a name is found in them (RFC 1034 §4.3.2, RFC 4592).
//!
//! ```text
//!  www.site.test ──▶ the zone whose apex is the nearest name above, or none: not ours
//!                ──▶ the name itself      its records, perhaps none: an alias, an answer, or nothing of that type
//!                ──▶ else the nearest name above that exists, and `*` under it
//!                ──▶ else there is no such name
//! ```
//!
//! A name exists if it has records or if a name under it has. A text that is set at run time makes its name exist, and
//! also the names above it, except that a wildcard that matches one of those still applies.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use hickory_proto::rr::rdata::svcb::{Alpn, IpHint, SVCB, SvcParamKey, SvcParamValue};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, HTTPS, NS, SOA, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use parking_lot::RwLock;

use crate::zone_config::{MAX_TEXT, MAX_TTL, NameConfig, ZoneConfig, ZoneError};

/// Texts that may be set at run time, over all zones.
pub const MAX_TEXTS: usize = 512;
/// TTL of those: a text that is set must be visible soon, and a removed one gone soon.
const TEXT_TTL: u32 = 1;
/// The serial number of every zone: there are no zone transfers.
const SERIAL: u32 = 1;
/// A secondary's refresh, retry and expire times in seconds; there are no zone transfers.
const REFRESH_RETRY_EXPIRE: [i32; 3] = [7200, 900, 1_209_600];

/// All zones.
#[derive(Clone, Debug, Default)]
pub struct Zones {
    /// As configured.
    zones: Arc<BTreeMap<Name, Zone>>,
    /// TXT records that were set at run time.
    texts: BTreeMap<Name, Vec<String>>,
    /// The nodes of these names: with these records and the configured ones.
    with_texts: BTreeMap<Name, Node>,
}

/// One zone.
#[derive(Clone, Debug)]
pub(crate) struct Zone {
    /// The SOA record with the TTL of negative answers.
    pub(crate) soa: Record,
    nodes: BTreeMap<Name, Node>,
}

/// The node of a name that exists only because a name below it does.
static NOTHING: Node = Node {
    records: Vec::new(),
};

/// The records of one name. Those of one type are adjacent, in the order of the configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    records: Vec<Record>,
}

impl Node {
    /// The records of one type, as another name if the node is a wildcard.
    pub(crate) fn of(&self, kind: RecordType) -> impl Iterator<Item = &Record> {
        let records = self.records.iter();
        records.filter(move |record| record.record_type() == kind)
    }
}

impl Zone {
    /// The node that is configured for `name`, which is in this zone.
    fn find(&self, name: &Name) -> Option<&Node> {
        if let Some(node) = self.nodes.get(name) {
            return Some(node);
        }
        let mut encloser = name.base_name();
        while !self.nodes.contains_key(&encloser) {
            if encloser.is_root() {
                return None; // not in this zone
            }
            encloser = encloser.base_name();
        }
        self.nodes.get(&encloser.prepend_label("*").ok()?)
    }
}

impl Zones {
    /// Compiles the configuration.
    ///
    /// # Errors
    ///
    /// The first error in the configuration.
    pub fn new(configs: &[ZoneConfig]) -> Result<Self, ZoneError> {
        let mut zones = BTreeMap::new();
        for config in configs {
            let apex = whole(&config.apex, &config.apex)?;
            let zone = compile(config, &apex)?;
            if zones.insert(apex, zone).is_some() {
                return Err(ZoneError::DuplicateZone(config.apex.clone()));
            }
        }
        // A name under another zone's apex would never be found in its own.
        for (apex, zone) in &zones {
            for (name, node) in &zone.nodes {
                let nearest = apex_of(&zones, name);
                if nearest != Some(apex) && !node.records.is_empty() {
                    return Err(ZoneError::Outside {
                        zone: display_name(apex),
                        name: display_name(name),
                    });
                }
            }
        }
        for config in configs {
            check_aliases(config, &zones)?;
        }
        Ok(Self {
            zones: Arc::new(zones),
            ..Self::default()
        })
    }

    /// Whether `name`, which is complete with its final dot, is in one of these zones, whether it exists there or not.
    #[must_use]
    pub fn owns(&self, name: &Name) -> bool {
        apex_of(&self.zones, name).is_some()
    }

    /// The zone that contains `name`.
    pub(crate) fn zone_of(&self, name: &Name) -> Option<&Zone> {
        self.zones.get(apex_of(&self.zones, name)?)
    }

    /// The node that answers queries for `name`, which is in `zone`.
    pub(crate) fn find<'a>(&'a self, zone: &'a Zone, name: &Name) -> Option<&'a Node> {
        let node = self.with_texts.get(name).or_else(|| zone.find(name));
        node.or_else(|| {
            let is_above = self.texts.keys().any(|text| name.zone_of(text));
            is_above.then_some(&NOTHING)
        })
    }

    /// These zones with the texts of `other` whose names are in these zones: for a configuration that replaces another.
    #[must_use]
    pub fn with_texts_of(mut self, other: &Self) -> Self {
        let texts = other.texts.clone().into_iter();
        self.texts = texts
            .filter(|(name, _)| apex_of(&self.zones, name).is_some())
            .collect();
        self.apply_texts();
        self
    }

    /// Adds a TXT record to those of `name`, for a challenge of dns-01 (RFC 8555 §8.4).
    ///
    /// # Errors
    ///
    /// The name is not in our zones or is an alias, the text is too long, or there are [`MAX_TEXTS`] already.
    pub fn add_text(&mut self, name: &str, text: &str) -> Result<(), TextError> {
        let owner = self.owner(name)?;
        if text.len() > MAX_TEXT {
            return Err(TextError::Long(text.len()));
        }
        let aliased = self.zone_of(&owner).and_then(|zone| zone.nodes.get(&owner));
        if aliased.is_some_and(|node| node.of(RecordType::CNAME).next().is_some()) {
            return Err(TextError::Alias(name.to_owned()));
        }
        if self.texts.values().map(Vec::len).sum::<usize>() >= MAX_TEXTS {
            return Err(TextError::Full);
        }
        self.texts.entry(owner).or_default().push(text.to_owned());
        self.apply_texts();
        Ok(())
    }

    /// Removes a text of [`add_text`](Self::add_text); `false` if there is no such text.
    pub fn remove_text(&mut self, name: &str, text: &str) -> bool {
        let Ok(owner) = self.owner(name) else {
            return false;
        };
        let Some(texts) = self.texts.get_mut(&owner) else {
            return false;
        };
        let Some(at) = texts.iter().position(|it| it == text) else {
            return false;
        };
        texts.remove(at);
        if texts.is_empty() {
            self.texts.remove(&owner);
        }
        self.apply_texts();
        true
    }

    fn owner(&self, name: &str) -> Result<Name, TextError> {
        let no_name = |_| TextError::Outside(name.to_owned());
        let mut owner = Name::from_ascii(name).map_err(no_name)?;
        owner.set_fqdn(true);
        match apex_of(&self.zones, &owner) {
            Some(_) => Ok(owner),
            None => Err(TextError::Outside(name.to_owned())),
        }
    }

    fn apply_texts(&mut self) {
        let nodes = self.texts.iter().map(|(name, texts)| {
            let configured = self.zone_of(name).and_then(|zone| zone.nodes.get(name));
            let mut node = configured.cloned().unwrap_or_default();
            let texts = texts.iter().map(|text| text_record(name, TEXT_TTL, text));
            node.records.extend(texts);
            (name.clone(), node)
        });
        self.with_texts = nodes.collect();
    }
}

/// Why a text was rejected.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TextError {
    /// The name is not in our zones.
    #[error("{0:?} is not in a configured zone")]
    Outside(String),
    /// The name is an alias of another.
    #[error("{0:?} is an alias: set the TXT record at its target")]
    Alias(String),
    /// Too long.
    #[error("TXT record has {0} bytes, expected at most {MAX_TEXT}")]
    Long(usize),
    /// Too many.
    #[error("limit of {MAX_TEXTS} TXT records reached")]
    Full,
}

/// Zones that can be replaced while they are served. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct SharedZones(Arc<RwLock<Arc<Zones>>>);

impl SharedZones {
    /// Begins with `zones`.
    #[must_use]
    pub fn new(zones: Zones) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(zones))))
    }

    /// The current zones.
    #[must_use]
    pub fn now(&self) -> Arc<Zones> {
        let zones = self.0.read();
        zones.clone()
    }

    /// Serves `zones` from now on, with the texts that were set at run time.
    pub fn replace(&self, zones: Zones) {
        self.change(|now| *now = zones.with_texts_of(now));
    }

    /// Changes the zones, to add or remove a text.
    pub fn change<T>(&self, change: impl FnOnce(&mut Zones) -> T) -> T {
        let mut zones = self.0.write();
        change(Arc::make_mut(&mut zones))
    }
}

fn apex_of<'a>(zones: &'a BTreeMap<Name, Zone>, name: &Name) -> Option<&'a Name> {
    let mut above = name.clone();
    loop {
        if let Some((apex, _)) = zones.get_key_value(&above) {
            return Some(apex);
        }
        if above.is_root() {
            return None;
        }
        above = above.base_name();
    }
}

/// Without the dot at the end, as people write it.
fn display_name(name: &Name) -> String {
    let text = name.to_ascii();
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}

/// Parses a name that is written in full, with or without its last dot.
fn whole(zone: &str, name: &str) -> Result<Name, ZoneError> {
    let read = Name::from_ascii(name);
    let mut read = read.map_err(|error| ZoneError::Name {
        zone: zone.to_owned(),
        name: name.to_owned(),
        reason: error.to_string(),
    })?;
    read.set_fqdn(true);
    Ok(read)
}

/// Parses a name that is written relative to `apex`, or in full with a dot at the end.
fn parse_relative(zone: &str, apex: &Name, name: &str) -> Result<Name, ZoneError> {
    if name == "@" {
        return Ok(apex.clone());
    }
    if name.ends_with('.') {
        return whole(zone, name);
    }
    let read = Name::from_ascii(name).and_then(|read| read.append_domain(apex));
    read.map_err(|error| ZoneError::Name {
        zone: zone.to_owned(),
        name: name.to_owned(),
        reason: error.to_string(),
    })
}

/// `admin@site.test` in the form of the SOA record: the first dot replaces the @ (RFC 1035 §8).
fn mailbox(zone: &str, apex: &Name, contact: Option<&str>) -> Result<Name, ZoneError> {
    let hostmaster = || parse_relative(zone, apex, "hostmaster");
    let Some(contact) = contact else {
        return hostmaster();
    };
    let no_mailbox = |reason: String| ZoneError::Name {
        zone: zone.to_owned(),
        name: contact.to_owned(),
        reason,
    };
    match contact.split_once('@') {
        // The user is one label, so that its dots stay part of it.
        Some((user, domain)) if !user.is_empty() && !domain.is_empty() => {
            let mailbox = whole(zone, domain)?.prepend_label(user.as_bytes());
            mailbox.map_err(|error| no_mailbox(error.to_string()))
        }
        Some(_) => Err(no_mailbox("expected user@domain".to_owned())),
        None => whole(zone, contact),
    }
}

fn compile(config: &ZoneConfig, apex: &Name) -> Result<Zone, ZoneError> {
    let zone_name = || config.apex.clone();
    let ttls = config.names.iter().filter_map(|name| name.ttl);
    for ttl in ttls.chain([config.ttl, config.negative_ttl]) {
        if ttl > MAX_TTL {
            let zone = zone_name();
            return Err(ZoneError::Ttl { zone, ttl });
        }
    }
    let servers: Vec<Name> = config
        .name_servers
        .iter()
        .map(|server| whole(&config.apex, server))
        .collect::<Result<_, _>>()?;
    let Some(first) = servers.first() else {
        return Err(ZoneError::NoNameServer(zone_name()));
    };
    let [refresh, retry, expire] = REFRESH_RETRY_EXPIRE;
    let soa = SOA::new(
        first.clone(),
        mailbox(&config.apex, apex, config.contact.as_deref())?,
        SERIAL,
        refresh,
        retry,
        expire,
        config.negative_ttl,
    );
    let negative = config.negative_ttl.min(config.ttl);
    let mut zone = Zone {
        soa: Record::from_rdata(apex.clone(), negative, RData::SOA(soa.clone())),
        nodes: BTreeMap::new(),
    };
    let soa = RData::SOA(soa);
    add(
        &mut zone,
        apex,
        Record::from_rdata(apex.clone(), config.ttl, soa),
    );
    for server in &servers {
        let data = RData::NS(NS(server.clone()));
        add(
            &mut zone,
            apex,
            Record::from_rdata(apex.clone(), config.ttl, data),
        );
    }

    let mut seen = std::collections::BTreeSet::new();
    for entry in &config.names {
        let owner = parse_relative(&config.apex, apex, &entry.name)?;
        let (zone_of, name) = (zone_name(), display_name(&owner));
        if !apex.zone_of(&owner) {
            return Err(ZoneError::Outside {
                zone: zone_of,
                name,
            });
        }
        if owner.iter().skip(1).any(|label| label == b"*") {
            return Err(ZoneError::Wildcard {
                zone: zone_of,
                name,
            });
        }
        if !seen.insert(owner.clone()) {
            return Err(ZoneError::DuplicateName {
                zone: zone_of,
                name,
            });
        }
        for record in records(config, apex, entry, &owner)? {
            add(&mut zone, apex, record);
        }
        // It exists even if it has nothing.
        ensure_exists(&mut zone, apex, &owner);
    }
    for server in servers.iter().filter(|server| apex.zone_of(server)) {
        let node = zone.find(server);
        let has = |kind| node.is_some_and(|node| node.of(kind).next().is_some());
        if !has(RecordType::A) && !has(RecordType::AAAA) {
            return Err(ZoneError::NameServer {
                zone: zone_name(),
                name: display_name(server),
            });
        }
    }
    Ok(zone)
}

/// Fails if an alias of `config` looks like a name of another zone without its final dot, and its target does not exist in ours.
fn check_aliases(config: &ZoneConfig, zones: &BTreeMap<Name, Zone>) -> Result<(), ZoneError> {
    let apex = whole(&config.apex, &config.apex)?;
    for entry in &config.names {
        let Some(alias) = &entry.alias else { continue };
        let target = parse_relative(&config.apex, &apex, alias)?;
        let seems_whole = alias.contains('.') && !alias.ends_with('.');
        let zone = apex_of(zones, &target).and_then(|apex| zones.get(apex));
        if seems_whole && zone.is_none_or(|zone| zone.find(&target).is_none()) {
            return Err(ZoneError::AliasOfNothing {
                zone: config.apex.clone(),
                name: entry.name.clone(),
                target: display_name(&target),
            });
        }
    }
    Ok(())
}

fn records(
    config: &ZoneConfig,
    apex: &Name,
    entry: &NameConfig,
    owner: &Name,
) -> Result<Vec<Record>, ZoneError> {
    let ttl = entry.ttl.unwrap_or(config.ttl);
    let record = |data| Record::from_rdata(owner.clone(), ttl, data);
    if let Some(alias) = &entry.alias {
        if owner == apex {
            return Err(ZoneError::ApexAlias(config.apex.clone()));
        }
        if !entry.addresses.is_empty() || entry.https.is_some() || !entry.texts.is_empty() {
            return Err(ZoneError::AliasWithRecords {
                zone: config.apex.clone(),
                name: display_name(owner),
            });
        }
        let target = parse_relative(&config.apex, apex, alias)?;
        return Ok(vec![record(RData::CNAME(CNAME(target)))]);
    }
    let mut records: Vec<Record> = entry
        .addresses
        .iter()
        .map(|&address| record(address_data(address)))
        .collect();
    if let Some(https) = &entry.https {
        for alpn in &https.alpn {
            let plain = |octet: u8| octet.is_ascii_graphic() && !matches!(octet, b',' | b'\\');
            if !(1..=MAX_TEXT).contains(&alpn.len()) || !alpn.bytes().all(plain) {
                return Err(ZoneError::Alpn {
                    zone: config.apex.clone(),
                    alpn: alpn.clone(),
                });
            }
        }
        let service = service(&https.alpn, https.port, &entry.addresses);
        records.push(record(RData::HTTPS(HTTPS(service))));
    }
    for text in &entry.texts {
        if text.len() > MAX_TEXT {
            return Err(ZoneError::Text(text.len()));
        }
        records.push(text_record(owner, ttl, text));
    }
    Ok(records)
}

/// Service mode, priority 1, the owner itself as target (`.`); keys are in ascending order (RFC 9460 §2.2).
fn service(alpn: &[String], port: Option<u16>, addresses: &[IpAddr]) -> SVCB {
    let mut params = Vec::new();
    if !alpn.is_empty() {
        let alpn = SvcParamValue::Alpn(Alpn(alpn.to_vec()));
        params.push((SvcParamKey::Alpn, alpn));
    }
    if let Some(port) = port {
        params.push((SvcParamKey::Port, SvcParamValue::Port(port)));
    }
    let v4 = addresses.iter().filter_map(|address| match address {
        IpAddr::V4(address) => Some(A(*address)),
        IpAddr::V6(_) => None,
    });
    let v6 = addresses.iter().filter_map(|address| match address {
        IpAddr::V6(address) => Some(AAAA(*address)),
        IpAddr::V4(_) => None,
    });
    let (v4, v6): (Vec<A>, Vec<AAAA>) = (v4.collect(), v6.collect());
    if !v4.is_empty() {
        let hint = SvcParamValue::Ipv4Hint(IpHint(v4));
        params.push((SvcParamKey::Ipv4Hint, hint));
    }
    if !v6.is_empty() {
        let hint = SvcParamValue::Ipv6Hint(IpHint(v6));
        params.push((SvcParamKey::Ipv6Hint, hint));
    }
    SVCB::new(1, Name::root(), params)
}

fn address_data(address: IpAddr) -> RData {
    match address {
        IpAddr::V4(address) => RData::A(A(address)),
        IpAddr::V6(address) => RData::AAAA(AAAA(address)),
    }
}

fn text_record(owner: &Name, ttl: u32, text: &str) -> Record {
    let text = TXT::from_bytes(vec![text.as_bytes()]);
    Record::from_rdata(owner.clone(), ttl, RData::TXT(text))
}

fn add(zone: &mut Zone, apex: &Name, record: Record) {
    ensure_exists(zone, apex, &record.name);
    let node = zone.nodes.entry(record.name.clone()).or_default();
    node.records.push(record);
}

/// Makes `owner` and the names between it and the apex exist.
fn ensure_exists(zone: &mut Zone, apex: &Name, owner: &Name) {
    let mut name = owner.clone();
    while !zone.nodes.contains_key(&name) {
        zone.nodes.insert(name.clone(), Node::default());
        if name == *apex || name.is_root() {
            return;
        }
        name = name.base_name();
    }
}
