//! The replicas that are part of the program, with their licences.
//!
//! `examples/make_builtins.rs` creates them and defines their content. The files are ordinary replicas, and their `source` field has
//! the licence.

use bytes::Bytes;

use crate::coding;
use crate::limits::Limits;
use crate::replica::{Replica, archive, warc_record};

/// The shipped names, for [`open`](crate::open::open).
pub const NAMES: [&str; 2] = ["flags", "portal"];

/// The file of the shipped replica `name`.
pub fn bytes(name: &str) -> Option<&'static [u8]> {
    match name {
        "flags" => Some(include_bytes!("../replicas/flags.warc.gz")),
        "portal" => Some(include_bytes!("../replicas/portal.warc.gz")),
        _ => None,
    }
}

/// A page of 196 small flag images on one host: many resources, few bytes.
pub fn flags() -> Replica {
    shipped("flags")
}

/// A page of 44 resources on 7 hosts, 320 kB: the average page of its time.
pub fn portal() -> Replica {
    shipped("portal")
}

fn shipped(name: &str) -> Replica {
    let file = bytes(name)
        .unwrap_or_else(|| panic!("unknown shipped replica {name}, expected one of {NAMES:?}"));
    let limits = Limits::default();
    let records = coding::gunzip(file, limits.inflated_bytes)
        .unwrap_or_else(|error| panic!("cannot decompress the shipped replica {name}: {error}"));
    warc_record::read_all(&Bytes::from(records), &limits)
        .and_then(|records| archive::decode(&records, &limits))
        .unwrap_or_else(|error| panic!("shipped replica {name}: {error}"))
}
