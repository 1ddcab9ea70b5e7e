//! The certificate of `spdy serve`: from files, or of a local authority, for every host served.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use anyhow::Context;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{Identity, KeyKind, LocalCa};
use spdy_net::tls::{ServerTls, TlsOptions, TlsVersion};

use crate::output::{DIM, Printer};
use crate::service::listen::BoundListener;

/// Who the server says it is.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Certificates")]
pub(crate) struct CertificateArgs {
    /// Certificate chain, PEM, leaf first; without one, it is made on the spot for every host served
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Write the certificate of the local authority here, for --cacert of a client or a browser to trust. Its key is kept beside it (ca.pem: ca.key.pem), so that it is the same after the next start
    #[arg(long, value_name = "FILE", conflicts_with = "cert")]
    write_ca: Option<PathBuf>,

    /// Key of the certificate made on the spot
    #[arg(
        long,
        value_name = "KIND",
        default_value = "ecdsa",
        conflicts_with = "cert"
    )]
    key_kind: KeyKindArg,

    /// Lowest version of TLS: 1.2 or 1.3
    #[arg(long, value_name = "VERSION", default_value = "1.2")]
    tls_min: TlsVersion,

    /// Highest version of TLS
    #[arg(long, value_name = "VERSION", default_value = "1.3")]
    tls_max: TlsVersion,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum KeyKindArg {
    /// ECDSA over P-256
    Ecdsa,
    /// RSA, 2048 bits
    Rsa,
    /// Ed25519; browsers refuse it
    Ed25519,
}

/// TLS for all listeners: the certificate given, or one for every name and address served.
pub(crate) fn server_tls(
    choice: &CertificateArgs,
    protocols: &[Protocol],
    hosts: &[String],
    listeners: &[BoundListener],
    printer: &Printer,
) -> anyhow::Result<ServerTls> {
    let identity = match (&choice.cert, &choice.key) {
        (Some(cert), Some(key)) => Identity::from_files(cert, key)?,
        _ => {
            let kind = match choice.key_kind {
                KeyKindArg::Ecdsa => KeyKind::EcdsaP256,
                KeyKindArg::Rsa => KeyKind::Rsa2048,
                KeyKindArg::Ed25519 => KeyKind::Ed25519,
            };
            let ca = match &choice.write_ca {
                Some(path) => {
                    let ca = LocalCa::load_or_create(path, kind)?;
                    let key = LocalCa::key_file(path);
                    let (path, key) = (path.display(), key.display());
                    printer.note(format_args!(
                        "{DIM}the local authority is in {path}, its key in {key}{DIM:#}"
                    ));
                    ca
                }
                None => LocalCa::generate(kind)?,
            };
            let mut names = hosts.to_vec();
            names.push("localhost".to_owned());
            let mut addresses: Vec<IpAddr> = listeners
                .iter()
                .map(|bound| bound.info.address.ip())
                .filter(|address| !address.is_unspecified())
                .collect();
            addresses.push(Ipv4Addr::LOCALHOST.into());
            addresses.push(Ipv6Addr::LOCALHOST.into());
            ca.issue(&names, &addresses)
                .context("cannot make a certificate")?
        }
    };
    let options = TlsOptions {
        min: choice.tls_min,
        max: choice.tls_max,
        ..TlsOptions::default()
    };
    let tls = ServerTls::new(&identity, protocols, &options)?;
    Ok(tls.with_dynamic_record_size())
}
