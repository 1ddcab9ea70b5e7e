//! The tree of `spdy replica` commands; import and export.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use spdy_page::archive;
use spdy_page::har_export;
use spdy_page::notes::ImportNotes;
use spdy_page::open::ImportOptions;

use super::{check, draw, show};
use crate::args::open_replica;
use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::{Printer, WARN, check_output_differs};

/// Arguments of `spdy replica`.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a replica from a recording: HAR, WARC or NetLog (also as .gz), or a folder of mahimahi
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArgs),
    /// Show the contents of a replica: hosts, resources and their sizes
    #[command(after_help = SHOW_EXAMPLES)]
    Show(show::Args),
    /// Check a replica for problems that would disturb a replay; exit code 1 if there are any
    #[command(after_help = CHECK_EXAMPLES)]
    Check(check::Args),
    /// Draw the waterfalls of recordings side by side on one time scale
    #[command(after_help = DRAW_EXAMPLES)]
    Draw(draw::Args),
    /// Convert a replica to another format, for other tools
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
}

/// Arguments of `spdy replica export`.
#[derive(Debug, clap::Args)]
struct ExportArgs {
    /// Output format: har (HAR 1.2; bodies decoded, times in microseconds, TLS as part of the connect)
    #[arg(value_name = "FORM", hide_possible_values = true)]
    form: ExportFormat,

    /// A shipped page (such as flags, portal, mineki), a replica, or any recording that can be imported
    #[arg(value_name = "REPLICA")]
    replica: String,

    /// Write to this file [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ExportFormat {
    Har,
}

/// Arguments of `spdy replica import`.
#[derive(Debug, clap::Args)]
struct ImportArgs {
    /// The recording: .har, .warc or NetLog, also gzipped (the first bytes decide which), or a folder of mm-webrecord
    #[arg(value_name = "FILE|DIR")]
    recording: String,

    /// Output file; gzipped if its name ends in .gz
    #[arg(short, long, value_name = "REPLICA")]
    output: PathBuf,

    /// Number of the page in a recording of several, from 1 [default: the first with a document]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    page: Option<u32>,

    /// Print what was imported and what was left out as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy replica import page.har -o page.replica"
    "spdy replica show portal"
    "spdy replica check page.replica"
    "spdy replica export har page.replica -o page.har"
};

const IMPORT_EXAMPLES: &str = examples! {
    "spdy replica import page.har -o page.replica"
    "spdy replica import crawl.warc.gz --page 2 -o page.replica.gz"
};

const SHOW_EXAMPLES: &str = examples! {
    "spdy replica show portal"
    "spdy replica show page.har --resources"
    "spdy replica show page.replica --json"
};

const CHECK_EXAMPLES: &str = examples! {
    "spdy replica check page.replica"
    "spdy replica check page.har --json"
};

const DRAW_EXAMPLES: &str = examples! {
    "spdy replica draw before.replica after.replica -o both.svg"
    "spdy replica draw page.har -o page.png"
};

const EXPORT_EXAMPLES: &str = examples! {
    "spdy replica export har page.replica -o page.har"
    "spdy replica export har portal | less"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    match &args.command {
        Command::Import(args) => import(args, printer),
        Command::Show(args) => show::run(args, printer),
        Command::Check(args) => check::run(args, printer),
        Command::Draw(args) => draw::run(args),
        Command::Export(args) => export(args, printer),
    }
}

fn export(args: &ExportArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let opened = open_replica(&args.replica, &ImportOptions::default())?;
    let text = match args.form {
        ExportFormat::Har => har_export::export(&opened.replica),
    };
    match &args.output {
        None => printer.bytes(&text)?,
        Some(output) => {
            check_output_differs(Path::new(&args.replica), output)?;
            std::fs::write(output, &text)
                .with_context(|| format!("cannot write {}", output.display()))?;
        }
    }
    Ok(Outcome::Done)
}

fn import(args: &ImportArgs, printer: &Printer) -> anyhow::Result<Outcome> {
    let ImportArgs {
        recording, output, ..
    } = args;
    let options = ImportOptions {
        page: args.page.map(|page| page as usize),
        ..ImportOptions::default()
    };
    let opened = open_replica(recording, &options)?;
    check_output_differs(Path::new(recording), output)?;
    let gzip = output.extension().is_some_and(|ending| ending == "gz");
    let bytes = archive::encode(&opened.replica, gzip);
    std::fs::write(output, &bytes).with_context(|| format!("cannot write {}", output.display()))?;
    if args.json {
        printer.json(&ImportReport::of(&opened.notes, output, bytes.len()))?;
        return Ok(Outcome::Done);
    }
    let ImportNotes {
        format,
        exchanges,
        real_bodies,
        filler_bodies,
        skipped,
        remarks,
        ..
    } = &opened.notes;
    printer.line(format_args!(
        "{}: {exchanges} exchanges, {} bytes",
        output.display(),
        bytes.len()
    ))?;
    printer.line(format_args!("from {format}: {real_bodies} bodies as recorded, {filler_bodies} filler of the recorded size"))?;
    for (reason, count) in skipped {
        printer.note(format_args!("{WARN}skipped{WARN:#}: {count} {reason}"));
    }
    for remark in remarks {
        printer.note(format_args!("{WARN}note{WARN:#}: {remark}"));
    }
    Ok(Outcome::Done)
}

/// An imported page.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ImportReport<'a> {
    /// The written replica.
    output: String,
    /// Size of that file.
    bytes: usize,
    /// The format of the recording.
    format: &'a str,
    /// Number of exchanges in the replica.
    exchanges: usize,
    /// Number of bodies that are as recorded.
    real_bodies: usize,
    /// Number of bodies that were not recorded, and are filler of the recorded size.
    filler_bodies: usize,
    /// Number of exchanges that were left out, by reason.
    skipped: &'a std::collections::BTreeMap<String, usize>,
    /// Deviations from the recording, one sentence each.
    remarks: &'a [String],
}

impl<'a> ImportReport<'a> {
    fn of(notes: &'a ImportNotes, output: &Path, bytes: usize) -> Self {
        let ImportNotes {
            format,
            exchanges,
            real_bodies,
            filler_bodies,
            skipped,
            remarks,
            ..
        } = notes;
        Self {
            output: output.display().to_string(),
            bytes,
            format,
            exchanges: *exchanges,
            real_bodies: *real_bodies,
            filler_bodies: *filler_bodies,
            skipped,
            remarks,
        }
    }
}
