//! Imports of small recordings that have every known problem of their format.

mod folders;
mod har;
mod limits;
mod warc;
