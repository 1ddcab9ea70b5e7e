//! The `spdy` program. The protocols, the proxy and the lab are in the libraries.
//!
//! ```text
//! argv -> cli::Cli -> dispatch::run -> a command in commands/ -> Outcome -> exit code
//!                                         |
//!                                      Printer:  results -> stdout     bars, notes, log -> stderr
//! ```
//!
//! [`cli`] has the tree of commands and [`commands`] a folder for each. They share [`args`] (options of several commands),
//! [`output`] (terminal and files) and [`outcome`], and know neither [`cli`] nor [`dispatch`].
#![cfg_attr(
    not(all(feature = "accelerate", feature = "lab", feature = "serve")),
    allow(dead_code)
)] // commands of other features share it

mod args;
mod cli;
mod commands;
mod dispatch;
mod help;
mod outcome;
mod output;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::outcome::{Outcome, Usage};
use crate::output::{Printer, StdoutClosed};

/// Requests are many small allocations, made and freed on one core: a tenth of a server's time with glibc's, less with this. It requests
/// no huge pages (a kernel may still use them): one is zeroed all at once, which takes milliseconds on a virtual machine
/// and delays every connection for that time.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The command succeeded.
const DONE: u8 = 0;
/// The command failed, or a check did not hold.
const FAILED: u8 = 1;
/// The command line was wrong, or names a file that does not exist; clap uses the same number.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let printer = Printer::new(cli.voice.quiet, cli.voice.color);
    if let Err(error) = printer.start_log(cli.voice.log.as_deref()) {
        printer.error(&error);
        return ExitCode::from(USAGE);
    }
    match dispatch::run(&cli.command, &printer) {
        Ok(Outcome::Done) => ExitCode::from(DONE),
        Ok(Outcome::Failed) => ExitCode::from(FAILED),
        Ok(Outcome::Code(code)) => ExitCode::from(code),
        // The reader of stdout has closed it: `spdy race | head` is no failure.
        Err(error) if error.is::<StdoutClosed>() => ExitCode::from(DONE),
        Err(error) => {
            printer.error(&error);
            let usage = error.downcast_ref::<Usage>().is_some() || is_missing_file(&error);
            ExitCode::from(if usage { USAGE } else { FAILED })
        }
    }
}

/// Whether the reason is a file or folder that does not exist: a name on the command line or in a settings file is wrong.
fn is_missing_file(error: &anyhow::Error) -> bool {
    let cause = error.root_cause().downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
}

#[cfg(all(test, target_os = "linux"))]
mod reference;
