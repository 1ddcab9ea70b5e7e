//! The operator's listener: metrics, purges, page reports.

pub mod handler;
pub(crate) mod purge_jobs;
