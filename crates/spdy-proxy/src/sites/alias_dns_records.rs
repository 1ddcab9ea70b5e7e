//! DNS records for the aliases of other hosts, in the zones that this program serves: those of the site.
//!
//! A browser uses the site's session for an alias if both resolve to the same address. So if this program serves the zone of the aliases,
//! each alias has the records of the site's first name that has any; all other names in that zone do not exist. If another server serves
//! one of the zones, the operator adds the records there.

use spdy_dns::zone_config::{NameConfig, ZoneConfig};

use crate::config::Config;
use crate::config::dns_name::is_in_zone;
use crate::sites::site::Site;
use crate::sites::site_table::Sites;

/// The zones of `config`, with the aliases of `sites`.
#[must_use]
pub fn with_alias_records(config: &Config, sites: &Sites) -> Vec<ZoneConfig> {
    let mut zones = config.dns.zone.clone();
    for site in sites.all() {
        let Some(records) = site_records(&config.dns.zone, site) else {
            continue;
        };
        for named in site.rules.aliases() {
            let Some(zone) = zone_of(&mut zones, named.name()) else {
                continue;
            };
            let is_configured =
                |entry: &NameConfig| absolute_name(&zone.apex, &entry.name) == named.name();
            if !zone.names.iter().any(is_configured) {
                zone.names.push(NameConfig {
                    name: format!("{}.", named.name()),
                    ..records.clone()
                });
            }
        }
    }
    zones
}

/// The aliases that are in no zone of this program, each with the name of the site whose records it needs.
#[must_use]
pub fn external_aliases(config: &Config, sites: &Sites) -> Vec<(String, String)> {
    let zones = with_alias_records(config, sites);
    let named = sites.all().flat_map(|site| {
        let named = site.rules.aliases();
        named.map(|named| (named.name().to_owned(), site.name.clone()))
    });
    // Without `dns.listen`, another server serves the zones.
    let is_served = !config.dns.listen.is_empty();
    let is_served_here =
        |name: &str| is_served && zones.iter().any(|zone| record(zone, name).is_some());
    named.filter(|(name, _)| !is_served_here(name)).collect()
}

/// The DNS records of `site`, with full names.
fn site_records(zones: &[ZoneConfig], site: &Site) -> Option<NameConfig> {
    site.names().find_map(|name| {
        let zone = zones.iter().filter(|zone| is_in_zone(name, &zone.apex));
        let zone = zone.max_by_key(|zone| zone.apex.len())?;
        let record = record(zone, name)?;
        let alias = record.alias.as_ref();
        Some(NameConfig {
            alias: alias.map(|alias| format!("{}.", absolute_name(&zone.apex, alias))),
            ..record.clone()
        })
    })
}

/// The entry of `zone` for `name`: an exact one, or that of a wildcard.
fn record<'a>(zone: &'a ZoneConfig, name: &str) -> Option<&'a NameConfig> {
    let entry_named = |full_name: &str| {
        let mut entries = zone.names.iter();
        entries.find(|entry| absolute_name(&zone.apex, &entry.name) == full_name)
    };
    let above = name.split_once('.').map_or("", |(_, above)| above);
    entry_named(name).or_else(|| entry_named(&format!("*.{above}")))
}

fn zone_of<'a>(zones: &'a mut [ZoneConfig], name: &str) -> Option<&'a mut ZoneConfig> {
    let candidates = zones.iter_mut().filter(|zone| is_in_zone(name, &zone.apex));
    candidates.max_by_key(|zone| zone.apex.len())
}

/// The absolute form of `name` in the zone of `apex`, in lower case and without the dot at the end.
fn absolute_name(apex: &str, name: &str) -> String {
    let apex = apex.trim_end_matches('.');
    let name = match name.strip_suffix('.') {
        Some(name) => name.to_owned(),
        None if name == "@" => apex.to_owned(),
        None => format!("{name}.{apex}"),
    };
    name.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use spdy_rewrite::rules::capability::Keys;

    use super::*;
    use spdy_dns::zones::Zones;

    const SITE: &str = "secret_file = 's'\n[[site]]\nnames = ['www.site.test']\norigin = 'https://o.test'\n\
        [site.rewrite]\nnames_under = 'x.assets.test'\n\
        [[site.rewrite.hosts]]\nhost = 'widgets.test'\nmode = 'name'\nkinds = ['document']\n";

    fn compiled(dns: &str) -> (Config, Sites) {
        let config = Config::parse(&format!("{SITE}{dns}")).expect("a valid value");
        let keys = Keys::from_secrets(&[7; 32], None).expect("the secret is long enough");
        let sites = Sites::compile(&config, &keys).expect("valid sites");
        (config, sites)
    }

    #[test]
    fn zones_without_listener_have_no_records() {
        let zones = "[[dns.zone]]\napex = 'site.test'\nname_servers = ['ns.o.test']\n\
             [[dns.zone.names]]\nname = 'www'\naddresses = ['192.0.2.9']\n\
             [[dns.zone]]\napex = 'assets.test'\nname_servers = ['ns.o.test']\n";
        let (config, sites) = compiled(zones);
        assert_eq!(external_aliases(&config, &sites).len(), 1);
        let (config, sites) = compiled(&format!("[dns]\nlisten = ['127.0.0.1:53']\n{zones}"));
        assert!(external_aliases(&config, &sites).is_empty());
    }

    #[test]
    fn alias_has_records_of_its_site_and_unknown_names_have_none() {
        let (config, sites) = compiled(
            "[dns]\nlisten = ['127.0.0.1:53']\n\
             [[dns.zone]]\napex = 'site.test'\nname_servers = ['ns.o.test']\n\
             [[dns.zone.names]]\nname = '@'\naddresses = ['192.0.2.1']\n\
             [[dns.zone.names]]\nname = 'www'\naddresses = ['192.0.2.9', '2001:db8::9']\nhttps = { alpn = ['h2'] }\n\
             [[dns.zone]]\napex = 'assets.test'\nname_servers = ['ns.o.test']\n",
        );
        let zones = with_alias_records(&config, &sites);
        let name = sites.alias_names().next().expect("there is an alias");
        let record = record(&zones[1], name).expect("the alias has records");
        assert_eq!(record.addresses.len(), 2);
        assert_eq!(record.https.as_ref().expect("HTTPS").alpn, ["h2"]);
        assert!(super::record(&zones[1], "other.x.assets.test").is_none());
        assert!(external_aliases(&config, &sites).is_empty());
        Zones::new(&zones).expect("zones that can be served");
    }

    /// Names of zones are compared without regard to case (RFC 4343 §3).
    #[test]
    fn zone_name_may_be_upper_case() {
        let (config, sites) = compiled(
            "[dns]\nlisten = ['127.0.0.1:53']\n\
             [[dns.zone]]\napex = 'Site.TEST'\nname_servers = ['ns.o.test']\n\
             [[dns.zone.names]]\nname = 'WWW'\naddresses = ['192.0.2.9']\n\
             [[dns.zone]]\napex = 'Assets.test.'\nname_servers = ['ns.o.test']\n",
        );
        assert!(external_aliases(&config, &sites).is_empty());
        let zones = with_alias_records(&config, &sites);
        let name = sites.alias_names().next().expect("there is an alias");
        let record = record(&zones[1], name).expect("the alias has records");
        assert_eq!(record.addresses.len(), 1);
        Zones::new(&zones).expect("zones that can be served");
    }

    #[test]
    fn cname_of_site_applies_to_its_aliases() {
        let (config, sites) = compiled(
            "[[dns.zone]]\napex = 'site.test'\nname_servers = ['ns.o.test']\n\
             [[dns.zone.names]]\nname = 'www'\nalias = '@'\n\
             [[dns.zone]]\napex = 'x.assets.test.'\nname_servers = ['ns.o.test']\n",
        );
        let zones = with_alias_records(&config, &sites);
        let name = sites.alias_names().next().expect("there is an alias");
        let record = record(&zones[1], name).expect("the alias has records");
        assert_eq!(record.alias.as_deref(), Some("site.test."));
    }

    #[test]
    fn externally_hosted_aliases_are_reported_with_their_site() {
        let (config, sites) = compiled("");
        let name = sites
            .alias_names()
            .next()
            .expect("there is an alias")
            .to_owned();
        let external = external_aliases(&config, &sites);
        assert_eq!(external, [(name, "www.site.test".to_owned())]);
    }
}
