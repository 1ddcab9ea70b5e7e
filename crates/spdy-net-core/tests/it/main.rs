//! TLS of both ends over a pipe.

mod certificates;
mod support;
mod tls;
mod tls_records;
