//! The aliases of other hosts in the operator's zone: which alias is for which host, and what is needed before browsers use it over
//! the site's session.

use serde::Serialize;
use spdy_net::tls::certificates::Identity;
use spdy_proxy::sites::alias_dns_records;

use crate::certificates::certificate_files::CertificateFiles;
use crate::start_plan::StartPlan;

/// An alias, and what it is for.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostAliasStatus {
    /// The name of the alias: label and zone.
    pub name: String,
    /// The origin that is served under it.
    pub stands_for: String,
    /// The site whose pages it is for.
    pub site: String,
    /// True if the built-in name server answers for it.
    pub has_dns_record: bool,
    /// Whether the certificate contains it; `None` if certificates are generated or ordered, which contain all names.
    pub is_in_certificate: Option<bool>,
}

/// The aliases of all sites of `plan`.
///
/// # Errors
///
/// A certificate file cannot be read as a certificate.
pub fn host_aliases(plan: &StartPlan) -> anyhow::Result<Vec<HostAliasStatus>> {
    let external = alias_dns_records::external_aliases(&plan.config, &plan.sites);
    let mut all = Vec::new();
    for site in plan.sites.all() {
        let identity = certificate_for(&site.name, &plan.certificates)?;
        for alias in site.rules.aliases() {
            let is_in_certificate = identity.map(|identity| identity.covers(alias.name()));
            all.push(HostAliasStatus {
                name: alias.name().to_owned(),
                stands_for: alias.original_origin(),
                site: site.name.clone(),
                has_dns_record: !external.iter().any(|(name, _)| name == alias.name()),
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
