//! `spdy inspect`: reads a capture, and prints its SPDY sessions frame by frame.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use spdy_inspect::capture::{CaptureError, Reader};
use spdy_inspect::inspector::{Inspector, Options};
use spdy_inspect::limits::Limits;

use super::inspect_printer::InspectPrinter;
use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::{Printer, WARN};

/// Bytes of a file that are read at a time.
const PIECE: usize = 256 * 1024;
/// Largest size of a key log or raw stream, in bytes.
const WHOLE_FILE_BYTES: u64 = 1 << 30;
/// Payload bytes that `--data` shows of a frame.
const SHOWN_BYTES: usize = 256;

/// Arguments of `spdy inspect`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Capture file, pcap or pcapng; `-` reads stdin as it grows
    #[arg(required_unless_present = "client")]
    capture: Option<PathBuf>,

    /// Decrypt TLS 1.2 and 1.3 with the secrets in this file, as SSLKEYLOGFILE writes it.
    ///
    /// Ciphers are AES-GCM and ChaCha20-Poly1305. Secrets in a pcapng are always used.
    #[arg(long, value_name = "FILE", conflicts_with = "client")]
    keylog: Option<PathBuf>,

    /// Read raw bytes instead of a capture: all bytes that the client sent
    #[arg(
        long,
        value_name = "FILE",
        requires = "server",
        conflicts_with = "capture"
    )]
    client: Option<PathBuf>,

    /// All bytes that the server sent, with --client
    #[arg(long, value_name = "FILE", requires = "client")]
    server: Option<PathBuf>,

    /// Show the first 256 bytes of each DATA frame
    #[arg(long)]
    data: bool,

    /// Show only the time lines, no frames
    #[arg(long)]
    summary: bool,

    /// Print one JSON object a line: each frame, and each session at its end
    #[arg(long)]
    json: bool,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy inspect capture.pcapng                        every SPDY session, on any port"
    "spdy inspect capture.pcap --keylog keys.txt        also sessions in TLS"
    "tcpdump -i any -w - tcp | spdy inspect -           live"
    "spdy inspect exec.pcap --summary                   streams, windows, and what looks wrong"
    "spdy inspect --client c2s.bin --server s2c.bin --json"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let limits = Limits {
        payload_shown_bytes: if args.data { SHOWN_BYTES } else { 0 },
        ..Limits::default()
    };
    let mut options = Options {
        limits: limits.clone(),
        ..Options::default()
    };
    if let Some(path) = &args.keylog {
        let used = options.keys.add(&whole(path)?, limits.secrets);
        if used == 0 {
            printer.note(format_args!(
                "{WARN}note{WARN:#}: no usable TLS secret in {}",
                path.display()
            ));
        }
    }
    let mut view = InspectPrinter::new(printer, args.json, args.summary);
    let mut inspector = Inspector::new(options);
    let broken = match (&args.client, &args.server, &args.capture) {
        (Some(client), Some(server), _) => {
            inspector.streams(&whole(client)?, &whole(server)?);
            None
        }
        (_, _, Some(path)) => {
            let read = capture(path, limits, &mut inspector, &mut view)?;
            inspector.finish();
            read.err().map(|error| (path, error))
        }
        _ => return Err(Usage("expected a capture, or --client and --server".to_owned()).into()),
    };
    view.drain(&mut inspector)?;
    view.sum_up(inspector.counts());
    match broken {
        // Everything before the damage was printed already.
        Some((path, error)) => {
            Err(error).with_context(|| format!("cannot read {}", path.display()))
        }
        None if view.sessions() == 0 => anyhow::bail!("no SPDY session found"),
        None => Ok(Outcome::Done),
    }
}

/// Reads a capture piece by piece and prints its sessions; the inner error is damage in the file.
fn capture(
    path: &Path,
    limits: Limits,
    inspector: &mut Inspector,
    view: &mut InspectPrinter<'_>,
) -> anyhow::Result<Result<(), CaptureError>> {
    let mut file: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).with_context(|| format!("cannot open {}", path.display()))?)
    };
    let mut reader = Reader::new(limits);
    let mut piece = vec![0; PIECE];
    loop {
        let len = match file.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        if len == 0 {
            return Ok(reader.finish());
        }
        reader.push(&piece[..len]);
        loop {
            match reader.poll() {
                Ok(Some(record)) => inspector.record(&record),
                Ok(None) => break,
                Err(error) => return Ok(Err(error)),
            }
            view.drain(inspector)?;
        }
    }
}

fn whole(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.take(WHOLE_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {}", path.display()))?;
    anyhow::ensure!(
        bytes.len() as u64 <= WHOLE_FILE_BYTES,
        "{} is larger than {WHOLE_FILE_BYTES} bytes",
        path.display()
    );
    Ok(bytes)
}
