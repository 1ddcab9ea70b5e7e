//! What commands write: text and progress on the terminal, and files.

mod atomic_file;
pub(crate) mod frame_text;
mod output_path;
mod picture;
mod printer;
mod table;
mod text;

pub(crate) use atomic_file::AtomicFile;
pub(crate) use output_path::{check_output_differs, run_name};
pub(crate) use picture::{encode_picture, parse_picture_path};
pub(crate) use printer::{BAD, BOLD, DIM, GOOD, Printer, StdoutClosed, WARN};
pub(crate) use table::{Cell, Table, bar};
pub(crate) use text::{escape, format_count};
