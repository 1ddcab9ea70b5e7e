//! The operator's listener: metrics, purges, page reports, and the dashboard.

pub mod dashboard;
mod dashboard_page;
pub mod handler;
pub(crate) mod purge_jobs;
