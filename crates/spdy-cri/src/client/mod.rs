//! The client for exec, attach and port-forward, like `kubectl`, with a runtime's URL or that of the API server.
//!
//! Each call takes a connection (TCP, or TLS with the client's credentials) and the request: method, URL, headers.
//! The API server requires POST to `/api/v1/namespaces/NS/pods/POD/exec?command=..&stdin=true&..`.
//!
//! | | over SPDY | over WebSocket | the first that the server accepts |
//! | --- | --- | --- | --- |
//! | exec | [`exec`] | [`exec_in_websocket`] | [`exec_with_fallback`] |
//! | attach | [`attach`] | [`attach_in_websocket`] | [`attach_with_fallback`] |
//! | port-forward | [`port_forward`] | [`port_forward_in_websocket`], SPDY inside | [`port_forward_with_fallback`] |
//! | | | [`port_forward_in_channels`], the old form | |
//!
//! `kubectl` tries WebSocket first, and SPDY if that is refused. The URL of a runtime is valid for one request: after a refusal it
//! cannot be used again.

mod fallback;
mod options;
mod port_forward;
mod process;
mod streamer;

pub use fallback::{attach_with_fallback, exec_with_fallback, port_forward_with_fallback};
pub use options::{Options, Transport};
pub use port_forward::{
    ForwardedConnection, PortForward, port_forward, port_forward_in_channels,
    port_forward_in_websocket,
};
pub use process::{Process, attach, attach_in_websocket, exec, exec_in_websocket};
