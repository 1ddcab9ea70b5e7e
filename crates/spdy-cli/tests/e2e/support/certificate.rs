//! A certificate for peers that serve TLS.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::LazyLock;

use spdy_net::tls::certificates::{KeyKind, LocalCa};

/// Files in PEM.
pub(crate) struct Certificate {
    /// The CA, for `--cacert`.
    pub(crate) authority: PathBuf,
    /// The server's certificate chain.
    pub(crate) chain: PathBuf,
    /// Its private key.
    pub(crate) key: PathBuf,
}

/// A certificate for `localhost` and 127.0.0.1, generated once per test process.
pub(crate) static CERTIFICATE: LazyLock<Certificate> = LazyLock::new(|| {
    let authority = LocalCa::generate(KeyKind::EcdsaP256).expect("create a CA");
    let names = ["localhost".to_owned()];
    let leaf = authority
        .issue(&names, &[IpAddr::V4(Ipv4Addr::LOCALHOST)])
        .expect("create a certificate");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("certificate-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("create the test's folder");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).expect("write the test's file");
        path
    };
    Certificate {
        authority: write("authority.pem", authority.pem().to_owned()),
        chain: write("chain.pem", leaf.chain_pem()),
        key: write("key.pem", leaf.key_pem()),
    }
});
