//! The `spdy` program: its arguments ([`cli`]), its commands ([`commands`]), and its output
//! ([`printer`]). Everything else is in the libraries.
//!
//! ```text
//! argv -> cli::Cli -> commands::run -> Outcome -> exit code
//!                          |
//!                       Printer:  results -> stdout     bars, notes, log -> stderr
//! ```

mod cli;
mod commands;
mod help;
mod printer;
mod table;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::commands::{Outcome, Usage};
use crate::printer::{Printer, StdoutClosed};

/// Requests are many small allocations, made and freed on one core: a tenth of a server's time with glibc's, less with this. It asks for
/// no huge pages (a kernel may still give them unasked): one is zeroed all at once, which takes milliseconds on a virtual machine
/// and delays every connection for that time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The command succeeded.
const DONE: u8 = 0;
/// The command failed, or a check did not hold.
const FAILED: u8 = 1;
/// The command line was wrong; clap uses the same number.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let printer = Printer::new(cli.voice.quiet, cli.voice.color);
    if let Err(error) = printer.start_log(cli.voice.log.as_deref()) {
        printer.error(&error);
        return ExitCode::from(USAGE);
    }
    match commands::run(&cli.command, &printer) {
        Ok(Outcome::Done) => ExitCode::from(DONE),
        Ok(Outcome::Failed) => ExitCode::from(FAILED),
        Ok(Outcome::Code(code)) => ExitCode::from(code),
        // The reader of stdout has closed it: `spdy race | head` is no failure.
        Err(error) if error.is::<StdoutClosed>() => ExitCode::from(DONE),
        Err(error) => {
            printer.error(&error);
            let usage = error.downcast_ref::<Usage>().is_some();
            ExitCode::from(if usage { USAGE } else { FAILED })
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod reference;
