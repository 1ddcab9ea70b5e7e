//! Experiments: factors, claims of papers, stores and reports.

mod claims;
mod factor_effects;
mod factors;
mod lulic;
mod malicious_stores;
mod report;
