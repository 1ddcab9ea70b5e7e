//! The accelerator restarts on sockets that another process keeps open: no connection is refused, and no request is lost.

#![cfg(unix)]

use std::collections::BTreeSet;

use crate::support::accelerator::program::Accelerator;
use crate::support::accelerator::replacement::{SITE, bind_loopback, config, with_clients};
use crate::support::origins::scripted::{Origins, complete_response};

/// Number of restarts.
const RESTARTS: usize = 3;

fn origin() -> Origins {
    Origins::start(&[(SITE, "http")], |request, _| {
        complete_response(
            "200 OK\r\nCache-Control: max-age=600\r\n",
            request.target.as_bytes(),
        )
    })
}

#[test]
fn a_restart_on_a_passed_socket_loses_no_request() {
    let origins = origin();
    let (socket, address) = bind_loopback();
    let config = config("", &origins, address);
    let last = with_clients(address, |wait_for_responses| {
        for _ in 0..RESTARTS {
            let accelerator = Accelerator::start_on(&socket, &config);
            wait_for_responses();
            accelerator.end();
        }
        // Clients that connect now wait for the next process.
        Accelerator::start_on(&socket, &config)
    });
    drop(last);
}

/// A socket that matches no address of the configuration is not used.
#[test]
fn the_shipped_socket_units_match_the_shipped_configuration() {
    let units = include_str!("../../../../../../deploy/spdy-accelerate.socket");
    let unit_addresses = |kind: &str| -> BTreeSet<String> {
        let lines = units.lines().filter_map(|line| line.strip_prefix(kind));
        lines.map(str::to_owned).collect()
    };
    let example = include_str!("../../../../../../deploy/accelerate.toml");
    let configured = |key: &str| -> BTreeSet<String> {
        let lists = example.lines().filter_map(|line| line.strip_prefix(key));
        let addresses = lists.flat_map(|list| list.split('"').skip(1).step_by(2));
        addresses.map(str::to_owned).collect()
    };
    let (tls, plain) = (configured("tls = ["), configured("plain = ["));
    assert!(!tls.is_empty() && !plain.is_empty(), "{example}");
    assert_eq!(unit_addresses("ListenStream="), &tls | &plain);
    assert_eq!(unit_addresses("ListenDatagram="), tls, "h3 is used");
}
