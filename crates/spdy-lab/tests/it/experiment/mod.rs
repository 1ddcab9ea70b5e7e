//! Experiments: factors, claims of papers and stores.

mod claims;
mod factor_effects;
mod factors;
mod lulic;
mod malicious_stores;
mod runs;
