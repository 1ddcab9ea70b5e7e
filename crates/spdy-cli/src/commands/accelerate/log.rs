//! The log of `spdy accelerate`: a line for each answer.

use std::net::IpAddr;
use std::sync::Arc;

use serde::Serialize;
use spdy_net::protocol::Protocol;
use spdy_proxy::counters::{Answered, Log};

use crate::printer::{BAD, BOLD, DIM, Printer};

/// A line for each answer: on stdout as JSON, or on stderr for people.
pub(super) fn log(verbose: bool, json: bool, printer: &Printer) -> Option<Log> {
    let printer = printer.clone();
    verbose.then(|| -> Log {
        Arc::new(move |answered: &Answered<'_>| {
            if json {
                let line = Line::of(answered);
                if let Err(error) = printer.json(&line) {
                    tracing::debug!(%error, "nobody reads the log");
                }
            } else {
                let style =
                    match answered.status.is_client_error() || answered.status.is_server_error() {
                        true => BAD,
                        false => BOLD,
                    };
                printer.note(format_args!(
                    "{style}{}{style:#} {} {} {DIM}{}, {:.1} ms{DIM:#}",
                    answered.status.as_str(),
                    answered.method,
                    answered.uri,
                    answered.outcome,
                    answered.took.as_secs_f64() * 1e3
                ));
            }
        })
    })
}

/// An answer, as a line of JSON.
#[derive(Debug, Serialize)]
struct Line<'a> {
    method: &'a str,
    uri: &'a str,
    from: Option<IpAddr>,
    protocol: Option<&'static str>,
    status: u16,
    outcome: &'static str,
    cache_status: Option<&'a str>,
    trace: Option<String>,
    took_ms: f64,
}

impl<'a> Line<'a> {
    fn of(answered: &'a Answered<'_>) -> Self {
        Self {
            method: answered.method.as_str(),
            uri: &answered.uri,
            from: answered.from,
            protocol: answered.protocol.map(Protocol::alpn),
            status: answered.status.as_u16(),
            outcome: answered.outcome,
            cache_status: answered.cache_status,
            trace: answered.trace.map(|trace| trace.to_string()),
            took_ms: answered.took.as_secs_f64() * 1e3,
        }
    }
}
