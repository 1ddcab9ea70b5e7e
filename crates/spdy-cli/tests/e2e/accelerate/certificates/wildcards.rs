//! Certificates for sites with a wildcard in `names`: of the local authority, and by ACME.

use std::time::Duration;

use crate::support::accelerator::program::{Accelerator, check};
use crate::support::origins::echo::EchoOrigin;
use crate::support::program::{run_expecting, spdy};

const WILDCARD: &str = "names = ['www.site.test', '*.site.test']\n";

/// The JSON of `spdy fetch` for `/page` of `host`, which trusts the local authority.
fn fetch(accelerator: &Accelerator, host: &str) -> String {
    let port = accelerator.tls().port();
    let mut fetch = spdy(&["fetch", "--json", &format!("https://{host}:{port}/page")]);
    fetch.arg("--cacert").arg(accelerator.authority());
    fetch.args(["--resolve", &format!("{host}:{port}:127.0.0.1")]);
    let output = run_expecting(0, &mut fetch);
    String::from_utf8(output.stdout).expect("text is UTF-8")
}

#[test]
fn the_local_authority_certifies_names_below_a_wildcard() {
    let origin = EchoOrigin::start("no-store", Duration::ZERO);
    let accelerator = Accelerator::start(&format!(
        "[listen]\ntls = ['127.0.0.1:0']\n\
         [[site]]\nnames = ['first.test']\norigin = 'http://{0}'\n\
         [[site]]\n{WILDCARD}origin = 'http://{0}'\n",
        origin.address
    ));
    for host in ["www.site.test", "shop.site.test"] {
        let text = fetch(&accelerator, host);
        assert!(text.contains("\"status\":200"), "{text}");
    }
    accelerator.line_with("accelerating *.site.test, first.test, www.site.test");
}

#[test]
fn acme_orders_a_wildcard_by_dns_only() {
    let acme = |challenge: &str| {
        format!(
            "[tls.acme]\nfolder = '/nowhere'\nterms_of_service_agreed = true\nchallenge = '{challenge}'\n\
             [dns]\nlisten = ['127.0.0.1:0']\n[[dns.zone]]\napex = 'site.test'\nname_servers = ['ns.a.test']\n\
             [listen]\ntls = ['127.0.0.1:0']\nplain = ['127.0.0.1:0']\n[[site]]\n{WILDCARD}origin = 'http://o.test'\n"
        )
    };
    for challenge in ["tls-alpn-01", "http-01"] {
        let (code, message) = check(&acme(challenge));
        assert_eq!(code, 2, "{message}");
        let expected = "tls.acme.challenge: expected dns-01, which a wildcard in site.names needs, found \"*.site.test\"";
        assert!(message.contains(expected), "{message}");
    }
    let good = (0, "good: *.site.test, www.site.test\n".to_owned());
    assert_eq!(check(&acme("dns-01")), good);
}
