//! What `spdy accelerate --check` prints: the sites, and the aliases of other hosts in the operator's zone: which alias is for which
//! host, and what is needed before browsers use them over the site's session.

use serde::Serialize;
use spdy_net::tls::certificates::Identity;
use spdy_proxy::config::Config;
use spdy_proxy::sites::alias_dns_records;
use spdy_proxy::sites::site_table::Sites;

use super::certificates::certificate_files::CertificateFiles;
use crate::output::{BAD, BOLD, DIM, Printer};

/// An alias, and what it is for.
#[derive(Debug, Serialize)]
struct HostNameStatus {
    /// Label and zone.
    name: String,
    /// The origin that is served under it.
    stands_for: String,
    /// The site whose pages it is for.
    site: String,
    /// The built-in name server answers for it.
    has_dns_record: bool,
    /// Whether the certificate contains it; `None` if certificates are generated or ordered, which contain all names.
    is_in_certificate: Option<bool>,
}

/// The line of `--check --json`.
#[derive(Debug, Serialize)]
struct CheckOutput<'a> {
    sites: Vec<&'a str>,
    names: Vec<HostNameStatus>,
}

/// Prints that the configuration is valid, and the aliases of other hosts. `certificates` are those from files.
pub(crate) fn print(
    is_json: bool,
    config: &Config,
    (sites, certificates): (&Sites, &CertificateFiles),
    printer: &Printer,
) -> anyhow::Result<()> {
    let own: Vec<_> = sites.names().collect();
    let names = host_names(config, sites, certificates)?;
    printer.note(format_args!("good: {}", own.join(", ")));
    for name in &names {
        warn(name, printer);
    }
    if is_json {
        return printer.json(&CheckOutput { sites: own, names });
    }
    for status in &names {
        printer.line(format_args!(
            "{BOLD}{}{BOLD:#} {DIM}stands for{DIM:#} {}",
            status.name, status.stands_for
        ))?;
    }
    Ok(())
}

fn host_names(
    config: &Config,
    sites: &Sites,
    certificates: &CertificateFiles,
) -> anyhow::Result<Vec<HostNameStatus>> {
    let elsewhere = alias_dns_records::external_aliases(config, sites);
    let mut all = Vec::new();
    for site in sites.all() {
        let identity = certificate_for(&site.name, certificates)?;
        for named in site.rules.aliases() {
            let is_in_certificate = identity.map(|identity| identity.covers(named.name()));
            all.push(HostNameStatus {
                name: named.name().to_owned(),
                stands_for: named.original_origin(),
                site: site.name.clone(),
                has_dns_record: !elsewhere.iter().any(|(name, _)| name == named.name()),
                is_in_certificate: is_in_certificate.transpose()?,
            });
        }
    }
    Ok(all)
}

/// The certificate that is used for `site`: the first that covers it, else the first of all.
fn certificate_for<'c>(
    site: &str,
    certificates: &'c CertificateFiles,
) -> anyhow::Result<Option<&'c Identity>> {
    for pair in certificates.pairs() {
        if pair.identity.covers(site)? {
            return Ok(Some(&pair.identity));
        }
    }
    Ok(certificates.pairs().first().map(|pair| &pair.identity))
}

fn warn(status: &HostNameStatus, printer: &Printer) {
    let (name, site) = (&status.name, &status.site);
    if !status.has_dns_record {
        printer.note(format_args!(
            "{BAD}{name}{BAD:#} is not served by [dns]: add it to the DNS zone that has it, with the addresses of {site}"
        ));
    }
    if status.is_in_certificate == Some(false) {
        printer.note(format_args!(
            "{BAD}{name}{BAD:#} is not in the site's certificate: browsers refuse it (with another certificate they open another session)"
        ));
    }
}
