//! The connection to a PostgreSQL server with TLS by our own code, instead of a second library.

use std::future::Future;
use std::io;
use std::pin::Pin;

use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use spdy::forward_io;
use spdy_net::network::BoxIo;
use spdy_net::tls::error::TlsSetupError;
use spdy_net::tls::verify::{Roots, Trust};
use spdy_net::tls::{ClientTls, KeyLogTarget, TlsOptions};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::store::postgres::url::{Encryption, Target};

/// Makes a handshake with each server.
#[derive(Clone)]
pub(crate) struct Tls(ClientTls);

impl Tls {
    /// Trusts the certificates of `target`.
    pub(crate) fn new(target: &Target) -> Result<Self, TlsSetupError> {
        let trust = Trust {
            roots: target.roots.clone().map_or(Roots::System, Roots::File),
            insecure: target.encryption != Encryption::VerifyFull,
            ..Trust::default()
        };
        let mut options = TlsOptions::default();
        // This connection is not part of a measurement.
        options.key_log = KeyLogTarget::Disabled;
        Ok(Self(ClientTls::new(&trust, &options)?))
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> MakeTlsConnect<S> for Tls {
    type Stream = TlsConnection;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        Ok(Handshake {
            tls: self.0.clone(),
            host: host.to_owned(),
        })
    }
}

/// A pending handshake with one server.
pub(crate) struct Handshake {
    tls: ClientTls,
    host: String,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> TlsConnect<S> for Handshake {
    type Stream = TlsConnection;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TlsConnection>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let (io, _) = self.tls.connect(Box::new(stream), &self.host).await?;
            Ok(TlsConnection(io))
        })
    }
}

/// A connection with TLS.
pub(crate) struct TlsConnection(BoxIo);

impl TlsStream for TlsConnection {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for TlsConnection {
    forward_io!(poll_read => self.0);
}

impl AsyncWrite for TlsConnection {
    forward_io!(poll_write, poll_flush, poll_shutdown => self.0);
}
