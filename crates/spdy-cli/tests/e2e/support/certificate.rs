//! A certificate for peers that serve TLS.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::LazyLock;

use spdy_net::tls::certificates::{KeyKind, LocalCa};

/// Files in PEM.
pub(crate) struct Certificate {
    /// The authority, for `--cacert`.
    pub(crate) authority: PathBuf,
    /// The chain of the server.
    pub(crate) chain: PathBuf,
    /// Its key.
    pub(crate) key: PathBuf,
}

/// One for `localhost` and 127.0.0.1, made once a run.
pub(crate) static CERTIFICATE: LazyLock<Certificate> = LazyLock::new(|| {
    let authority = LocalCa::generate(KeyKind::EcdsaP256).expect("an authority can be made");
    let names = ["localhost".to_owned()];
    let leaf = authority
        .issue(&names, &[IpAddr::V4(Ipv4Addr::LOCALHOST)])
        .expect("a certificate can be made");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("certificate-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the folder of a test can be made");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).expect("the folder of a test can be written to");
        path
    };
    Certificate {
        authority: write("authority.pem", authority.pem().to_owned()),
        chain: write("chain.pem", leaf.chain_pem()),
        key: write("key.pem", leaf.key_pem()),
    }
});
