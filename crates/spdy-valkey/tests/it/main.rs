//! The shared tier against real Valkey clusters.

mod cluster;
mod misleading_clusters;
mod support;
mod unavailable_nodes;
