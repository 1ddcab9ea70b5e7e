//! `spdy accelerate audit`: what an accelerator would do for a page, and what that would save.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;
use spdy_accelerator::config_source::read_config;
use spdy_accelerator::origins::address_rules::address_rules;
use spdy_accelerator::origins::upstream_needs::UpstreamNeeds;
use spdy_lab::audit::case::{Audit, AuditCase};
use spdy_page::replica::Replica;
use spdy_proxy::config::Config;
use spdy_proxy::config::learn::LearnConfig;
use spdy_rewrite::rules::config::Config as Rewrite;
use spdy_sim::accelerator::site::OperatorConfig;
use spdy_sim::options::Accelerator;
use spdy_sim::options::Cache;

use super::page::{LiveArgs, PageSource, page};
use super::picture;
use super::report;
use super::site_file::{SiteFacts, SiteFile};
use crate::args::{ConditionArgs, PageLoadArgs};
use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::{AtomicFile, BOLD, Printer, WARN, encode_picture, parse_picture_path};

/// Direct resources in the report.
const SHOWN_RESOURCES: usize = 20;

/// Arguments of `spdy accelerate audit`.
#[derive(Debug, clap::Args)]
// What it saves differs by network more than what a change of the page does.
#[command(mut_arg("networks", |arg| arg.default_value("dsl,3g,lte,fibre")))]
pub(crate) struct Args {
    /// The page: a URL, a shipped page (such as flags, portal, mineki), a replica, a .har or a .warc file
    #[arg(value_name = "URL|REPLICA")]
    page: String,

    /// Use this configuration [default: one that lists each host with URLs to proxy; it is printed]
    #[arg(long, value_name = "CONFIG")]
    config: Option<PathBuf>,

    /// Write a configuration for the page's site to this new file. Its secret is created beside it (site.toml: site.secret)
    #[arg(short, long, value_name = "FILE", conflicts_with = "config")]
    output: Option<PathBuf>,

    /// Draw the page's loads over the first network, direct and through the accelerator, to this file: .svg or .png
    #[arg(long, value_name = "FILE", value_parser = parse_picture_path)]
    picture: Option<PathBuf>,

    #[command(flatten)]
    conditions: ConditionArgs,

    /// Print everything as one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    live: LiveArgs,

    #[command(flatten)]
    choices: PageLoadArgs,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy accelerate audit https://www.example.com/ -o site.toml --picture site.svg"
    "spdy accelerate audit portal --network dsl --backhaul 20ms"
    "spdy accelerate audit page.har --config site.toml --protocol h2"
    "spdy accelerate audit page.warc.gz --json"
};

/// An audit of a page.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AuditOutput<'a> {
    /// How the page was loaded.
    source: PageSource,
    /// Deviations from the original page, one sentence each.
    remarks: &'a [String],
    /// The result of the audit.
    #[serde(flatten)]
    audit: &'a Audit,
    /// Keys of `[upstream]` that the accelerator needs to reach the proxied hosts.
    upstream: &'a UpstreamNeeds,
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let options = args.choices.options()?;
    if options.accelerator != Accelerator::Off || options.cache != Cache::Cold {
        let reason = "an audit always loads a page without the accelerator, then through a cold and a warm one, with an empty cache: remove \
                   `accelerator` and `cache`";
        return Err(Usage(reason.to_owned()).into());
    }
    let config = args.config.as_deref().map(read_config);
    let config = config.transpose()?;
    let networks = args.conditions.networks(printer)?;
    // Before the audit, which takes time.
    let output = args.output.as_deref().map(SiteFile::create).transpose()?;
    let picture = args
        .picture
        .as_deref()
        .map(AtomicFile::create)
        .transpose()?;
    let page = page(&args.page, &args.live, printer)?;
    let operator = config
        .as_ref()
        .map(|config| operator_config(config, &page.replica))
        .transpose()?;
    let upstream = config.as_ref().map(|config| config.upstream.clone());
    let upstream = upstream.unwrap_or_default();
    let case = AuditCase {
        replica: page.replica,
        runs: args.conditions.runs_over(&networks),
        networks,
        protocol: args.conditions.protocol,
        options,
        operator,
        learn: config.map_or_else(LearnConfig::default, |config| config.learn),
        seed: args.conditions.seed,
    };
    let audit = audit(&case, args, printer)?;
    let addresses = addresses(&case.replica, &args.live);
    let rules = address_rules(&upstream)?;
    let needs_of = |hosts: &BTreeSet<&str>| {
        UpstreamNeeds::of_hosts(hosts.iter().copied(), &addresses, &upstream, &rules)
    };
    let needs = needs_of(&foreign_hosts(&audit));
    if args.json {
        printer.json(&AuditOutput {
            source: page.source,
            remarks: &page.remarks,
            audit: &audit,
            upstream: &needs,
        })?;
    } else {
        let written = args.output.as_deref();
        let text = report::render(&audit, page.source, SHOWN_RESOURCES, &needs, written);
        printer.line(text)?;
    }
    if let (Some(file), Some(path)) = (picture, &args.picture) {
        let svg = picture::draw(&audit, case.seed);
        file.write(&encode_picture(svg, path))?;
        printer.note(format_args!("picture: {BOLD}{}{BOLD:#}", path.display()));
    }
    if let Some(output) = output {
        let page = &case.replica.document().url;
        let host = page.host_str().unwrap_or_default();
        let of_origin = needs_of(&BTreeSet::from([host]));
        let address = of_origin.resolve.get(host).copied().flatten();
        // A page of the public web must not open private addresses to its hosts: only the command line may.
        let trusted = match address {
            Some(_) => addresses.clone(),
            None => args.live.addresses(),
        };
        let hosts = foreign_hosts(&audit);
        let needs = UpstreamNeeds::of_hosts(hosts, &trusted, &upstream, &rules);
        let facts = SiteFacts {
            page,
            advice: &audit.advice,
            needs: &needs,
            address,
        };
        output.write(&facts, printer)?;
    }
    for failure in &audit.failures {
        let (load, network, reason, more) = (
            failure.load,
            &failure.network,
            &failure.reason,
            failure.more,
        );
        printer.note(format_args!(
            "{WARN}incomplete{WARN:#}: {load} over {network}: {reason} (and {more} more); the times are of the resources that arrived"
        ));
    }
    Ok(Outcome::done_if(audit.failures.is_empty()))
}

/// The names, without ports, of other hosts that are proxied, and of those that are advised.
fn foreign_hosts(audit: &Audit) -> BTreeSet<&str> {
    let advised = audit.advice.hosts.iter().map(|it| &it.entry.host);
    let proxied = audit.survey.hosts.iter();
    let proxied = proxied.filter(|host| host.proxied + host.aliased > 0);
    let hosts = advised.chain(proxied.map(|host| &host.host));
    hosts
        .map(|host| host.split(':').next().unwrap_or_default())
        .collect()
}

/// The addresses of hosts: those of the command line, then those that were recorded.
fn addresses(replica: &Replica, live: &LiveArgs) -> BTreeMap<String, IpAddr> {
    let mut addresses = live.addresses();
    for exchange in &replica.exchanges {
        if let (Some(host), Some(address)) = (exchange.url.domain(), exchange.address) {
            addresses.entry(host.to_owned()).or_insert(address);
        }
    }
    addresses
}

/// The configuration of the site that the page belongs to.
fn operator_config(config: &Config, replica: &Replica) -> anyhow::Result<OperatorConfig> {
    let host = replica.document().url.host_str().unwrap_or_default();
    let mut sites = config.site.iter();
    let by_name = sites.find(|site| site.names.iter().any(|name| name == host));
    let site = by_name.or_else(|| config.site.iter().find(|site| site.has_name(host)));
    let Some(site) = site else {
        let names = config.site.iter().flat_map(|site| &site.names);
        let names: Vec<_> = names.map(String::as_str).collect();
        let names = names.join(", ");
        return Err(Usage(format!(
            "no site has the host {host} of the page: expected one of {names}"
        ))
        .into());
    };
    // The virtual accelerator has a listener for each name.
    let is_wildcard = |name: &&String| name.starts_with("*.");
    let (wildcards, complete): (Vec<_>, Vec<_>) = site.names.iter().partition(is_wildcard);
    let mut names: Vec<String> = complete.into_iter().cloned().collect();
    let mut rewrite = site.rewrite.clone();
    rewrite.own_hosts.extend(wildcards.into_iter().cloned());
    if !names.iter().any(|name| name == host) {
        names.push(host.to_owned());
    }
    Ok(OperatorConfig {
        names,
        // An audit changes no page, and reports what the rules would do.
        rewrite: Rewrite {
            dry_run: false,
            ..rewrite
        },
        cache: config.cache.clone(),
    })
}

fn audit(case: &AuditCase, args: &Args, printer: &Printer) -> anyhow::Result<Audit> {
    let mut bar = None;
    let audit = case.audit(args.choices.threads(), |_, total| {
        let bar = bar.get_or_insert_with(|| printer.progress(total as u64, "loading"));
        bar.inc(1);
        ControlFlow::Continue(())
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let audit = audit.map_err(anyhow::Error::msg);
    let audit = audit.with_context(|| format!("cannot audit {}", args.page))?;
    Ok(audit.expect("an audit without a stop flag runs to its end"))
}
