//! The tree of commands. Each command's own arguments stand beside what it does, in `commands/`.

use clap::{ColorChoice, Parser, Subcommand};

#[cfg(unix)]
use crate::commands::record;
use crate::commands::{
    accelerate, bench, completions, doctor, fetch, inspect, lab, race, replica, serve,
};
use crate::help::examples;

/// Speak SPDY: serve pages, fetch them, load them over emulated networks, and race them against HTTP.
///
/// Results go to stdout, everything else to stderr.
#[derive(Debug, Parser)]
#[command(name = "spdy", version, propagate_version = true, after_help = ROOT_EXAMPLES)]
#[command(
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) voice: OutputOptions,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How the program speaks, whatever it is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputOptions {
    /// Say nothing on stderr but errors: no progress, no notes
    #[arg(short, long, global = true, help_heading = "Voice")]
    pub(crate) quiet: bool,

    /// When to colour; `auto` colours terminals unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Voice"
    )]
    pub(crate) color: ColorChoice,

    /// Log to stderr what this filter lets through, e.g. `debug` or `spdy_server=trace`; else SPDY_LOG does
    #[arg(long, global = true, value_name = "FILTER", help_heading = "Voice")]
    pub(crate) log: Option<String>,
}

/// What can be asked.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Race a page's load over HTTP, HTTPS, SPDY and HTTP/2, in virtual time
    ///
    /// The exit code is 1 if any load did not get all of its page; the others are shown all the same.
    #[command(after_help = race::EXAMPLES)]
    Race(race::Args),
    /// Say what would make a page load faster, by trying it in virtual time
    ///
    /// Each change is tried alone, over the same network with the same seeds. The changes are: fold other hosts into the
    /// page's own, push, hint in the head of the document, delay scripts and style sheets that nothing waits for, and leave
    /// out third-party hosts. Other protocols and worse networks are loaded for comparison. A folded host keeps its bodies,
    /// and is requested at the page's own. What a change saves is the median over the runs, each against the run of the
    /// same seed. Where packets are lost or delayed by chance, the page is loaded with several seeds (--runs), and each
    /// figure has a 95 % interval. A change whose interval includes 0 is not shown as a saving. The exit code is 1 if the
    /// page without changes does not load completely.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::Args),
    /// Serve a recorded page or a folder from memory
    #[command(after_help = serve::EXAMPLES)]
    Serve(serve::Args),
    /// Fetch URLs, all over as few connections as will do
    #[command(after_help = fetch::EXAMPLES)]
    Fetch(fetch::Args),
    /// Stand in front of a site, and serve its pages and what they need from elsewhere over one session
    ///
    /// A caching reverse proxy: hosts that the configuration lists are moved under the site's own name, so that a page needs
    /// one connection. SIGHUP reads the configuration again, for requests that come from then on. A variable SPDY_ACCELERATE__KEY, or
    /// SPDY_ACCELERATE__TABLE__KEY, stands in place of that key of the configuration.
    #[command(after_help = accelerate::EXAMPLES)]
    Accelerate(accelerate::Args),
    /// Load a server, and tell how fast it answered and what that cost it
    ///
    /// A session is a connection; a request is counted when its answer is whole. CPU time is user and system
    /// time of the server's processes as Linux tells them. The exit code is 1 if any request failed or any
    /// answer was wrong. Ctrl-C ends the run early, with the result so far.
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::Args),
    /// Read SPDY out of a packet capture: frames, streams, windows, and what looks wrong
    ///
    /// SPDY is found on any port: by ALPN, by an HTTP/1.1 Upgrade (also behind CONNECT), inside a WebSocket of
    /// kubectl port-forward, or by its first bytes. Times and stalls are those of the place of the capture; raw
    /// streams have none. Of an exec by plain WebSocket only that there was one is told. Left out are TLS with
    /// other ciphers than AES-GCM and ChaCha20-Poly1305, early data, and fragments of IP. The exit code is 1 if
    /// there is no SPDY.
    #[command(after_help = inspect::EXAMPLES, disable_version_flag = true)]
    Inspect(inspect::Args),
    /// Measure: whole experiments in virtual time, and programs behind a link in real time
    ///
    /// An experiment is a TOML file of pages, protocols, and factors with their levels; a store is a SQLite file that keeps
    /// every load.
    #[command(after_help = lab::EXAMPLES)]
    Lab(lab::Args),
    /// Record pages from a live browser, byte for byte
    ///
    /// Chromium loads each page in a fresh profile; its own log has the bytes of every connection, and what it tells of
    /// the page has initiators, priorities and times. Heads of HTTP/1.1 and all bodies are kept as the server sent them;
    /// docs/reference/recorded-data.md lists what is not kept. Requests without an answer and errors like 404 are kept and
    /// told, and are no failure of the recording: the exit code is 1 if a page itself did not come.
    #[cfg(unix)]
    #[command(after_help = record::EXAMPLES)]
    Record(record::Args),
    /// Make recorded pages, and look into them
    #[command(after_help = replica::EXAMPLES)]
    Replica(replica::Args),
    /// Print completions for a shell
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::Args),
}

const ROOT_EXAMPLES: &str = examples! {
    "spdy race                                     flags and portal over six networks"
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
            open.extend(command.get_subcommands().cloned());
        }
    }
}
