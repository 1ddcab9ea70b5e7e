//! The program's output.
//!
//! Results go to stdout and nothing else does, so that they can be piped. Progress, notes, errors and
//! the log go to stderr; progress only if that is a terminal. Colour is for terminals, and never with
//! NO_COLOR.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use anyhow::Context;
use clap::ColorChoice;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use spdy_service::error::chain;
use spdy_service::notice::{Level, Notices};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Width of output that is not printed to a terminal, in columns.
const WIDTH_OF_A_PIPE: usize = 100;

/// How often a bar that shows the elapsed time is drawn.
const TICK: Duration = Duration::from_secs(1);

/// Names, headings.
pub(crate) const BOLD: Style = Style::new().bold();
/// Less important text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// Better than the baseline.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Worse than the baseline, or wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Needs attention.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();

/// The reader of stdout has closed it, so no output is possible.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct StdoutClosed;

impl Display for StdoutClosed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stdout was closed")
    }
}

impl std::error::Error for StdoutClosed {}

/// Prints results, notes and errors. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct Printer {
    quiet: bool,
    color: ColorChoice,
    bars: MultiProgress,
}

impl Printer {
    /// A printer that prints only errors to stderr if `quiet`, and uses colours according to `color`.
    pub(crate) fn new(quiet: bool, color: ColorChoice) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        Self {
            quiet,
            color,
            bars: MultiProgress::with_draw_target(target),
        }
    }

    /// Starts the log with `filter`, or with SPDY_LOG from the environment; without either, it has warnings.
    ///
    /// # Errors
    ///
    /// The filter is invalid.
    pub(crate) fn start_log(&self, filter: Option<&str>) -> anyhow::Result<()> {
        let from_environment = std::env::var("SPDY_LOG").ok();
        let directives = filter
            .or(from_environment.as_deref())
            .unwrap_or(if self.quiet { "error" } else { "warn" });
        let filter = EnvFilter::try_new(directives)
            .with_context(|| format!("invalid log filter {directives:?}"))?;
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            // A session or stream is logged when it ends, with all its fields.
            .with_span_events(FmtSpan::CLOSE)
            .with_ansi(self.stderr_choice() != anstream::ColorChoice::Never)
            .with_writer(self.clone())
            .init();
        Ok(())
    }

    /// Writes the bytes of a result unchanged.
    ///
    /// # Errors
    ///
    /// [`StdoutClosed`], or another error of stdout.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let result = self.bars.suspend(|| {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        });
        result.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => StdoutClosed.into(),
            _ => anyhow::Error::new(error).context("cannot write to stdout"),
        })
    }

    /// Writes one line of a result; its styles are printed if colours are used.
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes).
    pub(crate) fn line(&self, text: impl Display) -> anyhow::Result<()> {
        let text = format!("{text}\n");
        match self.stdout_choice() {
            anstream::ColorChoice::Never => {
                self.bytes(anstream::adapter::strip_str(&text).to_string().as_bytes())
            }
            _ => self.bytes(text.as_bytes()),
        }
    }

    /// Writes `result` as one line of JSON.
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes).
    pub(crate) fn json(&self, result: &impl Serialize) -> anyhow::Result<()> {
        let mut line = serde_json::to_vec(result)?;
        line.push(b'\n');
        self.bytes(&line)
    }

    /// Writes `result` as one line of JSON to stderr, because stdout belongs to the program that the command ran.
    ///
    /// # Errors
    ///
    /// `result` cannot be converted to JSON.
    pub(crate) fn json_to_stderr(&self, result: &impl Serialize) -> anyhow::Result<()> {
        self.to_stderr(&serde_json::to_string(result)?);
        Ok(())
    }

    /// Prints a note to stderr, unless quiet.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet {
            self.to_stderr(&text);
        }
    }

    /// Prints the notices of a service, each as a note.
    pub(crate) fn notices(&self) -> Notices {
        let printer = self.clone();
        Notices::new(move |notice| {
            let style = match notice.level {
                Level::Info => DIM,
                Level::Highlight => BOLD,
                Level::Warning => WARN,
                Level::Error => BAD,
            };
            printer.note(format_args!(
                "{style}{}{style:#}{}",
                notice.subject, notice.detail
            ));
        })
    }

    /// Prints why the command failed: the error and its causes on one line.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        self.to_stderr(&format_args!("{BAD}error{BAD:#}: {}", chain(error)));
    }

    /// A progress bar of `steps` steps on stderr; hidden if quiet, or if stderr is not a terminal.
    pub(crate) fn progress(&self, steps: u64, what: &'static str) -> ProgressBar {
        let style = ProgressStyle::with_template("{msg} {wide_bar:.cyan/dim} {pos}/{len} {eta}")
            .expect("the template is valid")
            .progress_chars("━╸─");
        let bar = ProgressBar::new(steps).with_style(style).with_message(what);
        let bar = self.bars.add(bar);
        // The first step may take long.
        bar.tick();
        bar
    }

    /// The same for work in real time, whose single steps take long: the bar shows the elapsed time, which moves between steps.
    pub(crate) fn timed_progress(&self, steps: u64, what: String) -> ProgressBar {
        let style =
            ProgressStyle::with_template("{msg} {wide_bar:.cyan/dim} {percent} % {elapsed}")
                .expect("the template is valid")
                .progress_chars("━╸─");
        let bar = ProgressBar::new(steps).with_style(style).with_message(what);
        let bar = self.bars.add(bar);
        bar.enable_steady_tick(TICK);
        bar
    }

    /// A progress bar of a load of `steps` steps; its message is the rate.
    pub(crate) fn load_bar(&self, steps: u64) -> ProgressBar {
        let style = ProgressStyle::with_template("load {wide_bar:.cyan/dim} {msg}")
            .expect("the template is valid")
            .progress_chars("━╸─");
        self.bars.add(ProgressBar::new(steps).with_style(style))
    }

    /// Columns for a line of the result.
    pub(crate) fn width(&self) -> usize {
        console::Term::stdout()
            .size_checked()
            .map_or(WIDTH_OF_A_PIPE, |(_, columns)| usize::from(columns))
    }

    /// Ignores an error of stderr: there is no other output for it.
    fn to_stderr(&self, text: &dyn Display) {
        let choice = self.stderr_choice();
        self.bars.suspend(|| {
            let _ = writeln!(AutoStream::new(io::stderr().lock(), choice), "{text}");
        });
    }

    fn stdout_choice(&self) -> anstream::ColorChoice {
        self.choice(AutoStream::choice(&io::stdout()))
    }

    fn stderr_choice(&self) -> anstream::ColorChoice {
        self.choice(AutoStream::choice(&io::stderr()))
    }

    fn choice(&self, auto: anstream::ColorChoice) -> anstream::ColorChoice {
        match self.color {
            ColorChoice::Auto => auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        }
    }
}

/// The log is also written to stderr, without breaking a progress bar.
impl<'a> MakeWriter<'a> for Printer {
    type Writer = LogWriter<'a>;

    fn make_writer(&'a self) -> LogWriter<'a> {
        LogWriter { bars: &self.bars }
    }
}

/// Where a line of the log is written.
#[derive(Debug)]
pub(crate) struct LogWriter<'a> {
    bars: &'a MultiProgress,
}

impl Write for LogWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.bars.suspend(|| io::stderr().lock().write(line))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}
