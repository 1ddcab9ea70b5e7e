//! Starts each program of this package and checks from outside what it does.
//!
//! No test sleeps or uses a fixed port: a program prints the address that it listens on, and each step waits for the one before it.

mod axum_over_spdy;
mod exec_server;
mod raw_streams;
mod reverse_proxy;
mod streaming_client;
mod support;
