//! The accelerator's configuration file: its tables, their checks, and their defaults.

pub mod access_log;
pub mod acme;
pub mod cache;
pub(crate) mod check;
pub(crate) mod dns_name;
pub mod env;
mod error;
pub mod learn;
pub mod limits;
pub mod listen;
mod root;
pub mod servers;
pub mod shared_cache;
pub mod site;
pub mod site_files;
pub mod site_path;
pub mod telemetry;
mod toml_values;
pub mod upstream;
pub mod websocket;

pub use error::ConfigError;
pub use root::{AdminConfig, Config, DnsConfig, TimingConfig};
