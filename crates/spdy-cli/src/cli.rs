//! The tree of commands. Each command's own arguments stand beside what it does, in `commands/`.

use std::sync::LazyLock;

use clap::{ColorChoice, Parser, Subcommand};

#[cfg(feature = "accelerate")]
use crate::commands::accelerate;
#[cfg(feature = "lab")]
use crate::commands::lab;
#[cfg(all(feature = "lab", unix))]
use crate::commands::record;
#[cfg(feature = "serve")]
use crate::commands::{bench, fetch, inspect, serve};
use crate::commands::{completions, doctor, man, race, replica};
use crate::help::examples;

/// The version, the commit if the variable `SPDY_COMMIT` named it to the build, and the features of the build.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = option_env!("SPDY_COMMIT").map_or(String::new(), |commit| format!(" ({commit})"));
    let features = [
        ("accelerate", cfg!(feature = "accelerate")),
        ("lab", cfg!(feature = "lab")),
        ("parquet", cfg!(feature = "parquet")),
        ("serve", cfg!(feature = "serve")),
    ];
    let built = features.into_iter().filter(|(_, is_built)| *is_built);
    let built: Vec<_> = built.map(|(name, _)| name).collect();
    let built = match built.is_empty() {
        true => "none".to_owned(),
        false => built.join(", "),
    };
    let version = env!("CARGO_PKG_VERSION");
    format!("{version}{commit}\nfeatures: {built}")
});

/// Serve, fetch, measure and accelerate web pages over SPDY, and compare it with HTTP.
///
/// Results go to stdout, all other output to stderr.
#[derive(Debug, Parser)]
#[command(name = "spdy", version = VERSION.as_str(), propagate_version = true, after_help = ROOT_EXAMPLES)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) voice: OutputOptions,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command: what it prints, and in which form.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputOptions {
    /// Quiet: print errors only
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,

    /// When to use colours; `auto` uses them on terminals unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options"
    )]
    pub(crate) color: ColorChoice,

    /// Log to stderr by this filter, such as `debug` or `spdy_server=trace` [default: the variable SPDY_LOG]
    #[arg(
        long,
        global = true,
        value_name = "FILTER",
        help_heading = "Global options"
    )]
    pub(crate) log: Option<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare a page's load times over HTTP, HTTPS, SPDY and HTTP/2, in virtual time
    ///
    /// Loads every page over every network by every protocol. The exit code is 1 if any load is incomplete; the results
    /// of the other loads are still printed. Ctrl-C prints the loads that are done.
    #[command(after_help = race::EXAMPLES)]
    Race(race::Args),
    /// Find the changes that make a page load faster, by testing each in virtual time
    ///
    /// Each change is tested alone, over the same network with the same seeds. The changes are: fold other hosts into
    /// the page's own, push, add hints to the head of the document, delay scripts and style sheets that no other
    /// resource waits for, and remove third-party hosts. Other protocols and slower networks are loaded for comparison.
    /// A folded host keeps its bodies and is requested at the page's own host.
    ///
    /// The saving of a change is the median over the runs; each run is compared with the run of the same seed. Where
    /// packets are lost or delayed at random, the page is loaded with several seeds (--runs), and each figure has a 95
    /// % interval. A change whose interval includes 0 is not shown as a saving. The exit code is 1 if the page without
    /// changes does not load completely.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::Args),
    /// Serve a recorded page or a folder from memory
    #[cfg(feature = "serve")]
    #[command(after_help = serve::EXAMPLES)]
    Serve(serve::Args),
    /// Fetch URLs over as few connections as possible
    #[cfg(feature = "serve")]
    #[command(after_help = fetch::EXAMPLES)]
    Fetch(fetch::Args),
    /// Accelerate a site: serve its pages and their third-party resources over one session
    ///
    /// The accelerator is a caching reverse proxy. It moves the hosts that the configuration lists under the site's own
    /// name, so that a page needs one connection. SIGHUP reads the configuration again; it applies to new requests. An
    /// environment variable SPDY_ACCELERATE__KEY or SPDY_ACCELERATE__TABLE__KEY overrides that key of the
    /// configuration.
    #[cfg(feature = "accelerate")]
    #[command(after_help = accelerate::EXAMPLES, disable_help_subcommand = true)]
    Accelerate(accelerate::Args),
    /// Load a server, and measure its throughput, latency, CPU time and memory
    ///
    /// A session is one connection. A request counts when its response is complete. CPU time is the user and system
    /// time of the server's processes as reported by Linux. The exit code is 1 if any request failed or any response
    /// was wrong. Ctrl-C ends the run early and prints the result so far.
    #[cfg(feature = "serve")]
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::Args),
    /// Decode SPDY from a packet capture: frames, streams, windows and protocol errors
    ///
    /// SPDY is found on any port: by ALPN, by an HTTP/1.1 Upgrade (also after CONNECT), inside a WebSocket of kubectl
    /// port-forward, or by its first bytes. Times and stalls are those at the point of capture; raw streams have none.
    /// For exec over a plain WebSocket, only its presence is reported. Not decoded: TLS with ciphers other than AES-GCM
    /// and ChaCha20-Poly1305, early data, and IP fragments. The exit code is 1 if the capture has no SPDY.
    #[cfg(feature = "serve")]
    #[command(after_help = inspect::EXAMPLES)]
    Inspect(inspect::Args),
    /// Run experiments in virtual time, and programs behind an emulated link in real time
    ///
    /// An experiment is a TOML file of pages, protocols, and factors with their levels. A store is a SQLite file or a
    /// PostgreSQL database with every load.
    #[cfg(feature = "lab")]
    #[command(after_help = lab::EXAMPLES, disable_help_subcommand = true)]
    Lab(lab::Args),
    /// Record pages from a live browser, byte for byte
    ///
    /// Chromium loads each page in a fresh profile. Its network log has the bytes of every connection; its page events
    /// have initiators, priorities and times. HTTP/1.1 heads and all bodies are stored as the server sent them;
    /// docs/reference/recorded-data.md lists what is not stored. Requests without a response and errors such as 404 are
    /// recorded and reported, and the recording still succeeds. The exit code is 1 if a page itself did not load.
    #[cfg(all(feature = "lab", unix))]
    #[command(after_help = record::EXAMPLES)]
    Record(record::Args),
    /// Import, check, show, draw and export recorded pages
    #[command(after_help = replica::EXAMPLES, disable_help_subcommand = true)]
    Replica(replica::Args),
    /// Print the completion script of a shell
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::Args),
    /// Write the man pages
    #[command(after_help = man::EXAMPLES)]
    Man(man::Args),
}

const ROOT_EXAMPLES: &str = examples! {
    "spdy race                                     two shipped pages over six networks"
    "spdy race page.har --network dsl --report page.html"
    "spdy serve portal --tls 127.0.0.1:8443"
    "spdy fetch -v --protocol spdy/3.1 http://127.0.0.1:8080/"
    "spdy replica import page.har -o page.replica"
};

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_tree_is_valid() {
        super::Cli::command().debug_assert();
    }

    const EXIT_CODES: &str = "Exit codes:\n  0  done\n  1  failed";

    #[test]
    fn every_help_has_exit_codes_and_an_example() {
        let mut root = super::Cli::command();
        root.build();
        let mut open: Vec<_> = vec![root];
        while let Some(mut command) = open.pop() {
            let help = command.render_help().to_string();
            assert!(
                help.contains(EXIT_CODES),
                "{}: no exit codes",
                command.get_name()
            );
            assert!(
                help.contains("Examples:\n  spdy "),
                "{}: no example",
                command.get_name()
            );
            // clap's own `spdy help COMMAND` prints the help of another command.
            let own = command.get_subcommands();
            open.extend(own.filter(|it| it.get_name() != "help").cloned());
        }
    }
}
