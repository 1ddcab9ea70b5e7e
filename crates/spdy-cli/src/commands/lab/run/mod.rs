//! `spdy lab run`, `cells` and `cell`: lists the cells of an experiment, and loads all or some of them.

pub(crate) mod cell;
pub(crate) mod cells;
mod command;
mod load_cells;

pub(crate) use command::{Args, EXAMPLES, run};
