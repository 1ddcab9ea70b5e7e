//! The options of `spdy record`, and the files that it writes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use spdy_page::archive;
use spdy_page::open::OpenedReplica;
use spdy_record::error::RecordError;
use spdy_record::fingerprint::Fingerprint;
use spdy_record::options::RecordOptions;
use spdy_service::signals::StopSignals;
use url::Url;

use super::browser::{BrowserArgs, record_once};
use super::report::RecordReport;
use crate::args::parse::parse_http_url;
use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::{AtomicFile, Printer};

/// Arguments of `spdy record`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Pages to record, each in a browser of its own
    #[arg(value_name = "URL", required = true, value_parser = parse_http_url::<Url>)]
    urls: Vec<Url>,

    /// Output file, or the folder for several pages; gzipped if its name ends in .gz.
    ///
    /// A replica is one page. The folder is created if necessary.
    #[arg(short, long, value_name = "REPLICA|DIR")]
    output: PathBuf,

    /// Record each page this many times, and report the differences; the first run is stored.
    ///
    /// The report has a fingerprint of each run's resources.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,

    /// Print one JSON object a page
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    browser: BrowserArgs,

    #[command(flatten)]
    page: PageArgs,
}

/// The end of a page load, and the scripts' clock and random numbers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Page")]
struct PageArgs {
    /// Time limit for a page, in seconds; what arrived until then is stored
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = parse_seconds)]
    timeout: Duration,

    /// Seconds without network activity after the load event until the page is complete
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_seconds)]
    settle: Duration,

    /// Give scripts a fixed clock and fixed random numbers.
    ///
    /// The clock starts in June 2013 and advances a millisecond at each read. Random numbers have a fixed seed.
    #[arg(long)]
    pin: bool,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy record https://example.org/ -o example.warc.gz"
    "spdy record --pin --runs 3 https://example.org/ -o example.warc.gz"
    "spdy record https://example.org/ https://example.com/ -o pages/"
    "spdy record -k --resolve '*.test:8443:127.0.0.1' https://www.test:8443/ -o test.warc.gz --json"
};

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| *duration <= Duration::from_secs(86_400))
        .ok_or_else(|| "expected seconds, above 0 and at most 86400, such as 2.5".to_owned())
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let outputs = outputs(&args.urls, &args.output)?;
    if args.urls.len() > 1 {
        let folder = &args.output;
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let options = RecordOptions {
        timeout: args.page.timeout,
        settle: args.page.settle,
        pin: args.page.pin,
        ..args.browser.options()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut signals = StopSignals::listen()?;
        let mut outcome = Outcome::Done;
        for (url, output) in args.urls.iter().zip(&outputs) {
            match record_page(url, output, args, &options, &mut signals, printer).await {
                Ok(Outcome::Done) => {}
                Ok(other) => outcome = other,
                // With several pages, the failure of one is printed, and the others go on.
                Err(fault) if args.urls.len() > 1 && !is_interrupted(&fault) => {
                    printer.error(&fault);
                    outcome = Outcome::Failed;
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(outcome)
    })
}

fn is_interrupted(fault: &anyhow::Error) -> bool {
    matches!(fault.downcast_ref(), Some(RecordError::Interrupted))
}

/// The output file of each page.
fn outputs(urls: &[Url], output: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if let [_] = urls
        && !output.is_dir()
    {
        return Ok(vec![output.to_owned()]);
    }
    if output.exists() && !output.is_dir() {
        let output = output.display();
        let message = format!("expected a folder for several pages, found the file {output}");
        return Err(Usage(message).into());
    }
    let mut outputs: Vec<PathBuf> = Vec::new();
    for url in urls {
        let stem = stem(url);
        let free = (1..).map(|number| match number {
            1 => output.join(format!("{stem}.warc.gz")),
            number => output.join(format!("{stem}-{number}.warc.gz")),
        });
        let mut free = free.filter(|path| !outputs.contains(path));
        outputs.extend(free.next());
    }
    Ok(outputs)
}

/// A file name for the page of `url`.
fn stem(url: &Url) -> String {
    let text = format!("{}{}", url.host_str().unwrap_or("page"), url.path());
    let clean = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '-'
        }
    };
    let stem: String = text
        .trim_end_matches('/')
        .chars()
        .map(clean)
        .take(100)
        .collect();
    stem.trim_matches('.').to_owned()
}

async fn record_page(
    url: &Url,
    output: &Path,
    args: &Args,
    options: &RecordOptions,
    signals: &mut StopSignals,
    printer: &Printer,
) -> anyhow::Result<Outcome> {
    let file = AtomicFile::create(output)?;
    let mut first: Option<OpenedReplica> = None;
    let mut runs = Vec::new();
    for number in 1..=args.runs {
        let bar = printer.progress(1, "recording");
        let opened = record_once(url, options, &bar, signals).await;
        bar.finish_and_clear();
        runs.push(match opened {
            Ok(opened) => {
                let fingerprint = Fingerprint::of(&opened.replica);
                first.get_or_insert(opened);
                Ok(fingerprint)
            }
            Err(fault) if args.runs == 1 || matches!(fault, RecordError::Interrupted) => {
                return Err(fault).with_context(|| format!("cannot record {url}"));
            }
            // The pages of other runs are still stored.
            Err(fault) => {
                let message = fault.to_string();
                let fault = anyhow::Error::new(fault);
                printer.error(&fault.context(format!("cannot record {url} in run {number}")));
                Err(message)
            }
        });
    }
    let opened = first.with_context(|| format!("cannot record {url} in any of its runs"))?;
    let gzip = output.extension().is_some_and(|ending| ending == "gz");
    let bytes = archive::encode(&opened.replica, gzip);
    if signals.is_pending().await {
        return Err(RecordError::Interrupted).with_context(|| format!("cannot record {url}"));
    }
    file.write(&bytes)?;
    let recorded = RecordReport::of(url, output, bytes.len(), &opened, &runs);
    if args.json {
        printer.json(&recorded)?;
    } else {
        recorded.print(printer)?;
    }
    Ok(Outcome::done_if(runs.iter().all(Result::is_ok)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_pages_has_a_file_of_its_own() {
        let folder = std::env::temp_dir();
        let urls = [
            "http://a.test/",
            "http://a.test/x/y?z",
            "http://a.test/x-y",
            "http://a.test:81",
        ];
        let urls = urls.map(|url| parse_http_url(url).unwrap());
        let names: Vec<_> = outputs(&urls, &folder)
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            names,
            [
                "a.test.warc.gz",
                "a.test-x-y.warc.gz",
                "a.test-x-y-2.warc.gz",
                "a.test-2.warc.gz"
            ]
        );
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(outputs(&urls, &file).unwrap_err().is::<Usage>());
        assert_eq!(outputs(&urls[..1], &file).unwrap(), [file]);
    }
}
