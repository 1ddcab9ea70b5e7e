//! Certificates of clients, signed by `openssl`: over every protocol the origin gets the one that TLS has verified, and no other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64;
use http::Request;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_client::client::{Client, Config};
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::network::SystemNetwork;
use spdy_net::protocol::Protocol;
use spdy_net::tls::ClientTls;
use spdy_net::tls::certificates::certificates_from_pem;
use spdy_testkit::wait::{WAIT_LIMIT, until};

use crate::support::accelerator::program::{Accelerator, check};
use crate::support::origins::echo::EchoOrigin;

const SITE: &str = "www.site.test";
const PROTOCOLS: [Protocol; 4] = [
    Protocol::Http1,
    Protocol::Http2,
    Protocol::Http3,
    Protocol::Spdy(Version::V31),
];

/// Authorities and the certificates that they signed, in a folder.
struct ClientAuthority {
    folder: tempfile::TempDir,
}

impl ClientAuthority {
    /// The authorities `ca` and `other`, each with a certificate for a client: `alice` and `mallory`.
    fn open() -> Self {
        let authority = Self {
            folder: tempfile::tempdir().expect("create a folder"),
        };
        let extension = authority.path("leaf.ext");
        let text = "basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth\n";
        std::fs::write(extension, text).expect("write the file");
        for (ca, client) in [("ca", "alice"), ("other", "mallory")] {
            authority.openssl(&format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN={ca} -keyout {ca}.key -out {ca}.pem"
            ));
            authority.openssl(&format!(
                "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={client} -keyout {client}.key -out {client}.csr"
            ));
            authority.openssl(&format!(
                "x509 -req -in {client}.csr -CA {ca}.pem -CAkey {ca}.key -CAcreateserial -days 2 -extfile leaf.ext -out {client}.pem"
            ));
        }
        authority
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn openssl(&self, arguments: &str) {
        let mut command = Command::new("openssl");
        let command = command.args(arguments.split(' '));
        let output = command.current_dir(self.folder.path()).output();
        let output = output.expect("openssl is installed");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {error}");
    }

    /// The bytes of the certificate of `client`.
    fn der(&self, client: &str) -> Vec<u8> {
        let pem = std::fs::read(self.path(&format!("{client}.pem"))).expect("read the file");
        let certificates = certificates_from_pem(&pem, client).expect("valid PEM");
        certificates[0].to_vec()
    }

    /// TLS of a client with the certificate of `client`, that trusts the authority in `server`.
    fn tls(&self, client: Option<&str>, server: &Path) -> ClientTls {
        let mut roots = RootCertStore::empty();
        let pem = std::fs::read(server).expect("read the file");
        for root in certificates_from_pem(&pem, "the server's").expect("valid PEM") {
            roots.add(root).expect("a valid root");
        }
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let builder = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()
            .expect("the versions are supported")
            .with_root_certificates(roots);
        let config = match client {
            None => builder.with_no_client_auth(),
            Some(client) => {
                let pem = std::fs::read(self.path(&format!("{client}.pem")));
                let chain = certificates_from_pem(&pem.expect("read the file"), client);
                let key = PrivateKeyDer::from_pem_file(self.path(&format!("{client}.key")));
                let (chain, key) = (chain.expect("valid PEM"), key.expect("a key"));
                builder.with_client_auth_cert(chain, key).expect("a pair")
            }
        };
        ClientTls::from_config(Arc::new(config))
    }

    fn config(&self, origin: &EchoOrigin, required: bool) -> String {
        format!(
            "[listen]\ntls = ['127.0.0.1:0']\n\
             client_certificates = {{ authorities = {:?}, required = {required} }}\n\
             [[site]]\nnames = ['{SITE}']\norigin = 'http://{}'\n",
            self.path("ca.pem"),
            origin.address
        )
    }
}

/// The status of a request over a new connection by `protocol`, with a forged certificate; `None` if the connection fails.
fn status(accelerator: &Accelerator, tls: &ClientTls, protocol: Protocol) -> Option<u16> {
    let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
    runtime.block_on(async {
        let mut config = Config::default();
        config.protocols = vec![protocol];
        config.tls = Some(tls.clone());
        config.resolve = vec![(SITE.to_owned(), None, [127, 0, 0, 1].into())];
        let runtime = SharedRuntime::new(TokioRuntime::start());
        let client = Client::new(runtime, Arc::new(SystemNetwork), config);
        let url = format!("https://{SITE}:{}/{protocol}", accelerator.tls().port());
        let request = Request::get(url).header("client-cert", ":Zm9yZ2Vk:");
        let request = request.body(Body::empty()).expect("a request");
        let response = client.send(request, Priority::HIGHEST);
        let response = tokio::time::timeout(WAIT_LIMIT, response).await;
        let response = response.expect("a response, or an error").ok()?;
        Some(response.status().as_u16())
    })
}

#[test]
fn origins_get_the_verified_certificate_over_every_protocol() {
    let authority = ClientAuthority::open();
    let origin = EchoOrigin::start("no-store", Duration::ZERO);
    let accelerator = Accelerator::start(&authority.config(&origin, false));
    let server = accelerator.authority();
    let alice = format!(":{}:", BASE64.encode(&authority.der("alice")));
    for protocol in PROTOCOLS {
        for (client, expected, certificate) in [
            (Some("alice"), Some(200), vec![alice.clone()]),
            (None, Some(200), vec![]),
            (Some("mallory"), None, vec![]),
        ] {
            let before = origin.requests().len();
            let tls = authority.tls(client, &server);
            let found = status(&accelerator, &tls, protocol);
            assert_eq!(found, expected, "{protocol} {client:?}");
            let received = origin.requests().split_off(before);
            assert_eq!(received.len(), usize::from(expected.is_some()));
            if let Some(request) = received.first() {
                let values = request.values("client-cert");
                assert_eq!(values, certificate, "{protocol} {client:?}");
            }
        }
    }
}

#[test]
fn a_required_certificate_is_checked_at_each_handshake_and_after_a_reload() {
    let authority = ClientAuthority::open();
    let origin = EchoOrigin::start("no-store", Duration::ZERO);
    let text = authority.config(&origin, true);
    let accelerator = Accelerator::start(&text);
    let server = accelerator.authority();
    let alice = authority.tls(Some("alice"), &server);
    for protocol in PROTOCOLS {
        let stranger = authority.tls(None, &server);
        assert_eq!(
            status(&accelerator, &stranger, protocol),
            None,
            "{protocol}"
        );
        for _ in 0..2 {
            assert_eq!(
                status(&accelerator, &alice, protocol),
                Some(200),
                "{protocol}"
            );
        }
    }
    // This client has sessions that it could resume.
    std::fs::copy(authority.path("other.pem"), authority.path("ca.pem")).expect("copy the file");
    accelerator.reload(&text);
    let mallory = authority.tls(Some("mallory"), &server);
    until("the other authority is accepted", || {
        status(&accelerator, &mallory, Protocol::Http2) == Some(200)
    });
    for protocol in PROTOCOLS {
        assert_eq!(status(&accelerator, &alice, protocol), None, "{protocol}");
    }
}

#[test]
fn wrong_settings_of_client_certificates_are_named() {
    let authority = ClientAuthority::open();
    let origin = EchoOrigin::start("no-store", Duration::ZERO);
    let text = authority.config(&origin, true);
    let plain = text.replace("[listen]\n", "[listen]\nplain = ['127.0.0.1:0']\n");
    let (code, message) = check(&plain);
    let expected = "listen.client_certificates: expected redirect_to_https in each site";
    assert!(code == 2 && message.contains(expected), "{code}: {message}");
    std::fs::write(authority.path("ca.pem"), "nothing").expect("write the file");
    let (code, message) = check(&text);
    let expected = "listen.client_certificates: ";
    assert!(code == 2 && message.contains(expected), "{code}: {message}");
}
