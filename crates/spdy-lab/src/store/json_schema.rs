//! The JSON Schema of a [`Row`]: the columns of a load, as `spdy lab cell --json` prints them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use spdy_sim::load::Load;

use crate::store::column::COLUMNS;
use crate::store::row::Row;

use Nullable::{No, Yes};

/// The meaning of each column that is not a field of [`Load`], and whether it may be `null`.
const MEANINGS: [(&str, Nullable, &str); 67] = [
    ("id", No, "Number of the load in the plan, from 1."),
    (
        "bw",
        Yes,
        "Rate of the link to the client, as dummynet is configured.",
    ),
    (
        "delay",
        No,
        "Delay of one pass through a pipe, as dummynet is configured.",
    ),
    ("method", No, "Name of the protocol."),
    ("site", No, "Name of the page."),
    (
        "onContentLoad",
        No,
        "Time of DOMContentLoaded, rounded to whole milliseconds.",
    ),
    (
        "onLoad",
        No,
        "Time of the load event, rounded to whole milliseconds.",
    ),
    (
        "tow",
        No,
        "From the first packet to the last packet, seconds.",
    ),
    ("run", No, "Number of the run in its cell, from 1."),
    ("cell", No, "Key of the cell."),
    ("plan", No, "SHA-256 of the plan."),
    ("program", No, "Version of the program that loaded it."),
    ("page", No, "SHA-256 of the page."),
    (
        "model",
        No,
        "Number of the model that computes loads in virtual time.",
    ),
    (
        "down_bps",
        No,
        "Rate to the client, bits per second; of a trace, its mean.",
    ),
    (
        "up_bps",
        No,
        "Rate from the client, bits per second; of a trace, its mean.",
    ),
    ("rtt_ms", No, "Round-trip propagation delay."),
    (
        "loss_down",
        Yes,
        "Share of lost packets to the client, 0 to 1.",
    ),
    (
        "loss_up",
        Yes,
        "Share of lost packets from the client, 0 to 1.",
    ),
    (
        "passes",
        No,
        "Number of times that a packet passes through a pipe in each direction.",
    ),
    ("queue", No, "Queue of the bottleneck."),
    ("tcp", Yes, "TCP of virtual time; `null` in real time."),
    (
        "initial_window",
        Yes,
        "Segments that a server may send before the first acknowledgement; `null` in real time, if it is the kernel's.",
    ),
    ("tls", Yes, "Version of TLS; `null` without TLS."),
    (
        "tls_resumption",
        No,
        "1 if TLS sessions are resumed, else 0.",
    ),
    (
        "dns",
        No,
        "How names are looked up: `round-trip` or `hosts-file`.",
    ),
    (
        "connections_per_host",
        No,
        "Number of HTTP/1.1 connections to one host at a time.",
    ),
    (
        "streams",
        No,
        "Maximum number of concurrent streams of a session.",
    ),
    (
        "compression",
        No,
        "Compression of SPDY headers: `masked`, or the level of zlib.",
    ),
    (
        "ip_pooling",
        No,
        "1 if hosts with the same address share a session in TLS, else 0.",
    ),
    (
        "push",
        No,
        "Resources that servers push. 0: none. 1: those that the load event waits for. 2: all of the host.",
    ),
    (
        "fold",
        No,
        "1 if all resources are on the page's own host, else 0.",
    ),
    (
        "deploy",
        No,
        "Hosts that have the protocol: `all`, or those of the site (`first-party`). Others have HTTP/1.1.",
    ),
    (
        "priorities",
        No,
        "1 if requests have the priority of their kind, 0 if all have the lowest.",
    ),
    (
        "hints",
        No,
        "1 if the head of the document has preload hints, else 0.",
    ),
    (
        "shard",
        No,
        "Number of hosts that have the page's own resources.",
    ),
    (
        "cache",
        No,
        "The content of the client's cache before the load.",
    ),
    ("frame", No, "Maximum payload of a DATA frame, bytes."),
    (
        "accelerator",
        No,
        "The accelerator in front of the hosts: `off`, `cold` or `warm`.",
    ),
    (
        "backhaul_ms",
        No,
        "Round trip between the access link and the origins, which is added to each request.",
    ),
    (
        "prefetch",
        No,
        "1 if the accelerator fetches resources as soon as it reads the page, else 0.",
    ),
    (
        "scheduler",
        No,
        "The scheduler that delays requests of the page, or `none`.",
    ),
    (
        "ml_kem",
        No,
        "1 if TLS uses a hybrid key exchange with ML-KEM, else 0.",
    ),
    (
        "think",
        No,
        "Factor by which recorded think times of servers are multiplied.",
    ),
    (
        "visit_ms",
        Yes,
        "Pause between two pages of a visit; `null` without a visit.",
    ),
    (
        "failures",
        Yes,
        "Exchanges that failed, one per line; `null` if there is none.",
    ),
    ("clock", No, "`virtual` or `real`."),
    (
        "congestion",
        Yes,
        "Congestion control of both ends; `null` in virtual time.",
    ),
    (
        "attempts",
        Yes,
        "Attempts of the run; `null` in virtual time.",
    ),
    (
        "invalid",
        Yes,
        "Why the run does not count, one reason per line; `null` if it counts.",
    ),
    (
        "rejected",
        Yes,
        "Load time and reasons of each earlier attempt, one per line; `null` if there is none.",
    ),
    (
        "achieved_up_bps",
        Yes,
        "Rate from the client while packets were queued, bits per second.",
    ),
    (
        "achieved_down_bps",
        Yes,
        "Rate to the client while packets were queued, bits per second.",
    ),
    (
        "achieved_delay_up_ms",
        Yes,
        "Propagation delay from the client, with the mean lateness.",
    ),
    (
        "achieved_delay_down_ms",
        Yes,
        "Propagation delay to the client, with the mean lateness.",
    ),
    (
        "lost_up",
        Yes,
        "Packets from the client that random loss dropped.",
    ),
    (
        "lost_down",
        Yes,
        "Packets to the client that random loss dropped.",
    ),
    (
        "queue_drops_up",
        Yes,
        "Packets from the client that the queue dropped.",
    ),
    (
        "queue_drops_down",
        Yes,
        "Packets to the client that the queue dropped.",
    ),
    (
        "device_drops_up",
        Yes,
        "Packets from the client that a device dropped.",
    ),
    (
        "device_drops_down",
        Yes,
        "Packets to the client that a device dropped.",
    ),
    (
        "late_mean_ms",
        Yes,
        "Mean lateness of packets in the worse direction.",
    ),
    (
        "late_p99_ms",
        Yes,
        "99th percentile of the lateness in the worse direction.",
    ),
    ("late_max_ms", Yes, "Largest lateness of a packet."),
    (
        "link_waited_ms",
        Yes,
        "Time for which the link's thread was runnable but did not run.",
    ),
    (
        "hosts_waited_ms",
        Yes,
        "Time for which client and servers were runnable but did not run.",
    ),
    ("computed_ms", Yes, "CPU time of client and servers."),
];

#[derive(Clone, Copy)]
enum Nullable {
    No,
    Yes,
}

impl JsonSchema for Row {
    fn schema_name() -> Cow<'static, str> {
        "Row".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let load = Load::json_schema(generator);
        for (name, ..) in MEANINGS {
            let is_column = COLUMNS.iter().any(|column| column.name == name);
            assert!(is_column, "{name} is not a column: remove its meaning");
        }
        let mut properties: BTreeMap<&str, Schema> = BTreeMap::new();
        for column in COLUMNS {
            let own = MEANINGS.iter().find(|(name, ..)| *name == column.name);
            let property = match own {
                Some((_, nullable, meaning)) => {
                    let json_type = match column.declared {
                        "TEXT" => "string",
                        "REAL" | "FLOAT" => "number",
                        _ => "integer",
                    };
                    match nullable {
                        No => json_schema!({"description": meaning, "type": json_type}),
                        Yes => json_schema!({"description": meaning, "type": [json_type, "null"]}),
                    }
                }
                None => {
                    let of_load = load.pointer(&format!("/properties/{}", column.name));
                    let of_load = of_load.unwrap_or_else(|| {
                        panic!("column {} has no meaning: add it here", column.name)
                    });
                    of_load.clone().try_into().expect("a schema")
                }
            };
            properties.insert(column.name, property);
        }
        let required = COLUMNS.map(|column| column.name).to_vec();
        json_schema!({
            "description": "One load, with the columns of a store.",
            "type": "object",
            "properties": properties,
            "required": required,
        })
    }
}
