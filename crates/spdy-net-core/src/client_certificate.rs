//! The certificate of a client, for the handlers of its requests.

use std::fmt;
use std::sync::Arc;

use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::BoxFuture;

use crate::handler::Handler;
use crate::refusal::Refusal;

/// The certificate that a client of TLS proved to have, and that was verified; in the extensions of its requests when a [`Handler`]
/// gets them. See [`ClientCertificates`](crate::tls::ClientCertificates).
#[derive(Clone, Eq, PartialEq)]
pub struct ClientCertificate(Arc<[u8]>);

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientCertificate({} bytes)", self.0.len())
    }
}

impl ClientCertificate {
    /// The certificate with these bytes, which was verified.
    #[must_use]
    pub fn new(der: &[u8]) -> Self {
        Self(der.into())
    }

    /// Its bytes (DER).
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.0
    }
}

/// `handler`, with `certificate` in the extensions of each request.
#[must_use]
pub fn with_client_certificate(
    handler: Arc<dyn Handler>,
    certificate: Option<ClientCertificate>,
) -> Arc<dyn Handler> {
    match certificate {
        Some(certificate) => Arc::new(CertifiedHandler {
            handler,
            certificate,
        }),
        None => handler,
    }
}

struct CertifiedHandler {
    handler: Arc<dyn Handler>,
    certificate: ClientCertificate,
}

impl Handler for CertifiedHandler {
    fn answer(&self, mut request: Request<Body>) -> BoxFuture<Response<Body>> {
        let certificate = self.certificate.clone();
        request.extensions_mut().insert(certificate);
        self.handler.answer(request)
    }

    fn refused(&self, refusal: &Refusal<'_>) {
        self.handler.refused(refusal);
    }
}
