//! The checks of `make kubernetes`: runs each case by each client, and prints a table in Markdown.
//!
//! ```text
//! KUBECONFIG=FILE KUBECTL=FILE checks PODS
//! ```
//!
//! `PODS` is the kubelet's folder of working directories, by which the processes of pods are found.

mod cases;
mod client;
mod cluster;
mod kube_rs;
mod kubectl;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio::time::timeout;

use client::Client;
use cluster::Cluster;
use kube_rs::KubeRs;
use kubectl::Kubectl;

/// Longest time for one case.
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().context("expected a folder")?;
    if first == kube_rs::HOLD {
        return kube_rs::hold(arguments).await;
    }
    let cluster = Cluster::connect(PathBuf::from(first)).await?;
    let kubectl = PathBuf::from(std::env::var_os("KUBECTL").context("KUBECTL")?);
    let columns = [
        run(&cluster, &Kubectl::spdy(kubectl.clone())).await,
        run(&cluster, &Kubectl::websocket(kubectl)).await,
        run(&cluster, &KubeRs::new(&cluster)).await,
    ];
    print_table(&columns);
    let failed = columns.iter().any(|column| column.failures > 0);
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The results of one client.
struct Column {
    client: &'static str,
    cells: Vec<(&'static str, String)>,
    failures: usize,
}

/// Runs all cases by `client`.
async fn run<C: Client>(cluster: &Cluster, client: &C) -> Column {
    let mut column = Column {
        client: client.name(),
        cells: Vec::new(),
        failures: 0,
    };
    // A macro, because the futures of the cases have different types.
    macro_rules! case {
        ($name:literal, $case:expr) => {
            let result = match timeout(TIMEOUT, $case).await {
                Ok(result) => result,
                Err(_) => Err(anyhow::anyhow!("not within {TIMEOUT:?}")),
            };
            let cell = result.unwrap_or_else(|error| {
                eprintln!("{}: {}: {error:#}", client.name(), $name);
                column.failures += 1;
                "**no**".to_owned()
            });
            column.cells.push(($name, cell));
        };
    }
    case!(
        "exec: 5 MB to stdin and back",
        cases::bytes(cluster, client)
    );
    case!(
        "exec: exit codes 7, and 137 of SIGKILL",
        cases::exit_codes(cluster, client)
    );
    case!(
        "exec: stdout and stderr separate",
        cases::separate_outputs(cluster, client)
    );
    case!(
        "exec: executable not found",
        cases::not_found(cluster, client)
    );
    case!(
        "exec: terminal, two resizes, Ctrl-C",
        cases::terminal(cluster, client)
    );
    case!(
        "attach: 1 MB to stdin and back",
        cases::attach(cluster, client)
    );
    case!("cp: 5 MB both ways", client.copy_both_ways(cluster));
    case!(
        "port-forward: 4 x 1 MB at once",
        cases::port_forward(cluster, client)
    );
    case!(
        "20 clients killed: no process left",
        cases::killed_clients(cluster, client)
    );
    column
}

fn print_table(columns: &[Column]) {
    let header: Vec<_> = columns.iter().map(|column| column.client).collect();
    println!("| case | {} |", header.join(" | "));
    println!("| --- |{}", " --- |".repeat(columns.len()));
    for (row, (name, _)) in columns[0].cells.iter().enumerate() {
        let cells: Vec<_> = columns.iter().map(|column| &*column.cells[row].1).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
}
