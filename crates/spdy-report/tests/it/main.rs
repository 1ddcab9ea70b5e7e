//! Reports as files.

mod experiment;
