//! The sites that are served, by name, and what is compiled from their configuration.

pub mod alias_dns_records;
pub(crate) mod client_rate;
pub mod compile;
pub(crate) mod error_pages;
pub(crate) mod open_limit;
pub mod page_policies;
pub mod path_rules;
pub mod site;
pub mod site_table;
pub(crate) mod static_folder;
