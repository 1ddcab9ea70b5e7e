//! `spdy accelerate`: a caching reverse proxy that folds a page's hosts into one session.

use std::net::SocketAddr;
use std::path::PathBuf;

use spdy_accelerator::RunOptions;
use spdy_accelerator::config_source::{environment, read_config};
use spdy_accelerator::start_plan::StartPlan;
use spdy_proxy::config::Config;
use url::Url;

#[cfg(unix)]
use super::audit;
use super::{access_log, check, local_authority, page_notes, ready, schema, try_it};
use crate::args::parse::{parse_address, parse_http_url};
use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::Printer;

/// Arguments of `spdy accelerate`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Configuration file, TOML
    #[arg(value_name = "CONFIG", required_unless_present = "origin")]
    config: Option<PathBuf>,

    /// Accelerate this site without a configuration: images, fonts, media and style sheets of the public hosts that its pages name are
    /// proxied.
    ///
    /// What each page keeps at other hosts, and why, is printed. `spdy accelerate audit URL -o FILE` writes a configuration that also
    /// lists the hosts of scripts.
    #[arg(long, value_name = "URL", conflicts_with = "config", value_parser = parse_http_url::<Url>)]
    origin: Option<Url>,

    /// Address for TLS connections, instead of `listen.tls`; port 0 lets the system choose
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    tls: Vec<SocketAddr>,

    /// Address for connections without TLS, instead of `listen.plain`; port 0 lets the system choose
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    plain: Vec<SocketAddr>,

    /// File of the local authority's certificate, for --cacert of a client or for a browser [default: spdy/ca.pem in the user's
    /// data folder, such as ~/.local/share].
    ///
    /// Its key is stored beside it (ca.pem: ca.key.pem), so that the authority stays the same after a restart.
    #[arg(long, value_name = "FILE")]
    write_ca: Option<PathBuf>,

    /// Check the configuration, print the name of each proxied host, and exit
    #[arg(long)]
    check: bool,

    /// Log each response to stderr, or with --json to stdout
    #[arg(short, long)]
    verbose: bool,

    /// Print the listening addresses as one line of JSON; with --check, the sites and names
    #[arg(long)]
    json: bool,
}

/// Subcommands of `spdy accelerate`.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Predict what an accelerator does for a page: the URLs that it proxies, those that it does not and why, and the time saved
    ///
    /// Every resource of the page is processed with the accelerator's own rules and rewriter. The page is then loaded
    /// in virtual time: without an accelerator, through one that was just started, and through one that has the page in
    /// its cache. A URL is loaded by Chromium; without a browser, the page and the resources that its text names are
    /// fetched. The output names the method. Without --config, the audit lists each host with URLs to
    /// proxy. The exit code is 1 if a load is incomplete.
    #[cfg(unix)]
    #[command(after_help = audit::EXAMPLES)]
    Audit(Box<audit::Args>),
    /// Print the JSON Schema of the configuration
    ///
    /// Editors with TOML support use it to complete and check keys. It contains the keys and their types. Only --check
    /// detects values that do not fit together, such as names, addresses and sizes.
    #[command(after_help = schema::EXAMPLES)]
    Schema(schema::Args),
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy accelerate --origin https://www.example.com"
    "spdy accelerate site.toml --check"
    "spdy accelerate site.toml --verbose --json"
    "spdy accelerate audit https://www.example.com/ -o site.toml"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    match &args.command {
        #[cfg(unix)]
        Some(Command::Audit(args)) => return audit::run(args, printer),
        Some(Command::Schema(args)) => return schema::run(args, printer),
        None => {}
    }
    let config = args.config()?;
    let is_local = config.tls.files().next().is_none();
    let authority = config.tls.write_authority.clone().filter(|_| is_local);
    let plan = StartPlan::new(config)?;
    let notices = printer.notices();
    plan.report_warnings(&notices);
    if args.config.is_some() {
        // With `--origin`, a site of other people is intended.
        plan.report_site_warnings(&notices);
    }
    if args.check {
        plan.report_unreachable_hosts(&notices)?;
        check::print(args.json, &plan, printer)?;
        return Ok(Outcome::Done);
    }
    spdy_accelerator::run(
        plan,
        RunOptions {
            read_config: &|| args.config(),
            on_ready: &|ready| {
                ready::print(args.json, ready, printer)?;
                if let Some(authority) = &authority {
                    try_it::print(ready, authority, printer);
                }
                Ok(())
            },
            access_log: access_log::log(args.verbose, args.json, printer),
            on_page: args.origin.as_ref().map(|_| page_notes::observer(printer)),
            notices,
        },
    )?;
    Ok(Outcome::Done)
}

impl Args {
    /// The configuration, with the options of the command line applied.
    fn config(&self) -> anyhow::Result<Config> {
        let mut config = match (&self.config, &self.origin) {
            (Some(path), _) => read_config(path)?,
            (None, Some(origin)) => Config::for_origin(origin, &environment())
                .map_err(|error| Usage(error.to_string()))?,
            (None, None) => {
                return Err(Usage("expected a configuration file or --origin".to_owned()).into());
            }
        };
        if !self.tls.is_empty() || !self.plain.is_empty() {
            config.listen.tls = Some(self.tls.clone());
            config.listen.plain.clone_from(&self.plain);
        }
        if self.write_ca.is_some() {
            config.tls.write_authority.clone_from(&self.write_ca);
        }
        if !self.check {
            local_authority::set_default(&mut config);
        }
        Ok(config)
    }
}
