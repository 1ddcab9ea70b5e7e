//! Validates our own load generator: ours, h2load and wrk against the same nginx, in the same rounds.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use spdy_load::process::{Processes, own_cpu};
use spdy_net::protocol::Protocol;

use crate::Args;
use crate::course::{File, TransportKind};
use crate::heat::Series;
use crate::servers::{Grid, program};
use crate::table::spread;

/// A load generator, as a command line.
struct Generator {
    name: &'static str,
    command: PathBuf,
    arguments: Vec<String>,
    /// Number of responses in its output.
    requests: fn(&str) -> Option<f64>,
    rate: Series,
    server: Series,
    own: Series,
}

/// Runs all generators in turn, and prints the rate and the CPU time of each.
pub(crate) fn compare(args: &Args, grid: &Grid, file: &File) -> Result<(), String> {
    let seconds = args.seconds.ceil();
    let of = |protocol: Protocol| {
        let mut all = grid.peers.iter();
        let is_it = |transport, name, peer_protocol| {
            transport == TransportKind::Plain && name == "nginx" && peer_protocol == protocol
        };
        all.find(|one| is_it(one.transport, one.name, one.protocol))
            .ok_or("nginx does not take part")
    };
    let (h2, http1) = (of(Protocol::Http2)?, of(Protocol::Http1)?);
    let url = |port: u16| format!("http://127.0.0.1:{port}/{}", file.name);
    let ours = |protocol: &str, shape: &[&str], port: u16| {
        let mut arguments = vec!["bench".to_owned(), "--json".to_owned(), "-q".to_owned()];
        arguments.extend(["-p", protocol, "--threads", "1", "-t"].map(str::to_owned));
        arguments.push(seconds.to_string());
        arguments.extend(shape.iter().map(|text| (*text).to_owned()));
        arguments.push(url(port));
        arguments
    };
    let external_arguments = |shape: &[&str], port: u16| {
        let mut arguments: Vec<String> = shape.iter().map(|text| (*text).to_owned()).collect();
        arguments.push(url(port));
        arguments
    };
    let time = format!("-D{seconds}");
    let duration = format!("-d{seconds}s");
    let generator = |name, command, arguments, requests| Generator {
        name,
        command,
        arguments,
        requests,
        rate: Series::default(),
        server: Series::default(),
        own: Series::default(),
    };
    let (h2load, wrk) = (program("h2load")?, program("wrk")?);
    let bench = || args.spdy.clone();
    let mut all = [
        generator(
            "h2, 1 x 100: spdy bench",
            bench(),
            ours("h2", &["-c1", "-m100"], h2.port),
            of_ours,
        ),
        generator(
            "h2, 1 x 100: h2load",
            h2load,
            external_arguments(&["-c1", "-m100", &time], h2.port),
            of_h2load,
        ),
        generator(
            "http/1.1, 32: spdy bench",
            bench(),
            ours("http/1.1", &["-c32"], http1.port),
            of_ours,
        ),
        generator(
            "http/1.1, 32: wrk",
            wrk,
            external_arguments(&["-t1", "-c32", &duration], http1.port),
            of_wrk,
        ),
    ];
    let pid = grid.servers[h2.server].pid();
    let nginx = Processes::by_id(pid).map_err(|error| error.to_string())?;
    for _ in 0..args.rounds {
        for one in &mut all {
            one.run(&nginx, seconds)?;
        }
    }
    let mut out = io::stdout().lock();
    let _ = writeln!(
        out,
        "\ngenerators against nginx, {} B\n{:<26} {:>26} {:>28} {:>28}",
        file.bytes, "", "requests/s (min-max)", "server CPU s/100,000", "own CPU s/100,000",
    );
    for one in &all {
        let (rate, server, own) = (
            spread(&one.rate, 0),
            spread(&one.server, 3),
            spread(&one.own, 3),
        );
        let _ = writeln!(out, "{:<26} {rate:>26} {server:>28} {own:>28}", one.name);
    }
    Ok(())
}

impl Generator {
    fn run(&mut self, server: &Processes, seconds: f64) -> Result<(), String> {
        let cpu = || -> Result<(Duration, Duration), String> {
            let server_cpu = server.sample().map_err(|error| error.to_string())?.cpu;
            // The CPU time of the generator is part of ours after it has ended.
            Ok((server_cpu, own_cpu().ok_or("there is no /proc")?))
        };
        let before = cpu()?;
        let output = Command::new(&self.command)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", self.name))?;
        let after = cpu()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let requests = (self.requests)(&text)
            .ok_or_else(|| format!("{} printed no number of requests: {text}", self.name))?;
        let per =
            |after: Duration, before: Duration| (after - before).as_secs_f64() * 1e5 / requests;
        self.rate.push(requests / seconds);
        self.server.push(per(after.0, before.0));
        self.own.push(per(after.1, before.1));
        Ok(())
    }
}

fn of_ours(text: &str) -> Option<f64> {
    serde_json::from_str::<Value>(text).ok()?["requests"].as_f64()
}

/// `requests: 353937 total, 354037 started, 353937 done, ...`
fn of_h2load(text: &str) -> Option<f64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("requests: "))?;
    line.split(", ").nth(2)?.strip_suffix(" done")?.parse().ok()
}

/// `  291172 requests in 3.03s, 105.52MB read`
fn of_wrk(text: &str) -> Option<f64> {
    let (count, _) = text
        .lines()
        .find_map(|line| line.split_once(" requests in "))?;
    count.trim().parse().ok()
}
