//! `spdy accelerate`: a caching reverse proxy that folds a page's hosts into one session.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use http::HeaderValue;
use serde::Serialize;
use spdy::Metrics;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_dns::guard::AddressRules;
use spdy_dns::guarded_network::GuardedNetwork;
use spdy_net::admission::Conduct;
use spdy_net::calendar::Calendar;
use spdy_net::certificates::{Identity, KeyKind, LocalCa, certificates_from_pem};
use spdy_net::error::ConnectionError;
use spdy_net::latch::Latch;
use spdy_net::limit::LimitHits;
use spdy_net::network::{BoxIo, SharedNetwork, SystemNetwork};
use spdy_net::protocol::Protocol;
use spdy_net::quic::QuicIncoming;
use spdy_net::seat::Seat;
use spdy_net::serve::ServerOptions;
use spdy_net::tls::{ClientTls, ServerTls, TlsOptions};
use spdy_net::verify::{Roots, Trust};
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::sites::Sites;
use spdy_proxy::upstream::Upstream;
use spdy_proxy::visit::Visit;
use url::Url;

use crate::commands::serve_limits::Limits;
use crate::commands::serve_listen::{self, Door, Listening};
use crate::commands::signals::Signals;
use crate::commands::{Outcome, Usage};
use crate::help::examples;
use crate::printer::{BOLD, DIM, Printer};

/// Bytes of the secret that capabilities are made with.
const SECRET_BYTES: usize = 32;

/// What `spdy accelerate` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The configuration, TOML
    #[arg(value_name = "CONFIG", required_unless_present = "origin")]
    config: Option<PathBuf>,

    /// Accelerate this site with everything at its default
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    origin: Option<Url>,

    /// Take TLS connections here, instead of where the configuration says; port 0 lets the system choose
    #[arg(long, value_name = "ADDR")]
    tls: Vec<SocketAddr>,

    /// Take plain connections here, likewise
    #[arg(long, value_name = "ADDR")]
    plain: Vec<SocketAddr>,

    /// Write the authority that signed the certificate made on the spot: what --cacert of a client wants
    #[arg(long, value_name = "FILE")]
    write_ca: Option<PathBuf>,

    /// Say what is wrong with the configuration, and end
    #[arg(long)]
    check: bool,

    /// Tell where it listens as one line of JSON on stdout
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    limits: Limits,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy accelerate --origin https://www.example.com --tls 127.0.0.1:8443 --write-ca ca.pem"
    "spdy accelerate site.toml --check"
    "spdy accelerate site.toml --json"
};

/// The line of `--json`.
#[derive(Debug, Serialize)]
struct Ready<'a> {
    listening: &'a [&'a Listening],
    protocols: Vec<&'static str>,
    sites: Vec<&'a str>,
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let config = read(args)?;
    let sites = compile(&config)?;
    if args.check {
        let names: Vec<_> = sites.names().collect();
        printer.note(format_args!("good: {}", names.join(", ")));
        return Ok(Outcome::Done);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(accelerate(args, &config, sites, printer))?;
    Ok(Outcome::Done)
}

/// The configuration, with what the command line says instead.
fn read(args: &Args) -> anyhow::Result<Config> {
    let mut config = match (&args.config, &args.origin) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            Config::read(&text).map_err(|error| Usage(format!("{}: {error}", path.display())))?
        }
        (None, Some(origin)) => {
            Config::of_origin(origin).map_err(|error| Usage(error.to_string()))?
        }
        (None, None) => return Err(Usage("want a configuration, or --origin".to_owned()).into()),
    };
    if !args.tls.is_empty() || !args.plain.is_empty() {
        config.listen.tls.clone_from(&args.tls);
        config.listen.plain.clone_from(&args.plain);
    }
    if args.write_ca.is_some() {
        config.tls.write_authority.clone_from(&args.write_ca);
    }
    Ok(config)
}

fn compile(config: &Config) -> anyhow::Result<Sites> {
    let secret = secret(config)?;
    let sites = Sites::compile(config, &secret).map_err(|error| Usage(error.to_string()))?;
    Ok(sites)
}

/// What capabilities are made with: the operator's, or one that lives as long as the program.
fn secret(config: &Config) -> anyhow::Result<Vec<u8>> {
    let Some(path) = &config.secret_file else {
        let mut secret = vec![0; SECRET_BYTES];
        getrandom::fill(&mut secret).map_err(|error| anyhow::anyhow!("no chance: {error}"))?;
        return Ok(secret);
    };
    let secret = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let len = secret.trim_ascii().len();
    if len < SECRET_BYTES {
        let what = path.display();
        let why = format!("{what}: want a secret of {SECRET_BYTES} bytes or more, got {len}");
        return Err(Usage(why).into());
    }
    Ok(secret.trim_ascii().to_vec())
}

async fn accelerate(
    args: &Args,
    config: &Config,
    sites: Sites,
    printer: &Printer,
) -> anyhow::Result<()> {
    let protocols = config.protocols()?;
    let mut doors = bind(config)?;
    let tls = match config.listen.tls.is_empty() {
        true => None,
        false => Some(server_tls(config, &sites, &protocols, printer)?),
    };
    let hits = LimitHits::default();
    let options = args.limits.of_connections(None::<Metrics>, hits.clone());
    let options = ServerOptions {
        http2_push: config.learn.push,
        ..options
    };
    let runtime = SharedRuntime::new(TokioRuntime::start());
    if let Some(tls) = tls
        .as_ref()
        .filter(|_| protocols.contains(&Protocol::Http3))
    {
        serve_listen::bind_quic(&mut doors, tls, &options, &runtime)?;
    }
    let own = doors.iter().map(|door| door.about.address).collect();
    let upstream = upstream(config, &sites, own, &runtime)?;
    let names: Vec<String> = sites.names().map(str::to_owned).collect();
    let calendar = Calendar::default();
    let proxy = Proxy::new(
        sites,
        upstream,
        &config.cache,
        &config.learn,
        runtime.clone(),
        calendar,
    );
    let listening: Vec<&Listening> = doors.iter().map(|door| &door.about).collect();
    let mut signals = Signals::listen()?;
    announce(args, &protocols, &names, &listening, printer)?;

    let stop = Latch::new();
    let listen_options = args.limits.of_listeners(hits.clone());
    let mut running = tokio::task::JoinSet::new();
    for door in doors {
        let alt_svc = door.alt_svc();
        let served = Served {
            proxy: proxy.clone(),
            protocols: Protocol::over_tcp(&protocols),
            tls: tls.clone().filter(|_| door.about.tls),
            options: options.clone(),
            runtime: runtime.clone(),
            stop: stop.clone(),
            alt_svc,
        };
        if let Some(listener) = door.quic {
            let (served, options) = (served.clone(), listen_options.clone());
            running.spawn(
                listener.run(options, stop.clone(), move |incoming, from, seat| {
                    served.clone().quic(incoming, from, seat)
                }),
            );
        }
        if let Some(listener) = door.tcp {
            let (served, options) = (served.clone(), listen_options.clone());
            running.spawn(listener.run(options, stop.clone(), move |io, from, seat| {
                served.clone().tcp(io, from, seat)
            }));
        }
    }
    signals.any().await?;
    printer.note(format_args!("{DIM}stopping{DIM:#}"));
    stop.set();
    while running.join_next().await.is_some() {}
    proxy.close().await;
    Ok(())
}

/// What a connection is served with.
#[derive(Clone)]
struct Served {
    proxy: Arc<Proxy>,
    protocols: Vec<Protocol>,
    tls: Option<ServerTls>,
    options: ServerOptions,
    runtime: SharedRuntime,
    stop: Latch,
    alt_svc: Option<HeaderValue>,
}

impl Served {
    fn visit(&self, from: SocketAddr, alt_svc: Option<HeaderValue>) -> Arc<Visit> {
        Arc::new(Visit::new(self.proxy.clone(), Some(from.ip()), alt_svc))
    }

    async fn tcp(self, io: BoxIo, from: SocketAddr, seat: Seat) -> Conduct {
        let visit = self.visit(from, self.alt_svc.clone());
        let options = ServerOptions {
            seat,
            ..self.options
        };
        let (protocols, tls) = (&self.protocols, self.tls.as_ref());
        conduct(
            spdy_net::serve::serve_connection(
                io,
                visit,
                protocols,
                tls,
                &options,
                &self.runtime,
                &self.stop,
            )
            .await,
        )
    }

    async fn quic(self, incoming: QuicIncoming, from: SocketAddr, seat: Seat) -> Conduct {
        let visit = self.visit(from, None);
        let options = ServerOptions {
            seat,
            ..self.options
        };
        let served =
            spdy_net::serve::serve_quic(incoming, visit, &options, &self.runtime, &self.stop);
        conduct(served.await)
    }
}

fn conduct(served: Result<(), ConnectionError>) -> Conduct {
    match served {
        Err(error) if error.is_abuse() => Conduct::Abusive,
        _ => Conduct::Fair,
    }
}

/// The sockets.
fn bind(config: &Config) -> anyhow::Result<Vec<Door>> {
    let wanted = [(&config.listen.tls, true), (&config.listen.plain, false)];
    let mut doors = Vec::new();
    for (addresses, tls) in wanted {
        for &address in addresses {
            let listener = serve_listen::bind(address)?;
            doors.push(Door {
                about: Listening {
                    address: listener.address(),
                    tls,
                    quic: false,
                    host: None,
                },
                tcp: Some(listener),
                quic: None,
            });
        }
    }
    Ok(doors)
}

/// The certificate that was given, or one for every name that is answered for.
fn server_tls(
    config: &Config,
    sites: &Sites,
    protocols: &[Protocol],
    printer: &Printer,
) -> anyhow::Result<ServerTls> {
    let identity = match (&config.tls.certificate, &config.tls.key) {
        (Some(certificate), Some(key)) => Identity::from_files(certificate, key)?,
        _ => {
            let authority = LocalCa::generate(KeyKind::EcdsaP256)?;
            if let Some(path) = &config.tls.write_authority {
                std::fs::write(path, authority.pem())
                    .with_context(|| format!("cannot write {}", path.display()))?;
                let path = path.display();
                printer.note(format_args!("{DIM}wrote the authority to {path}{DIM:#}"));
            }
            let names: Vec<String> = sites.names().map(str::to_owned).collect();
            let addresses = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            authority
                .issue(&names, &addresses)
                .context("cannot make a certificate")?
        }
    };
    Ok(ServerTls::new(
        &identity,
        protocols,
        &TlsOptions::default(),
    )?)
}

/// Origins, and the guard before those of others.
fn upstream(
    config: &Config,
    sites: &Sites,
    own: Vec<SocketAddr>,
    runtime: &SharedRuntime,
) -> anyhow::Result<Upstream> {
    let config = &config.upstream;
    let mut allow = Vec::new();
    for range in &config.allow_addresses {
        allow.push(range.parse().map_err(|_| {
            let what = "upstream.allow_addresses";
            Usage(format!("{what}: want a range as 10.0.0.0/8, got {range:?}"))
        })?);
    }
    let mut rules = AddressRules {
        allow,
        own,
        ..AddressRules::default()
    };
    rules.ports.extend(&config.allow_ports);
    let mut authorities = Vec::new();
    for path in &config.authorities {
        let pem = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        authorities.extend(certificates_from_pem(&pem, &path.display().to_string())?);
    }
    let trust = Trust {
        roots: Roots::SystemAnd(authorities),
        ..Trust::default()
    };
    let tls = ClientTls::new(&trust, &TlsOptions::default())?;
    let network: SharedNetwork = Arc::new(SystemNetwork);
    let guarded: SharedNetwork = Arc::new(GuardedNetwork::new(network.clone(), rules));
    let addresses = sites.addresses().to_vec();
    Ok(Upstream::new(
        config,
        Some(&tls),
        addresses,
        network,
        guarded,
        runtime,
    ))
}

/// Says where it listens, and for whom.
fn announce(
    args: &Args,
    protocols: &[Protocol],
    names: &[String],
    listening: &[&Listening],
    printer: &Printer,
) -> anyhow::Result<()> {
    for one in listening {
        let scheme = if one.tls { "https" } else { "http" };
        let here = protocols.iter();
        let here = here.filter(|protocol| one.quic || !protocol.is_over_quic());
        let here: Vec<_> = here.map(|protocol| protocol.alpn()).collect();
        printer.note(format_args!(
            "listening on {BOLD}{scheme}://{}/{BOLD:#} {DIM}({}){DIM:#}",
            one.address,
            here.join(", ")
        ));
    }
    printer.note(format_args!("accelerating {}", names.join(", ")));
    if args.json {
        printer.json(&Ready {
            listening,
            protocols: protocols.iter().map(|protocol| protocol.alpn()).collect(),
            sites: names.iter().map(String::as_str).collect(),
        })?;
    }
    Ok(())
}
