//! Certificates from files for several sites: each is used for the names in it, and all are read again at a reload.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use spdy_net::tls::certificates::{KeyKind, LocalCa, certificates_from_pem};
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, TlsOptions};
use spdy_testkit::wait::until;
use tokio::net::TcpStream;

use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::accelerator::program::{Accelerator, check};
use crate::support::origins::echo::EchoOrigin;
use crate::support::origins::scripted::{Origins, complete_response};

const A_NAMES: [&str; 2] = ["www.a.test", "*.a.test"];
const B_NAMES: [&str; 1] = ["b.test"];

/// A CA, and a folder for the certificates that it signs.
struct TestCa {
    ca: LocalCa,
    folder: tempfile::TempDir,
}

impl TestCa {
    fn open() -> Self {
        let folder = tempfile::tempdir().expect("create a folder");
        std::fs::write(folder.path().join("token"), [b't'; 16]).expect("write the file");
        Self {
            ca: LocalCa::generate(KeyKind::EcdsaP256).expect("create a CA"),
            folder,
        }
    }

    /// Signs a certificate for `names` and writes it to `file.pem` with its key. Returns the leaf.
    fn issue(&self, file: &str, names: &[&str]) -> Vec<u8> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let identity = self.ca.issue(&names, &[]).expect("sign a certificate");
        let [chain, key] = self.files(file);
        std::fs::write(chain, identity.chain_pem()).expect("write the file");
        std::fs::write(key, identity.key_pem()).expect("write the file");
        identity.chain[0].to_vec()
    }

    fn files(&self, file: &str) -> [std::path::PathBuf; 2] {
        ["pem", "key"].map(|kind| self.folder.path().join(format!("{file}.{kind}")))
    }

    fn entry(&self, file: &str) -> String {
        let [chain, key] = self.files(file);
        format!("certificate = {chain:?}\nkey = {key:?}\n")
    }

    /// The leaf that a client which trusts the CA gets for `name`; `None` if it rejects the certificate.
    fn leaf_for(&self, to: SocketAddr, name: &str) -> Option<Vec<u8>> {
        let mut options = TlsOptions::default();
        options.resumption = false;
        options.key_log = KeyLogTarget::Disabled;
        let trust = Trust::only(vec![self.ca.certificate().clone()]);
        let client = ClientTls::new(&trust, &options).expect("a TLS configuration");
        let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
        runtime.block_on(async {
            let socket = TcpStream::connect(to).await.expect("connect");
            let connected = client
                .connect_with_certificates(Box::new(socket), name)
                .await;
            connected.ok().map(|(_, _, chain)| chain[0].to_vec())
        })
    }
}

/// A configuration for two sites and `extra_config` (a third site), with `tls` as its `[tls]` table.
fn config(token: &Path, origin: SocketAddr, tls: &str, extra_config: &str) -> String {
    let site = |names: &str| format!("[[site]]\nnames = [{names}]\norigin = 'http://{origin}'\n");
    format!(
        "[listen]\ntls = ['127.0.0.1:0']\n[admin]\naddress = '127.0.0.1:0'\ntoken_file = {token:?}\n[tls]\n{tls}\n{}{}{extra_config}",
        site("'www.a.test', 'img.a.test'"),
        site("'b.test'"),
    )
}

#[test]
fn each_name_gets_its_certificate_and_files_are_reread() {
    let (ca, origin) = (
        TestCa::open(),
        EchoOrigin::start("no-store", Duration::ZERO),
    );
    let token = ca.folder.path().join("token");
    let leaf_a = ca.issue("a", &A_NAMES);
    let leaf_b = ca.issue("b", &B_NAMES);
    // With both forms of configuration, the first certificate is the fallback for names that no certificate has.
    let (entry_a, entry_b) = (ca.entry("a"), ca.entry("b"));
    let first_in_tls = format!("{entry_a}[[tls.certificates]]\n{entry_b}");
    let both_in_list = format!("[[tls.certificates]]\n{entry_a}[[tls.certificates]]\n{entry_b}");
    for tls in [&first_in_tls, &both_in_list] {
        let accelerator = Accelerator::start(&config(&token, origin.address, tls, ""));
        let leaf_of = |name| ca.leaf_for(accelerator.tls(), name);
        for (name, leaf) in [
            ("www.a.test", Some(&leaf_a)),
            ("img.a.test", Some(&leaf_a)),
            ("B.test", Some(&leaf_b)),
            ("c.test", None),
        ] {
            assert_eq!(leaf_of(name).as_ref(), leaf, "{name}");
        }
        let ends = metrics(&accelerator, "expiry_timestamp_seconds{");
        for name in ["www.a.test", "b.test"] {
            assert!(ends.contains(&format!("name=\"{name}\"")), "{ends}");
        }
    }
    let accelerator = Accelerator::start(&config(&token, origin.address, &first_in_tls, ""));
    let leaf_of = |name| ca.leaf_for(accelerator.tls(), name);
    let [renewed_b, leaf_c] = [
        ca.issue("b", &B_NAMES),
        ca.issue("c", &["c.test", "www.a.test"]),
    ];
    let tls = format!("{first_in_tls}[[tls.certificates]]\n{}", ca.entry("c"));
    let extra_site = format!(
        "[[site]]\nnames = ['c.test', 'd.test']\norigin = 'http://{}'\n",
        origin.address
    );
    let warning = "no certificate covers d.test";
    assert!(
        !accelerator
            .log_lines()
            .iter()
            .any(|line| line.contains(warning))
    );
    accelerator.reload(&config(&token, origin.address, &tls, &extra_site));
    accelerator.line_with(warning);
    until("the new certificate is used", || {
        leaf_of("b.test").as_ref() == Some(&renewed_b)
    });
    assert_eq!(leaf_of("c.test"), Some(leaf_c));
    assert_eq!(
        leaf_of("www.a.test"),
        Some(leaf_a),
        "the first that covers the name"
    );
}

/// One certificate for all of them would be too large for a handshake.
#[test]
fn two_thousand_sites_get_small_certificates_of_one_local_ca() {
    let folder = tempfile::tempdir().expect("create a folder");
    let ca = folder.path().join("ca.pem");
    let site = |number| {
        format!("[[site]]\nnames = ['www.site{number}.test']\norigin = 'http://127.0.0.1:1'\n")
    };
    let sites: String = (0..2000).map(site).collect();
    let config =
        format!("[listen]\ntls = ['127.0.0.1:0']\n[tls]\nwrite_authority = {ca:?}\n{sites}");
    assert_eq!(check(&config).0, 0);
    assert!(!ca.exists(), "--check writes nothing");
    let mut authorities = Vec::new();
    for _ in 0..2 {
        let accelerator = Accelerator::start_json(&config);
        let authority = std::fs::read(&ca).expect("read the certificate");
        for host in ["www.site0.test", "www.site1999.test", "127.0.0.1"] {
            let chain = served_chain(&authority, accelerator.tls(), host);
            let bytes: usize = chain.iter().map(Vec::len).sum();
            assert!(bytes < 4 << 10, "{host}: {bytes} bytes");
        }
        authorities.push(authority);
        accelerator.end();
    }
    assert_eq!(authorities[0], authorities[1], "the CA survives a restart");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let key = folder.path().join("ca.key.pem").metadata().expect("a key");
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
    }
    std::fs::write(folder.path().join("ca.key.pem"), "no key").expect("write the file");
    let (code, text) = check(&config);
    assert!(code != 0 && text.contains("ca.key.pem"), "{code}: {text}");
}

/// The certificates that the server presents to a client that requests `host` and trusts only `authority`.
fn served_chain(authority: &[u8], to: SocketAddr, host: &str) -> Vec<Vec<u8>> {
    let roots = certificates_from_pem(authority, "ca.pem").expect("certificates");
    let client = ClientTls::new(&Trust::only(roots), &TlsOptions::default());
    let client = client.expect("a TLS configuration");
    let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
    runtime.block_on(async {
        let socket = TcpStream::connect(to).await.expect("connect");
        let connected = client
            .connect_with_certificates(Box::new(socket), host)
            .await;
        let (_, _, chain) = connected.unwrap_or_else(|error| panic!("{host}: {error}"));
        chain
            .iter()
            .map(|certificate| certificate.to_vec())
            .collect()
    })
}

/// The lines of the certificate metrics whose name starts with `name`.
fn metrics(accelerator: &Accelerator, name: &str) -> String {
    let metrics = accelerator.metrics();
    let name = format!("spdy_certificate_{name}");
    metrics
        .lines()
        .filter(|line| line.starts_with(&name))
        .collect()
}

/// Browsers would reject the alias before.
#[test]
fn pages_use_a_host_alias_once_a_certificate_has_it() {
    const SITE: &str = "www.site.test";
    const FRAMES: &str = "frames.other-d.test";
    const ZONE: &str = "x.names-e.test";
    let origins = Origins::start(&[(SITE, "https"), (FRAMES, "https")], |_, addresses| {
        let frames = addresses.origin(FRAMES);
        complete_response(
            "200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=600\r\n",
            format!("<!doctype html><iframe src={frames}/></iframe>").as_bytes(),
        )
    });
    let files = ["chain.pem", "key.pem"].map(|file| origins.certificates.path(file));
    let with_zone = files
        .each_ref()
        .map(|file| std::fs::read_to_string(file).expect("read the file"));
    let write = |texts: &[String; 2]| {
        for (file, text) in std::iter::zip(&files, texts) {
            std::fs::write(file, text).expect("write the file");
        }
    };
    let ca = TestCa::open();
    let without_zone = ca
        .ca
        .issue(&[SITE.to_owned()], &[])
        .expect("sign a certificate");
    write(&[without_zone.chain_pem(), without_zone.key_pem()]);
    let secret = ca.folder.path().join("secret");
    std::fs::write(&secret, [b'x'; 32]).expect("write the file");
    let port = origins.addresses.address(FRAMES).port();
    let accelerated_site = AcceleratedSite::start(
        &origins,
        &Setting {
            top: &format!("secret_file = {secret:?}"),
            site: &format!(
                "[site.rewrite]\nnames_under = '{ZONE}'\n\
                 [[site.rewrite.hosts]]\nhost = '{FRAMES}:{port}'\nmode = 'name'\nkinds = ['document']\n"
            ),
            ..Setting::default()
        },
    );
    let page = || accelerated_site.get(SITE, "/", "").text();
    let frames_origin = origins.addresses.origin(FRAMES);
    let is_unchanged = |page: &str| page.contains(&frames_origin) && !page.contains(ZONE);
    assert!(is_unchanged(&page()), "{}", page());
    write(&with_zone);
    accelerated_site.reload();
    assert!(page().contains(ZONE), "{}", page());
    write(&[without_zone.chain_pem(), without_zone.key_pem()]);
    accelerated_site.reload();
    assert!(is_unchanged(&page()), "{}", page());
}

#[test]
fn one_invalid_certificate_does_not_block_the_others() {
    let (ca, origin) = (
        TestCa::open(),
        EchoOrigin::start("no-store", Duration::ZERO),
    );
    let path = |file: &str| ca.folder.path().join(file);
    let (secret, former) = (path("secret"), path("former"));
    std::fs::write(&secret, [1; 32]).expect("write the file");
    std::fs::write(&former, [2; 32]).expect("write the file");
    let leaf_a = ca.issue("a", &A_NAMES);
    ca.issue("b", &B_NAMES);
    let tls = format!("{}[[tls.certificates]]\n{}", ca.entry("a"), ca.entry("b"));
    let config = format!(
        "secret_file = {secret:?}\nformer_secret_file = {former:?}\n{}",
        config(&path("token"), origin.address, &tls, "")
    );
    let accelerator = Accelerator::start(&config);
    let wait_for_leaf = |name: &str, leaf: &Vec<u8>| {
        until("the certificate is used", || {
            ca.leaf_for(accelerator.tls(), name).as_ref() == Some(leaf)
        });
    };
    let invalid_file_count = || metrics(&accelerator, "invalid_files");
    assert!(
        invalid_file_count().ends_with(" 0"),
        "{}",
        invalid_file_count()
    );

    // The files of one certificate are removed; the configuration still has it.
    std::fs::remove_file(&ca.files("a")[0]).expect("remove the file");
    let renewed_b = ca.issue("b", &B_NAMES);
    accelerator.reload_unchanged();
    wait_for_leaf("b.test", &renewed_b);
    wait_for_leaf("www.a.test", &leaf_a);
    let log_line = accelerator.line_with("cannot reload a certificate");
    assert!(log_line.contains("a.pem"), "{log_line}");
    assert!(
        invalid_file_count().ends_with(" 1"),
        "{}",
        invalid_file_count()
    );

    // The previous secret file is removed; the configuration still has it.
    std::fs::remove_file(&former).expect("remove the file");
    let (leaf_a, leaf_b) = (ca.issue("a", &A_NAMES), ca.issue("b", &B_NAMES));
    accelerator.reload_unchanged();
    wait_for_leaf("b.test", &leaf_b);
    wait_for_leaf("www.a.test", &leaf_a);
    let log_line = accelerator.line_with("cannot reload the configuration");
    assert!(log_line.contains("former"), "{log_line}");
    accelerator.line_with("reloaded only the certificates");
    assert!(
        invalid_file_count().ends_with(" 0"),
        "{}",
        invalid_file_count()
    );

    // A truncated configuration, and one with a pair of files that does not exist yet.
    let [truncated, missing_files] = [
        config[..config.len() / 2].to_owned(),
        config.replacen(
            "[[site]]",
            &format!("[[tls.certificates]]\n{}[[site]]", ca.entry("new")),
            1,
        ),
    ];
    for config in [truncated, missing_files] {
        let renewed_b = ca.issue("b", &B_NAMES);
        accelerator.reload(&config);
        wait_for_leaf("b.test", &renewed_b);
    }
}

#[test]
fn a_check_reports_names_without_a_certificate() {
    let ca = TestCa::open();
    let token = ca.folder.path().join("token");
    let origin = SocketAddr::from(([127, 0, 0, 1], 1));
    ca.issue("a", &A_NAMES);
    ca.issue("b", &B_NAMES);
    let [_, key_of_b] = ca.files("b");
    std::fs::copy(&key_of_b, ca.folder.path().join("mixed.key")).expect("copy the file");
    let [chain_of_a, _] = ca.files("a");
    std::fs::copy(&chain_of_a, ca.folder.path().join("mixed.pem")).expect("copy the file");
    let address = "[[site]]\nnames = ['192.0.2.1']\norigin = 'http://127.0.0.1:1'\n";
    for (files, extra_config, code, expected) in [
        (&["a", "b"][..], address, 0, "good: "),
        (
            &["b"],
            "",
            0,
            "no certificate covers img.a.test, www.a.test: ",
        ),
        (&["a"], "", 0, "no certificate covers b.test: "),
        (&[], "", 0, "good: "),
        (&["a", "mixed"], "", 1, "mixed.pem and "),
        (&["a", "gone"], "", 2, "gone.pem"),
    ] {
        let entries = files.iter().map(|file| ca.entry(file));
        let tls: String = entries
            .map(|entry| format!("[[tls.certificates]]\n{entry}"))
            .collect();
        let (exit_code, message) = check(&config(&token, origin, &tls, extra_config));
        assert_eq!(exit_code, code, "{files:?}: {message}");
        assert!(message.contains(expected), "{files:?}: {message}");
        let is_complete = !expected.starts_with("no certificate");
        assert_eq!(
            message.contains("no certificate covers"),
            !is_complete,
            "{message}"
        );
    }
}
