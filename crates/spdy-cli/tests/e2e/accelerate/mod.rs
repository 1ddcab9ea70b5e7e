//! `spdy accelerate`: its configuration, its responses, and the programs that it works with.

mod abuse;
#[cfg(unix)]
mod access_log;
#[cfg(unix)]
mod audit;
mod browser;
mod certificates;
mod config;
mod dashboard;
#[cfg(target_os = "linux")]
mod demo;
mod early_data;
#[cfg(unix)]
mod first_start;
mod grpc;
mod lifecycle;
#[cfg(unix)]
mod open_files;
mod operator;
#[cfg(unix)]
mod origins;
#[cfg(target_os = "linux")]
mod proxy_protocol;
#[cfg(unix)]
mod reload;
#[cfg(unix)]
mod secrets;
mod shared_tier;
mod site_paths;
mod suites;
mod telemetry;
mod websockets;
