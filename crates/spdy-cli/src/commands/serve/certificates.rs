//! The certificate of `spdy serve`: from files, or of a local authority, for every host served.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use anyhow::Context;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{Identity, KeyKind, LocalCa};
use spdy_net::tls::{ServerTls, TlsOptions};
use spdy_service::listen::BoundListener;

use crate::output::{DIM, Printer};

/// The server's certificate.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Certificates")]
pub(crate) struct CertificateArgs {
    /// Certificate chain, PEM, leaf first; without it, a local authority signs a certificate for each served host
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Write the local authority's certificate to this file, for --cacert of a client or for a browser.
    ///
    /// Its key is stored beside it (ca.pem: ca.key.pem), so that the authority stays the same after a restart.
    #[arg(long, value_name = "FILE", conflicts_with = "cert")]
    write_ca: Option<PathBuf>,
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
            let kind = KeyKind::EcdsaP256;
            let ca = match &choice.write_ca {
                Some(path) => {
                    let ca = LocalCa::load_or_create(path, kind)?;
                    let key = LocalCa::key_file(path);
                    let (path, key) = (path.display(), key.display());
                    printer.note(format_args!(
                        "{DIM}the certificate of the local CA is in {path}, its key in {key}{DIM:#}"
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
    let tls = ServerTls::new(&identity, protocols, &TlsOptions::default())?;
    Ok(tls.with_dynamic_record_size())
}
