//! The options of `spdy fetch`, and the transfers that they make.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Uri, header};
use spdy::client::PushLimits;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_client::client::{Client, Config};
use spdy_client::origin::Origin;
use spdy_net::network::SystemNetwork;
use spdy_net::protocol::Protocol;
use spdy_net::tap::Tap;
use spdy_net::tls::pins::Pin;
use spdy_net::tls::verify::{Roots, Trust};
use spdy_net::tls::{ClientTls, KeyLogTarget, TlsOptions};

use super::file_names::FileNames;
use super::frame_printer::FramePrinter;
use super::push;
use super::request::{Destination, FetchRequest};
use super::result::FetchResult;
use super::transfer::{BufferedBytes, Transfer};
use crate::args::parse::{parse_http_url, parse_seconds};
use crate::args::{BlockArgs, RequestArgs};
use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::Printer;

/// Arguments of `spdy fetch`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// URLs to fetch, all at once; those of one origin share a session if the protocol allows it
    #[arg(value_name = "URL", required = true, value_parser = parse_http_url::<Uri>)]
    urls: Vec<Uri>,

    /// Use only this protocol: spdy/3.1, spdy/3, spdy/2, h2, http/1.1 or h3.
    ///
    /// By default https:// negotiates any of them but h3, and http:// uses http/1.1. Without TLS the protocol is used
    /// by prior knowledge. h3 uses QUIC and needs https://.
    #[arg(short, long, value_name = "NAME")]
    protocol: Option<Protocol>,

    /// Print the frames in both directions, or the HTTP/1.1 heads, to stderr
    #[arg(short, long)]
    verbose: bool,

    /// Print one JSON object a URL instead of the bodies
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    order: TargetArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    trust: TrustArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The request and its redirects.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Request")]
struct TargetArgs {
    #[command(flatten)]
    request: RequestArgs,

    /// Send a HEAD request and print the response head
    #[arg(short = 'I', long, conflicts_with_all = ["method", "data"])]
    head: bool,

    /// Follow redirects; a request to another origin has no header that may hold a secret
    #[arg(short = 'L', long)]
    location: bool,

    /// Largest number of redirects for one URL
    #[arg(long, value_name = "N", default_value_t = 10, requires = "location")]
    max_redirects: usize,
}

/// The files for bodies.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Write the body to this file; for one URL
    #[arg(short, long, value_name = "FILE", conflicts_with = "output_dir")]
    output: Option<PathBuf>,

    /// Write each body to a file in this folder, named by the end of its URL
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,

    /// Count a response with status 400 or above as failed
    #[arg(short, long)]
    fail: bool,
}

/// Trust in certificates and keys.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Certificates")]
struct TrustArgs {
    /// Trust only the authorities in this PEM file
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// Require this public key of the server, as sha256//BASE64; may be repeated
    #[arg(long = "pin", value_name = "PIN")]
    pins: Vec<Pin>,

    /// Accept any certificate; pins are still checked
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    insecure: bool,
}

/// How origins are reached, and how pushes are handled.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
struct ConnectionArgs {
    /// Connect to ADDRESS for requests to HOST:PORT; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDRESS", value_parser = parse_resolve)]
    resolve: Vec<(String, u16, IpAddr)>,

    /// Time limit for each URL, in seconds [default: none, but 60 without a byte]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    max_time: Option<Duration>,

    #[command(flatten)]
    blocks: BlockArgs,

    /// Neither obey nor enforce SPDY's windows, for peers without flow control (spdystream)
    #[arg(long)]
    no_flow_control: bool,

    /// Handle SPDY pushes: refuse, or accept.
    ///
    /// With accept, URLs are requested one after the other, and a push answers the request for its URL. Other pushes
    /// are fetched too; their files never replace another file.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "refuse",
        hide_possible_values = true
    )]
    push: Pushes,

    /// Largest number of bytes in all pushes that answer no request; a push that exceeds it is cancelled
    #[arg(long, value_name = "BYTES", default_value_t = 64 * 1024 * 1024)]
    push_bytes: u64,

    /// Accept capitals in SPDY's header names, for servers that send them (MockWebServer).
    ///
    /// Without it, such a response is reset.
    #[arg(long)]
    fold_names: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Pushes {
    Refuse,
    Accept,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy fetch -v --protocol spdy/3.1 http://127.0.0.1:8080/"
    "spdy fetch --cacert ca.pem https://localhost:8443/ https://localhost:8443/style.css"
    "spdy fetch --protocol h2 --insecure --json https://127.0.0.1:8443/"
    "spdy fetch --protocol h3 --cacert ca.pem https://localhost:8443/"
    "spdy fetch --protocol http/1.1 -H 'range: bytes=0-99' http://127.0.0.1:8080/big -o part"
    "spdy fetch --protocol spdy/3.1 --push accept --json http://127.0.0.1:8080/"
    "spdy fetch --pin sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= https://example.org/"
};

fn parse_resolve(text: &str) -> Result<(String, u16, IpAddr), String> {
    const EXPECTED: &str = "expected HOST:PORT:ADDRESS";
    // The host may be an IPv6 address in brackets, the address may be one without.
    let after_host = if text.starts_with('[') {
        text.find(']').ok_or(EXPECTED)?
    } else {
        0
    };
    let colon = text[after_host..].find(':').ok_or(EXPECTED)? + after_host;
    let (host, rest) = (&text[..colon], &text[colon + 1..]);
    let (port, address) = rest.split_once(':').ok_or(EXPECTED)?;
    let port = port
        .parse()
        .map_err(|_| format!("{port:?} is not a port; {EXPECTED}"))?;
    let bare = |text: &str| {
        text.trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned()
    };
    let address = bare(address);
    let address = address
        .parse()
        .map_err(|_| format!("{address:?} is not an IP address; {EXPECTED}"))?;
    Ok((bare(host), port, address))
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let mut names = FileNames::default();
    let orders = fetch_requests(args, &mut names)?;
    // One thread prints frames in the order of the wire, and no work here needs more cores.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(fetch(args, orders, names, printer))
}

fn accepts_pushes(args: &Args) -> bool {
    args.connection.push == Pushes::Accept
}

/// Builds the requests for all URLs and checks them before the first one is sent.
fn fetch_requests(args: &Args, names: &mut FileNames) -> anyhow::Result<Vec<FetchRequest>> {
    if args.output.output.is_some() && args.urls.len() > 1 {
        return Err(
            Usage("--output is for one URL: use --output-dir for several".to_owned()).into(),
        );
    }
    let request_args = &args.order.request;
    let body = request_args.body()?;
    let method = match args.order.head {
        true => Method::HEAD,
        false => request_args.method(),
    };
    let mut usual = vec![(header::ACCEPT, "*/*")];
    if request_args.has_body() {
        usual.push((header::CONTENT_TYPE, "application/x-www-form-urlencoded"));
    }
    let headers = request_args.headers(&usual);
    args.urls
        .iter()
        .map(|url| {
            Origin::of(url).map_err(|error| Usage(error.to_string()))?;
            let destination = match &args.output.output {
                Some(file) => Destination::File(file.clone()),
                None => match named_file(args, names, url) {
                    Some(file) => Destination::File(file),
                    None if args.json => Destination::Discard,
                    None => Destination::Stdout,
                },
            };
            Ok(FetchRequest {
                url: url.clone(),
                method: method.clone(),
                headers: headers.clone(),
                body: body.clone(),
                redirects: if args.order.location {
                    args.order.max_redirects
                } else {
                    0
                },
                print_head: args.order.head && !args.json,
                destination,
            })
        })
        .collect()
}

/// The file named by the end of `url`, if `--output-dir` is set.
fn named_file(args: &Args, names: &mut FileNames, url: &Uri) -> Option<PathBuf> {
    let folder = args.output.output_dir.as_deref()?;
    Some(folder.join(names.of(url)))
}

/// The file of a push. The server chose its name, so it is neither an existing file nor a hidden one.
fn named_file_of_push(args: &Args, names: &mut FileNames, url: &Uri) -> Option<PathBuf> {
    let folder = args.output.output_dir.as_deref()?;
    let is_there = |name: &str| folder.join(name).symlink_metadata().is_ok();
    Some(folder.join(names.of_push(url, is_there)))
}

fn config(args: &Args, tap: Option<Arc<dyn Tap>>) -> anyhow::Result<Config> {
    let trust = Trust {
        roots: match &args.trust.cacert {
            Some(file) => Roots::File(file.clone()),
            None => Roots::System,
        },
        pins: args.trust.pins.clone(),
        insecure: args.trust.insecure,
        ..Trust::default()
    };
    let tls = match args
        .urls
        .iter()
        .any(|url| url.scheme_str() == Some("https"))
        || args.order.location
    {
        false => None,
        true => {
            let mut options = TlsOptions::default();
            options.key_log = KeyLogTarget::Environment;
            Some(ClientTls::new(&trust, &options)?)
        }
    };
    let resolve = args.connection.resolve.iter().cloned();
    let mut client = Config::default();
    client.protocols = args
        .protocol
        .map_or(Protocol::ALL.to_vec(), |only| vec![only]);
    // Without TLS there is no ALPN, so the protocol cannot be negotiated; HTTP/1.1 is the most common.
    client.plain_protocol = args.protocol.unwrap_or(Protocol::Http1);
    client.tls = tls;
    client.connection.tap = tap;
    let spdy = &mut client.connection.spdy;
    spdy.compression_window_bits = args.connection.blocks.header_window;
    spdy.flow_control = !args.connection.no_flow_control;
    spdy.lowercase_names = args.connection.fold_names;
    spdy.pushes = accepts_pushes(args).then(PushLimits::default);
    client.resolve = resolve
        .map(|(host, port, address)| (host, Some(port), address))
        .collect();
    Ok(client)
}

async fn fetch(
    args: &Args,
    orders: Vec<FetchRequest>,
    mut names: FileNames,
    printer: &Printer,
) -> anyhow::Result<Outcome> {
    let view = args
        .verbose
        .then(|| Arc::new(FramePrinter::new(printer.clone())));
    let tap = view.clone().map(|view| view as Arc<dyn Tap>);
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let client = Client::new(runtime.clone(), Arc::new(SystemNetwork), config(args, tap)?);

    let (waiting, limit) = (BufferedBytes::default(), args.connection.max_time);
    let start = |order| Transfer::start(order, &client, &runtime, limit, &waiting);
    let mut all_well = true;
    if accepts_pushes(args) {
        for order in orders {
            all_well &= print_result(args, &start(order).finish(printer).await?, printer)?;
        }
        let mut remaining_bytes = args.connection.push_bytes;
        for offered in client.take_pushes() {
            let file = named_file_of_push(args, &mut names, &offered.push.request().uri);
            let to = file.map_or(Destination::Discard, Destination::NewFile);
            let pushed = push::read(offered, &to, remaining_bytes, limit).await;
            remaining_bytes = remaining_bytes.saturating_sub(pushed.bytes);
            all_well &= print_result(args, &pushed, printer)?;
        }
    } else {
        // All transfers start before the first is awaited; output for stdout is printed in order.
        let transfers: Vec<Transfer> = orders.into_iter().map(start).collect();
        for transfer in transfers {
            all_well &= print_result(args, &transfer.finish(printer).await?, printer)?;
        }
    }
    client.close().await;
    if let Some(view) = view {
        view.sum_up(&client.stats());
    }
    Ok(Outcome::done_if(all_well))
}

/// Prints the result of one URL; returns `false` if it failed.
fn print_result(args: &Args, fetched: &FetchResult, printer: &Printer) -> anyhow::Result<bool> {
    let refused = args.output.fail && fetched.status.is_some_and(|status| status >= 400);
    match (&fetched.error, fetched.status) {
        (Some(error), _) => printer.error(&anyhow::anyhow!("{}: {error}", fetched.url)),
        (None, Some(status)) if refused => {
            printer.error(&anyhow::anyhow!(
                "{}: response status {status}",
                fetched.url
            ));
        }
        _ => {}
    }
    if let Some(pushed) = fetched.pushed {
        printer.note(pushed.line(fetched));
    }
    if args.json {
        printer.json(fetched)?;
    }
    Ok(!refused && fetched.error.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolve_names_host_port_and_address() {
        let v6: IpAddr = "::1".parse().unwrap();
        let v4: IpAddr = "127.0.0.2".parse().unwrap();
        for (text, expected) in [
            ("a.test:80:127.0.0.2", ("a.test", 80, v4)),
            ("a.test:443:::1", ("a.test", 443, v6)),
            ("a.test:443:[::1]", ("a.test", 443, v6)),
            ("[::2]:443:127.0.0.2", ("::2", 443, v4)),
        ] {
            let (host, port, address) = parse_resolve(text).unwrap();
            assert_eq!((host.as_str(), port, address), expected, "{text}");
        }
        for text in [
            "",
            "a.test",
            "a.test:80",
            "a.test:x:127.0.0.1",
            "a.test:80:localhost",
        ] {
            assert!(parse_resolve(text).is_err(), "{text}");
        }
    }
}
