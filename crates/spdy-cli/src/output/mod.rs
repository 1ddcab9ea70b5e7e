//! What commands write: text and progress on the terminal, and files.

#[cfg(unix)]
mod atomic_file;
mod escape;
pub(crate) mod frame_text;
pub(crate) mod output_path;
mod printer;
mod table;

#[cfg(unix)]
pub(crate) use atomic_file::AtomicFile;
pub(crate) use escape::escape;
pub(crate) use output_path::check_output_differs;
pub(crate) use printer::{BAD, BOLD, DIM, GOOD, Printer, StdoutClosed, WARN, chain};
pub(crate) use table::{Cell, Table, bar};
