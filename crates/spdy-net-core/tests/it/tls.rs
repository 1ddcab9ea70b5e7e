//! Whom a client believes, what the two sides agree on, and sessions taken up again.

use std::io;

use rustls::ProtocolVersion;
use spdy_net_core::network::BoxIo;
use spdy_net_core::protocol::Protocol;
use spdy_net_core::tls::certificates::{Identity, KeyKind, LocalCa};
use spdy_net_core::tls::pins::Pin;
use spdy_net_core::tls::verify::{Roots, Trust};
use spdy_net_core::tls::{
    ClientCertificates, ClientTls, HandshakeInfo, ServerTls, TlsOptions, TlsVersion,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{ALL, PIPE, tls_pair, without_key_log};

/// Both outcomes of one handshake. Each side then sends a byte and reads one, so that tickets arrive.
async fn shake(
    server: &ServerTls,
    client: &ClientTls,
    host: &str,
) -> (io::Result<HandshakeInfo>, io::Result<HandshakeInfo>) {
    async fn greet(io: io::Result<(BoxIo, HandshakeInfo)>) -> io::Result<HandshakeInfo> {
        let (mut io, negotiated) = io?;
        io.write_all(b"x").await?;
        io.flush().await?;
        io.read_exact(&mut [0]).await?;
        Ok(negotiated)
    }
    let (near, far) = tokio::io::duplex(PIPE);
    let near = async { greet(client.connect(Box::new(near), host).await).await };
    let far = async { greet(server.accept(Box::new(far)).await).await };
    futures_util::future::join(near, far).await
}

#[tokio::test]
async fn every_key_kind_issues_a_trusted_certificate() {
    for kind in [KeyKind::EcdsaP256, KeyKind::Rsa2048, KeyKind::Ed25519] {
        let ca = LocalCa::generate(kind).unwrap();
        let names = ["example.org".to_owned(), "127.0.0.2".to_owned()];
        let identity = ca.issue(&names, &["::1".parse().unwrap()]).unwrap();
        let server = ServerTls::new(&identity, &ALL, &without_key_log()).unwrap();
        let client = ClientTls::new(
            &Trust::only(vec![ca.certificate().clone()]),
            &without_key_log(),
        )
        .unwrap();
        for host in ["example.org", "127.0.0.2", "::1", "[::1]"] {
            let (near, far) = shake(&server, &client, host).await;
            near.unwrap_or_else(|error| panic!("{kind:?} {host}: {error}"));
            far.unwrap();
        }
        let (near, _) = shake(&server, &client, "example.com").await;
        let error = near.expect_err("another name").to_string();
        assert!(error.contains("not valid for name"), "{error}");
    }
}

#[tokio::test]
async fn an_unknown_certificate_is_refused_unless_insecure() {
    let (server, _) = tls_pair(&without_key_log());
    let (_, client) = tls_pair(&without_key_log());
    assert!(
        shake(&server, &client, "localhost").await.0.is_err(),
        "another certificate authority"
    );
    let trust = Trust {
        insecure: true,
        ..Trust::default()
    };
    let client = ClientTls::new(&trust, &without_key_log()).unwrap();
    shake(&server, &client, "any.name").await.0.unwrap();
}

#[tokio::test]
async fn a_pin_accepts_its_own_key_only() {
    let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let identity = ca.issue(&["localhost".to_owned()], &[]).unwrap();
    let other_identity = ca.issue(&["localhost".to_owned()], &[]).unwrap();
    let server = ServerTls::new(&identity, &ALL, &without_key_log()).unwrap();
    let roots = Roots::Only(vec![ca.certificate().clone()]);
    for insecure in [false, true] {
        let pinned = |identity: &Identity| {
            let pins = vec![Pin::of(&identity.chain[0]).unwrap()];
            let trust = Trust {
                roots: roots.clone(),
                pins,
                insecure,
                ..Trust::default()
            };
            ClientTls::new(&trust, &without_key_log()).unwrap()
        };
        shake(&server, &pinned(&identity), "localhost")
            .await
            .0
            .unwrap();
        let result = shake(&server, &pinned(&other_identity), "localhost")
            .await
            .0;
        let error = result.expect_err("another key").to_string();
        assert!(error.contains("not pinned"), "{error}");
    }
}

#[tokio::test]
async fn the_server_chooses_from_the_offer_of_the_client() {
    let (server, client) = tls_pair(&without_key_log());
    for (offered, expected) in [
        (
            &[Protocol::Http1, Protocol::Http2][..],
            Some(Protocol::Http2),
        ),
        (&[Protocol::Http1][..], Some(Protocol::Http1)),
        (&ALL[..], Some(ALL[0])),
        (&[][..], None),
    ] {
        let (near, far) = shake(&server, &client.with_alpn(offered), "localhost").await;
        assert_eq!(
            (near.unwrap().protocol, far.unwrap().protocol),
            (expected, expected),
            "{offered:?}"
        );
    }
}

#[tokio::test]
async fn versions_stay_within_their_bounds() {
    for (min, max, expected) in [
        (
            TlsVersion::Tls12,
            TlsVersion::Tls12,
            ProtocolVersion::TLSv1_2,
        ),
        (
            TlsVersion::Tls12,
            TlsVersion::Tls13,
            ProtocolVersion::TLSv1_3,
        ),
        (
            TlsVersion::Tls13,
            TlsVersion::Tls13,
            ProtocolVersion::TLSv1_3,
        ),
    ] {
        let mut options = without_key_log();
        options.min = min;
        options.max = max;
        let (server, client) = tls_pair(&options);
        let negotiated = shake(&server, &client, "localhost").await.0.unwrap();
        assert_eq!(negotiated.version, Some(expected));
    }
    let mut upside_down = without_key_log();
    upside_down.min = TlsVersion::Tls13;
    upside_down.max = TlsVersion::Tls12;
    assert!(ClientTls::new(&Trust::default(), &upside_down).is_err());
}

#[tokio::test]
async fn a_second_connection_resumes_the_tls_session() {
    for max in [TlsVersion::Tls12, TlsVersion::Tls13] {
        for resumption in [true, false] {
            let mut options = without_key_log();
            options.max = max;
            options.resumption = resumption;
            let (server, client) = tls_pair(&options);
            let (first, _) = shake(&server, &client, "localhost").await;
            assert!(!first.unwrap().resumed);
            // The list of protocols may differ: tickets are the client's, not the list's.
            let (second, _) = shake(&server, &client.with_alpn(&ALL), "localhost").await;
            assert_eq!(second.unwrap().resumed, resumption, "TLS {max}");
        }
    }
}

#[tokio::test]
async fn each_host_shows_its_own_certificate() {
    let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let issue = |name: &str| ca.issue(&[name.to_owned()], &[]).unwrap();
    let hosts = [
        ("b.test".to_owned(), issue("b.test")),
        ("A.test".to_owned(), issue("a.test")),
    ];
    let server =
        ServerTls::with_identities(&hosts, &issue("rest.test"), &ALL, &without_key_log()).unwrap();
    let trust = Trust::only(vec![ca.certificate().clone()]);
    let client = ClientTls::new(&trust, &without_key_log()).unwrap();
    for host in ["a.test", "b.test", "rest.test"] {
        shake(&server, &client, host)
            .await
            .0
            .unwrap_or_else(|error| panic!("{host}: {error}"));
    }
    assert!(shake(&server, &client, "c.test").await.0.is_err());
}

#[test]
fn invalid_pem_is_an_error() {
    let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let error = Identity::from_pem(b"hello", b"", "a.pem")
        .unwrap_err()
        .to_string();
    assert_eq!(error, "no certificate in a.pem");
    let error = Identity::from_pem(ca.pem().as_bytes(), b"", "a.pem")
        .unwrap_err()
        .to_string();
    assert_eq!(error, "no private key in a.pem");
}

#[tokio::test]
async fn tls_secrets_go_to_the_configured_key_log() {
    let folder = std::env::temp_dir().join(format!("spdy-key-log-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("keys");
    let key_log = spdy_net_core::tls::KeyLogTarget::File(path.clone());
    let mut options = without_key_log();
    options.key_log = key_log;
    options.max = TlsVersion::Tls12;
    let (server, client) = tls_pair(&options);
    shake(&server, &client, "localhost").await.0.unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only the owner can read the file");
    }
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "one line from each side: {text}");
    assert_eq!(lines[0], lines[1]);
    let words: Vec<_> = lines[0].split(' ').collect();
    assert_eq!(
        (words[0], words[1].len(), words[2].len()),
        ("CLIENT_RANDOM", 64, 96)
    );
}

/// RFC 8446 §8.1: early data needs sessions that are removed when they are used. A ticket that contains its session is not.
#[test]
fn early_data_over_quic_needs_stored_sessions_and_no_client_certificates() {
    let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let identity = ca.issue(&["a.test".to_owned()], &[]).unwrap();
    let config = |options: &TlsOptions| {
        let server = ServerTls::new(&identity, &ALL, options).unwrap();
        server.for_quic().unwrap()
    };
    let quic = config(&without_key_log());
    assert_eq!(quic.max_early_data_size, u32::MAX);
    assert!(!quic.ticketer.enabled());
    assert!(quic.session_storage.put(vec![1], vec![2]));
    assert_eq!(quic.session_storage.take(&[1]), Some(vec![2]));
    assert_eq!(quic.session_storage.take(&[1]), None);

    let mut unresumed = without_key_log();
    unresumed.resumption = false;
    let mut certified = without_key_log();
    let accepted = ClientCertificates::from_pem(identity.chain_pem().as_bytes(), "CA", false);
    certified.client_certificates = Some(accepted.unwrap());
    for options in [unresumed, certified] {
        let quic = config(&options);
        assert_eq!(quic.max_early_data_size, 0);
        assert!(!quic.session_storage.can_cache());
    }
}

#[test]
fn listeners_share_a_limited_number_of_quic_sessions() {
    const LIMIT: u32 = 16 * 1024;
    let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let identity = ca.issue(&["a.test".to_owned()], &[]).unwrap();
    let server = ServerTls::new(&identity, &ALL, &without_key_log()).unwrap();
    let (first, second) = (server.for_quic().unwrap(), server.for_quic().unwrap());
    for number in 0..=LIMIT {
        let id = number.to_be_bytes().to_vec();
        assert!(first.session_storage.put(id, vec![0; 100]));
    }
    let is_stored = |number: u32| second.session_storage.get(&number.to_be_bytes()).is_some();
    assert!(!is_stored(0), "the oldest");
    assert!(is_stored(1) && is_stored(LIMIT));
}
