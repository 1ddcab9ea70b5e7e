//! Exec, attach and port-forward: client and server of this crate, and Kubernetes' own at either end.

mod example_runtime;
mod exec;
mod exec_sessions;
mod exec_tokens;
mod interop_kubelet;
mod interop_kubernetes;
mod metrics;
mod port_forward;
mod responder;
mod silent_network;
mod support;
mod transcripts;
mod tutorial;
mod websocket_exec;
mod websocket_port_forward;
mod websocket_rules;
