//! TLS for loads in virtual time: real handshakes and records, whose lengths never vary.
//!
//! - **Identity.** One fixed chain of two certificates and one fixed Ed25519 key for every host, stored in
//!   `data/tls/` (test-only key material). A fresh certificate differs in length by its serial number, and an
//!   ECDSA signature by a byte or two; either would change times from run to run.
//! - **Trust.** The client accepts any chain and any name, and still checks the handshake's signature: loads do not measure
//!   certificate authorities.
//! - **Time.** Certificates and tickets are checked against one fixed time.
//! - **Key exchange.** X25519 alone, unless ML-KEM is enabled ([`Options::ml_kem`]). The hybrid of both adds 1.1 kB to each hello.
//!   That would make loads of today differ from those of 2013 by more than the protocol.
//!
//! Randoms, keys and tickets come from the system. Their contents differ from run to run, and no measured value depends on them.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::Identity;
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions, TlsVersion};

use crate::options::{Options, RaceProtocol};
use crate::runtime::WALL_EPOCH;

/// The certificates of every server, as PEM.
pub const CHAIN_PEM: &[u8] = include_bytes!("../../data/tls/chain.pem");
/// Their private key, as PEM.
pub const KEY_PEM: &[u8] = include_bytes!("../../data/tls/key.pem");

fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        Identity::from_pem(CHAIN_PEM, KEY_PEM, "the lab's own")
            .expect("the identity in data/tls is complete")
    })
}

fn provider(ml_kem: bool) -> Arc<CryptoProvider> {
    static PROVIDERS: [OnceLock<Arc<CryptoProvider>>; 2] = [OnceLock::new(), OnceLock::new()];
    let make = || {
        let x25519 = aws_lc_rs::kx_group::X25519;
        let kx_groups = match ml_kem {
            true => vec![aws_lc_rs::kx_group::X25519MLKEM768, x25519],
            false => vec![x25519],
        };
        Arc::new(CryptoProvider {
            kx_groups,
            ..aws_lc_rs::default_provider()
        })
    };
    PROVIDERS[usize::from(ml_kem)].get_or_init(make).clone()
}

fn tls_options(min: TlsVersion, max: TlsVersion, options: &Options) -> TlsOptions {
    let mut tls = TlsOptions::default();
    tls.min = min;
    tls.max = max;
    tls.key_log = KeyLogTarget::Disabled;
    tls.provider = provider(options.ml_kem);
    tls.wall_now = Some(SystemTime::UNIX_EPOCH + WALL_EPOCH);
    tls.resumption = options.tls_resumption;
    tls
}

/// The client's side of one load. It is new, so no load resumes a TLS session of another.
///
/// For HTTP/3 it needs TLS 1.3, and some hosts may speak another protocol over an older version.
pub(crate) fn client(protocol: RaceProtocol, options: &Options) -> ClientTls {
    let max = match protocol.wire_protocol().is_over_quic() {
        true => TlsVersion::Tls13,
        false => options.tls,
    };
    let trust = Trust {
        insecure: true,
        ..Trust::default()
    };
    let options = tls_options(options.tls, max, options);
    ClientTls::new(&trust, &options).expect("the TLS client options are valid")
}

/// The side of servers that speak `spoken`, the best protocol first, in one load.
pub(crate) fn server(spoken: &[Protocol], options: &Options) -> ServerTls {
    let version = match spoken.iter().any(|protocol| protocol.is_over_quic()) {
        true => TlsVersion::Tls13,
        false => options.tls,
    };
    let options = tls_options(version, version, options);
    ServerTls::new(identity(), spoken, &options).expect("the TLS server options are valid")
}
