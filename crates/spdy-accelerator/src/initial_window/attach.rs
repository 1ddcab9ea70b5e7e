//! Attaches the BPF program to the control group of this process.

use std::fs::File;

use anyhow::Context;
use aya::Ebpf;
use aya::programs::{CgroupAttachMode, CgroupSockopt};
use spdy_service::notice::Notices;

use super::{capabilities, control_group, program};

/// While this exists, sockets of the program's control group have the option TCP_BPF_IW.
#[derive(Debug)]
pub(crate) struct InitialWindowOption {
    _attached: Ebpf,
}

impl InitialWindowOption {
    /// Attaches the program, unless `remember` forbids it. Without the capabilities, on an older kernel or without control groups of version 2
    /// it reports that, and connections start with the system's window.
    pub(crate) fn attach(remember: Option<bool>, notices: &Notices) -> Option<Self> {
        if remember == Some(false) {
            return None;
        }
        Self::try_attach(remember.is_some())
            .inspect_err(|reason| {
                notices.info(format_args!(
                    "TCP connections start with the system's congestion window: {reason:#}"
                ));
            })
            .ok()
    }

    /// Attaches the program. A filter of system calls may end this process for it: with one, that happens only if `is_requested`.
    fn try_attach(is_requested: bool) -> anyhow::Result<Self> {
        capabilities::check(is_requested)?;
        let folder = control_group::of_this_process()?;
        let group = File::open(&folder)
            .with_context(|| format!("cannot open the control group {}", folder.display()))?;
        let mut loaded = Ebpf::load(&program::object_file()?)?;
        let program = loaded.program_mut(program::NAME);
        let program: &mut CgroupSockopt = program
            .context("the object file has no program")?
            .try_into()?;
        program.load()?;
        // A link allows other programs beside this one in any mode, and the kernel rejects the flag that says so.
        program.attach(group, CgroupAttachMode::Single)?;
        Ok(Self { _attached: loaded })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use spdy::runtime::{SharedRuntime, TokioRuntime};
    use spdy_net::congestion::{CongestionSocket, RememberedWindows, WindowSample};

    use super::*;

    /// The congestion window of a connection that [`RememberedWindows::start`] was called for, packets.
    fn window_of_new_connection(windows: &RememberedWindows) -> u32 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, client) = listener.accept().unwrap();
        accepted.set_nonblocking(true).unwrap();
        let same_socket = accepted.try_clone().unwrap();
        let [stream, same_socket] =
            [accepted, same_socket].map(|it| tokio::net::TcpStream::from_std(it).unwrap());
        let _io = windows.start(stream, client.ip());
        same_socket.window().unwrap().packets
    }

    /// Needs the capabilities. `SPDY_SKIP_NAMESPACES=1` skips it on a machine that does not grant them.
    #[tokio::test]
    async fn connection_starts_with_the_remembered_window_while_the_program_is_attached() {
        if std::env::var_os("SPDY_SKIP_NAMESPACES").is_some() {
            return;
        }
        let windows = RememberedWindows::new(SharedRuntime::new(TokioRuntime::start()));
        let before = window_of_new_connection(&windows);
        let reached = WindowSample {
            window_packets: 80,
            has_losses: false,
        };
        windows.record(Ipv4Addr::LOCALHOST.into(), reached);
        assert_eq!(window_of_new_connection(&windows), before);

        let attached = InitialWindowOption::try_attach(true);
        let attached = attached.expect("root, or CAP_BPF and CAP_NET_ADMIN");
        assert_eq!(window_of_new_connection(&windows), 40);
        drop(attached);
        assert_eq!(window_of_new_connection(&windows), before);
    }
}
