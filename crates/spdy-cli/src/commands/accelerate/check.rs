//! Prints the result of `spdy accelerate --check`: the sites, and the aliases of other hosts.

use serde::Serialize;
use spdy_accelerator::check::{HostAliasStatus, host_aliases};
use spdy_accelerator::start_plan::StartPlan;

use crate::output::{BAD, BOLD, DIM, Printer};

/// A valid configuration.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CheckOutput<'a> {
    /// The first name of each site.
    sites: &'a [&'a str],
    /// The aliases of other hosts.
    names: &'a [HostAliasStatus],
}

/// Prints that the configuration is valid, and the aliases.
pub(super) fn print(is_json: bool, plan: &StartPlan, printer: &Printer) -> anyhow::Result<()> {
    let sites: Vec<_> = plan.site_names().collect();
    let aliases = host_aliases(plan)?;
    printer.note(format_args!("good: {}", sites.join(", ")));
    for alias in &aliases {
        warn(alias, printer);
    }
    if is_json {
        return printer.json(&CheckOutput {
            sites: &sites,
            names: &aliases,
        });
    }
    for alias in &aliases {
        printer.line(format_args!(
            "{BOLD}{}{BOLD:#} {DIM}stands for{DIM:#} {}",
            alias.name, alias.stands_for
        ))?;
    }
    Ok(())
}

fn warn(alias: &HostAliasStatus, printer: &Printer) {
    let (name, site) = (&alias.name, &alias.site);
    if !alias.has_dns_record {
        printer.note(format_args!(
            "{BAD}{name}{BAD:#} is not served by [dns]: add it to the DNS zone that has it, with the addresses of {site}"
        ));
    }
    if alias.is_in_certificate == Some(false) {
        printer.note(format_args!(
            "{BAD}{name}{BAD:#} is not in the site's certificate: browsers refuse it (with another certificate they open another session)"
        ));
    }
}
