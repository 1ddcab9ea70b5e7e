//! Identities that are exchanged while they are shown, and an authority that outlives its process.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use spdy_net_core::tls::certificates::{Identity, KeyKind, LocalCa};
use spdy_net_core::tls::identities::Identities;
use spdy_net_core::tls::local_certificates::LocalCertificates;
use spdy_net_core::tls::verify::Trust;
use spdy_net_core::tls::{ClientTls, HandshakeInfo, PeerCertificates, ServerTls, TlsOptions};

use crate::support::{ALL, PIPE, without_key_log};

fn no_tickets() -> TlsOptions {
    let mut options = without_key_log();
    options.resumption = false; // or a later handshake would show no certificate
    options
}

/// The leaf certificate that the server presents for `host`.
async fn leaf_of(server: &ServerTls, client: &ClientTls, host: &str) -> CertificateDer<'static> {
    let (near, far) = tokio::io::duplex(PIPE);
    let connecting = client.connect_with_certificates(Box::new(near), host);
    let accepting = server.accept(Box::new(far));
    let (near, far) = futures_util::future::join(connecting, accepting).await;
    far.unwrap();
    let (_, _, chain) = near.unwrap();
    chain[0].clone().into_owned()
}

/// The certificates that the server presents to a client that requests `host`, if the client trusts them.
async fn chain_of(
    server: &ServerTls,
    client: &ClientTls,
    host: &str,
) -> std::io::Result<PeerCertificates> {
    let (near, far) = tokio::io::duplex(PIPE);
    let connecting = client.connect_with_certificates(Box::new(near), host);
    let accepting = server.accept(Box::new(far));
    let (near, _) = futures_util::future::join(connecting, accepting).await;
    near.map(|(_, _, chain)| chain)
}

struct TestCa {
    ca: LocalCa,
    client: ClientTls,
}

impl TestCa {
    fn open() -> Self {
        let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
        let trust = Trust::only(vec![ca.certificate().clone()]);
        let client = ClientTls::new(&trust, &no_tickets()).unwrap();
        Self { ca, client }
    }

    /// For every name of these tests, so that the server alone decides which certificate a client gets.
    fn issue(&self) -> Identity {
        let names = ["a.test", "b.test", "*.x.test", "*.y.x.test"].map(str::to_owned);
        self.ca.issue(&names, &[]).unwrap()
    }
}

#[tokio::test]
async fn a_wildcard_matches_one_label_of_an_unlisted_host() {
    let shop = TestCa::open();
    let [exact, wild, rest] = [(); 3].map(|()| shop.issue());
    let hosts = [
        ("A.test".to_owned(), exact.clone()),
        ("*.x.test".to_owned(), wild.clone()),
        ("b.x.test".to_owned(), exact.clone()),
        ("a.test".to_owned(), rest.clone()), // listed twice: the first counts
    ];
    let identities = Identities::new(&hosts, &rest, &no_tickets()).unwrap();
    let server = ServerTls::of(&identities, &ALL, &no_tickets()).unwrap();
    for (host, expected) in [
        ("a.test", &exact),
        ("a.x.test", &wild),
        ("b.x.test", &exact),
        ("a.y.x.test", &rest),
        ("b.test", &rest),
    ] {
        let leaf = leaf_of(&server, &shop.client, host).await;
        assert_eq!(leaf, expected.chain[0], "{host}");
    }
}

#[tokio::test]
async fn identities_are_replaced_all_or_none() {
    let shop = TestCa::open();
    let [old, new, rest] = [(); 3].map(|()| shop.issue());
    let host = |identity: &Identity| [("a.test".to_owned(), identity.clone())];
    let identities = Identities::new(&host(&old), &rest, &no_tickets()).unwrap();
    let server = ServerTls::of(&identities, &ALL, &no_tickets()).unwrap();
    assert_eq!(leaf_of(&server, &shop.client, "a.test").await, old.chain[0]);

    identities.replace(&host(&new), &rest).unwrap();
    assert_eq!(leaf_of(&server, &shop.client, "a.test").await, new.chain[0]);

    let mismatched = Identity {
        chain: old.chain.clone(),
        key: rest.key.clone_key(),
    };
    let error = identities.replace(&host(&old), &mismatched).unwrap_err();
    assert!(error.to_string().starts_with("tls: "), "{error}");
    assert_eq!(leaf_of(&server, &shop.client, "a.test").await, new.chain[0]);

    identities.replace(&[], &rest).unwrap();
    assert_eq!(
        leaf_of(&server, &shop.client, "a.test").await,
        rest.chain[0]
    );
}

/// A handshake with what `offered` by ALPN alone; the certificate that is shown and what is agreed on.
async fn shown_to(
    server: &ServerTls,
    shop: &TestCa,
    offered: &[u8],
    host: &str,
) -> std::io::Result<(CertificateDer<'static>, HandshakeInfo)> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(shop.ca.certificate().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![offered.to_vec()];
    let name = rustls::pki_types::ServerName::try_from(host.to_owned()).unwrap();
    let (near, far) = tokio::io::duplex(PIPE);
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let connecting = connector.connect(name, near);
    let accepting = server.accept(Box::new(far));
    let (near, far) = futures_util::future::join(connecting, accepting).await;
    let (_, negotiated) = far?;
    let near = near?;
    let chain = near.get_ref().1.peer_certificates().unwrap();
    Ok((chain[0].clone().into_owned(), negotiated))
}

#[tokio::test]
async fn an_acme_challenge_is_served_to_acme_tls_until_it_is_dropped() {
    let shop = TestCa::open();
    let [site, first, second] = [(); 3].map(|()| shop.issue());
    let identities = Identities::new(&[], &site, &no_tickets()).unwrap();
    let server = ServerTls::of(&identities, &ALL, &no_tickets()).unwrap();
    let (plain, server) = (server.clone(), server.with_acme_challenges());
    let acme_protocol = b"acme-tls/1";
    assert!(
        shown_to(&server, &shop, acme_protocol, "a.test")
            .await
            .is_err()
    );

    let proof = identities.show_challenge("A.test", &first).unwrap();
    let (leaf, negotiated) = shown_to(&server, &shop, acme_protocol, "a.test")
        .await
        .unwrap();
    assert!(
        leaf == first.chain[0] && negotiated.is_acme_challenge && negotiated.protocol.is_none()
    );
    let (leaf, negotiated) = shown_to(&server, &shop, b"h2", "a.test").await.unwrap();
    assert!(leaf == site.chain[0] && !negotiated.is_acme_challenge);
    assert!(
        shown_to(&server, &shop, acme_protocol, "b.test")
            .await
            .is_err()
    );
    // A server without challenges does not present one.
    assert!(
        shown_to(&plain, &shop, acme_protocol, "a.test")
            .await
            .is_err()
    );

    // What is exchanged meanwhile leaves it where it is, and the end of an earlier one leaves the later.
    identities.replace(&[], &site).unwrap();
    let later = identities.show_challenge("a.test", &second).unwrap();
    drop(proof);
    let (leaf, _) = shown_to(&server, &shop, acme_protocol, "a.test")
        .await
        .unwrap();
    assert_eq!(leaf, second.chain[0]);
    drop(later);
    assert!(
        shown_to(&server, &shop, acme_protocol, "a.test")
            .await
            .is_err()
    );
}

#[tokio::test]
async fn hosts_and_the_fallback_are_replaced_separately() {
    let shop = TestCa::open();
    let [listed, rest, replacement] = [(); 3].map(|()| shop.issue());
    let host = |identity: &Identity| [("a.test".to_owned(), identity.clone())];
    let identities = Identities::new(&host(&listed), &rest, &no_tickets()).unwrap();
    let server = ServerTls::of(&identities, &ALL, &no_tickets()).unwrap();
    let certify = |identity: &Identity| identities.certify(identity).unwrap();
    identities.show_fallback(certify(&replacement));
    assert_eq!(
        leaf_of(&server, &shop.client, "a.test").await,
        listed.chain[0]
    );
    assert_eq!(
        leaf_of(&server, &shop.client, "b.test").await,
        replacement.chain[0]
    );
    identities.show_hosts([("A.test".to_owned(), certify(&rest))]);
    assert_eq!(
        leaf_of(&server, &shop.client, "a.test").await,
        rest.chain[0]
    );
    identities.show_hosts([]);
    assert_eq!(
        leaf_of(&server, &shop.client, "a.test").await,
        replacement.chain[0]
    );
}

#[tokio::test]
async fn a_stored_ca_is_used_again() {
    for kind in [KeyKind::EcdsaP256, KeyKind::Rsa2048, KeyKind::Ed25519] {
        let dir = tempfile::tempdir().unwrap();
        let certificate = dir.path().join("ca.pem");
        assert!(LocalCa::load(&certificate, kind).unwrap().is_none());
        let first = LocalCa::load_or_create(&certificate, kind).unwrap();
        std::fs::write(&certificate, "something else").unwrap();
        let second = LocalCa::load_or_create(&certificate, KeyKind::EcdsaP256).unwrap();
        assert_eq!(first.pem(), second.pem());
        assert_eq!(std::fs::read_to_string(&certificate).unwrap(), first.pem());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2); // nothing else is left
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let key = dir.path().join("ca.key.pem").metadata().unwrap();
            assert_eq!(key.permissions().mode() & 0o777, 0o600);
        }
        // A client that trusts the first authority trusts the certificates that it signs later.
        let trust = Trust::only(vec![first.certificate().clone()]);
        let client = ClientTls::new(&trust, &no_tickets()).unwrap();
        let leaf = second.issue(&["a.test".to_owned()], &[]).unwrap();
        let server = ServerTls::new(&leaf, &ALL, &no_tickets()).unwrap();
        assert_eq!(leaf_of(&server, &client, "a.test").await, leaf.chain[0]);
    }
}

#[test]
fn concurrent_creation_yields_one_local_ca() {
    let dir = tempfile::tempdir().unwrap();
    let certificate = dir.path().join("ca.pem");
    let make =
        || LocalCa::load_or_create(&certificate, KeyKind::EcdsaP256).map(|ca| ca.pem().to_owned());
    let authorities: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.collect::<Result<_, _>>().unwrap()
    });
    assert!(authorities.iter().all(|pem| *pem == authorities[0]));
}

#[test]
fn an_unreadable_ca_file_is_an_error_and_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let certificate = dir.path().join("ca.pem");
    let key = dir.path().join("ca.key.pem");
    let [first, second] = [(); 2].map(|()| {
        let dir = tempfile::tempdir().unwrap();
        LocalCa::load_or_create(&dir.path().join("ca.pem"), KeyKind::EcdsaP256).unwrap();
        std::fs::read_to_string(dir.path().join("ca.key.pem")).unwrap()
    });
    let at = first.find("-----BEGIN CERT").unwrap();
    let other_at = second.find("-----BEGIN CERT").unwrap();
    for (text, expected) in [
        (String::new(), "no certificate in"),
        (first[at..].to_owned(), "no private key in"),
        (first[..at].to_owned(), "no certificate in"),
        (format!("{}{}", &first[..at], &second[other_at..]), "tls: "),
    ] {
        std::fs::write(&key, &text).unwrap();
        let error = LocalCa::load_or_create(&certificate, KeyKind::EcdsaP256).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(std::fs::read_to_string(&key).unwrap(), text);
    }
    let nowhere = dir.path().join("nowhere/ca.pem");
    let error = LocalCa::load_or_create(&nowhere, KeyKind::EcdsaP256).unwrap_err();
    assert!(error.to_string().starts_with("cannot write"), "{error}");
}

#[tokio::test]
async fn each_of_2000_sites_has_its_own_small_certificate() {
    let authority = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let trust = Trust::only(vec![authority.certificate().clone()]);
    let client = ClientTls::new(&trust, &no_tickets()).unwrap();
    let site = |number| {
        vec![
            format!("www.site{number}.test"),
            format!("site{number}.test"),
        ]
    };
    let loopback = vec![[127, 0, 0, 1].into()];
    let groups = (0..2000).map(site).collect();
    let local = LocalCertificates::new(Arc::new(authority), groups, loopback).unwrap();
    let identities = Identities::local(&Arc::new(local), &no_tickets()).unwrap();
    let server = ServerTls::of(&identities, &ALL, &no_tickets()).unwrap();
    let mut leaves = Vec::new();
    for host in [
        "www.site0.test",
        "site1999.test",
        "WWW.site1999.test",
        "127.0.0.1",
    ] {
        let chain = chain_of(&server, &client, host).await.expect(host);
        let bytes: usize = chain.iter().map(|certificate| certificate.len()).sum();
        assert!(bytes < 4 << 10, "{host}: {bytes} bytes");
        leaves.push(chain[0].clone());
    }
    assert_eq!(leaves[1], leaves[2], "one site has one certificate");
    assert_eq!(
        leaves[0], leaves[3],
        "without a name it is the first site's"
    );
    assert_ne!(leaves[0], leaves[1]);
    // Of an unknown name the client sees another's.
    assert!(chain_of(&server, &client, "other.test").await.is_err());
}
