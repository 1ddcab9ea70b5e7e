//! Independent implementations of SPDY, in both roles.

mod jvm;
mod moby;
mod netty;
mod node;
mod peer_test;
mod version_detection;
