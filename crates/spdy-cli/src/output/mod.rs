//! What commands write: text and progress on the terminal, and files.

#[cfg(all(feature = "lab", unix))]
mod atomic_file;
pub(crate) mod frame_text;
mod output_path;
mod printer;
mod table;
mod text;

#[cfg(all(feature = "lab", unix))]
pub(crate) use atomic_file::AtomicFile;
pub(crate) use output_path::{check_output_differs, check_writable};
pub(crate) use printer::{BAD, BOLD, DIM, GOOD, Printer, StdoutClosed, WARN};
pub(crate) use table::{Cell, Table, bar};
pub(crate) use text::{escape, format_count};
