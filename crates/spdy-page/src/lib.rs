//! A recorded page: what was exchanged, what needs what, and the file that keeps it. (Contract)

pub mod replica;
pub mod graph;
// to come: archive.rs (a replica is a WARC 1.1 file with metadata records), warc.rs, har.rs, head.rs (literal heads),
// kind.rs, html.rs / css.rs (what a text reveals, and where), infer.rs, builtin.rs, check.rs, open.rs (any of them, also .gz, also by name)
