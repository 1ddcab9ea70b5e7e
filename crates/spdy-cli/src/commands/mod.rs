//! A file for each command: its arguments, and what it does with them.

pub(crate) mod accelerate;
pub(crate) mod bench;
mod bench_view;
pub(crate) mod completions;
mod conditions;
mod count;
#[cfg(unix)]
mod crawl;
#[cfg(unix)]
mod crawl_budget;
#[cfg(unix)]
mod crawl_reach;
pub(crate) mod doctor;
mod doctor_table;
pub(crate) mod fetch;
mod fetch_push;
mod fetch_transfer;
mod fetch_view;
mod frame_text;
mod header_args;
pub(crate) mod inspect;
mod inspect_view;
pub(crate) mod lab;
mod load_choices;
mod metrics_format;
#[cfg(unix)]
mod new_file;
mod outcome;
mod output;
mod pages;
pub(crate) mod race;
mod race_table;
#[cfg(unix)]
pub(crate) mod record;
#[cfg(unix)]
mod record_view;
pub(crate) mod replica;
mod replica_check;
mod replica_draw;
mod replica_show;
mod request_args;
pub(crate) mod serve;
mod serve_limits;
mod serve_listen;
mod serve_metrics;
mod serve_push;
mod signals;
mod telemetry;

pub(crate) use outcome::{Outcome, Usage, run};
