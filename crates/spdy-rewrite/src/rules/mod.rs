//! The compiled rules: hosts, their URLs and capabilities, and the verdict on a reference.

pub mod capability;
pub(crate) mod capability_cache;
pub mod config;
pub mod error;
pub mod host_aliases;
pub mod host_limits;
pub(crate) mod host_name;
pub mod host_rule;
pub mod path_normalization;
pub mod public_cdns;
pub mod refusal;
mod rule_set;
pub(crate) mod selectors;
pub(crate) mod self_url_scripts;
pub mod site_names;
pub(crate) mod url_form;
pub mod verdict;

pub use rule_set::Rules;
pub(crate) use rule_set::{OPT_OUT, RuleMatch};
