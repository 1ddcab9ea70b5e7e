//! Several streams over one plain WebSocket, without SPDY: `v5.channel.k8s.io` and older versions.
//!
//! ```text
//!  message     00 66 6f 6f 0a      channel 0, "foo\n"            (base64: 30 "Zm9vCg==")
//!  message     ff 00               the sender has no more for channel 0, version 5 only
//!  close 1000                      the end of all channels
//!
//!              exec, attach                       port-forward, of the n-th port of the request
//!  channel 0   stdin, from the client             2n      the connection, both ways
//!          1   stdout                             2n + 1  an error, from the server
//!          2   stderr                             Each begins with the port from the server, 16 bits,
//!          3   status                             the low byte first.
//!          4   sizes of the terminal, from the client
//! ```
//!
//! Surprising behaviour of the kubelet: the server's first message is empty, so that the client knows that
//! it runs. Messages on an unused channel are discarded. Before version 5 only the end of the connection
//! ends stdin.
//!
//! [`Channels`] is the connection, with a [`Reader`] or [`Writer`] for each end of a channel.

mod channel;
mod codec;
mod connection;
pub(crate) mod port_forward;
pub(crate) mod remote_command;

pub(crate) use channel::{Reader, Writer};
pub(crate) use connection::{
    ChannelDirection, ChannelEnds, Channels, Heartbeat, KeepOpen, run_with,
};
