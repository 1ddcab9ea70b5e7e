//! Settings of a site that need real listeners: the redirect to TLS, and `Strict-Transport-Security`; and rules of paths after a reload.

use spdy_testkit::wait::until;

use crate::support::accelerator::program::{Accelerator, check};
use crate::support::clients::raw_client::PendingResponse;
use crate::support::program::{ServeProcess, run_expecting, spdy};

fn serve() -> ServeProcess {
    let folder = tempfile::tempdir().expect("create a folder");
    std::fs::write(folder.path().join("a"), "a").expect("write the file");
    // The server reads the files once, at its start.
    ServeProcess::start(folder.path(), &[])
}

fn config(origin: &ServeProcess, more: &str) -> String {
    format!(
        "[listen]\ntls = ['127.0.0.1:0']\nplain = ['127.0.0.1:0']\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{}'\n{more}",
        origin.plain
    )
}

fn get(accelerator: &Accelerator, target: &str) -> PendingResponse {
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: www.site.test\r\nConnection: close\r\n\r\n");
    PendingResponse::begin(accelerator.plain(), request.as_bytes())
}

#[test]
fn requests_without_tls_are_redirected_and_tls_has_hsts() {
    let origin = serve();
    let accelerator = Accelerator::start(&config(
        &origin,
        "redirect_to_https = true\nhsts = { max_age_s = 600, include_subdomains = true }\n",
    ));
    let redirect = get(&accelerator, "/a?b=1").end(usize::MAX);
    assert_eq!(redirect.status, 308, "{}", redirect.head);
    let location = redirect.field("location");
    assert_eq!(location.as_deref(), Some("https://www.site.test/a?b=1"));
    // Without TLS anyone could send the header (RFC 6797 §8.1).
    assert_eq!(redirect.field("strict-transport-security"), None);

    let tls = accelerator.tls();
    let url = format!("https://www.site.test:{}/a", tls.port());
    let mut fetch = spdy(&["fetch", "--json", &url]);
    fetch.arg("--cacert").arg(accelerator.authority());
    fetch.args([
        "--resolve",
        &format!("www.site.test:{}:127.0.0.1", tls.port()),
    ]);
    let output = run_expecting(0, &mut fetch);
    let text = String::from_utf8(output.stdout).expect("text is UTF-8");
    assert!(text.contains("max-age=600; includeSubDomains"), "{text}");
}

#[test]
fn a_reload_changes_the_rules_of_paths_for_stored_responses() {
    let origin = serve();
    let accelerator = Accelerator::start(&config(&origin, ""));
    assert_eq!(get(&accelerator, "/a").end(usize::MAX).field("x-env"), None);
    accelerator.reload(&config(
        &origin,
        "[[site.paths]]\npath = '/'\nresponse_headers = { X-Env = 'new' }\n",
    ));
    until("the response has the new header", || {
        let response = get(&accelerator, "/a").end(usize::MAX);
        response.field("x-env").as_deref() == Some("new")
    });
    accelerator.reload(&config(
        &origin,
        "[[site.paths]]\npath = '/a'\nallow = []\n",
    ));
    until("the path is refused", || {
        get(&accelerator, "/a").end(usize::MAX).status == 403
    });
}

#[test]
fn a_site_has_its_own_pages_for_the_errors_of_the_accelerator() {
    let origin = serve();
    let folder = tempfile::tempdir().expect("create a folder");
    let page = folder.path().join("403.html");
    std::fs::write(&page, "<h1>Not for you</h1>").expect("write the file");
    let pages = format!("error_pages = {{ 403 = {page:?} }}\n");
    let accelerator = Accelerator::start(&config(
        &origin,
        &format!("{pages}[[site.paths]]\npath = '/private/'\nallow = []\n"),
    ));
    let refused = get(&accelerator, "/private/a").end(usize::MAX);
    assert_eq!(refused.status, 403);
    assert_eq!(refused.text(), "<h1>Not for you</h1>");
    let kind = refused.field("content-type");
    assert_eq!(kind.as_deref(), Some("text/html; charset=utf-8"));
    // The origin's own error passes.
    let missing = get(&accelerator, "/missing").end(usize::MAX);
    assert_eq!(missing.status, 404);
    assert!(
        !missing.text().contains("Not for you"),
        "{}",
        missing.text()
    );
    let (code, message) = check(&config(
        &origin,
        "error_pages = { 403 = '/nowhere.html' }\n",
    ));
    assert!(
        code == 2 && message.contains("error_pages: cannot read /nowhere.html"),
        "{code}: {message}"
    );
    let (code, message) = check(&config(&origin, "error_pages = { 200 = '/a.html' }\n"));
    assert!(
        code == 2 && message.contains("site.error_pages: expected 400"),
        "{code}: {message}"
    );
}

#[test]
fn a_path_needs_a_password_and_the_check_reads_the_file() {
    let origin = serve();
    let folder = tempfile::tempdir().expect("create a folder");
    let users = folder.path().join("users");
    // The password is `secret`.
    let alice = "alice:$2b$05$fPt4pBp/KDVTYaiUBDzZJ.Q8y.2T0iWP/PQzvSNdj6wAAOLO1TWbC\n";
    std::fs::write(&users, alice).expect("write the file");
    let text = config(
        &origin,
        &format!("[[site.paths]]\npath = '/'\nbasic_auth = {users:?}\n"),
    );
    let accelerator = Accelerator::start(&text);
    let refused = get(&accelerator, "/a").end(usize::MAX);
    assert_eq!(refused.status, 401, "{}", refused.head);
    let challenge = refused.field("www-authenticate");
    let expected = "Basic realm=\"www.site.test\", charset=\"UTF-8\"";
    assert_eq!(challenge.as_deref(), Some(expected));
    let request = b"GET /a HTTP/1.1\r\nHost: www.site.test\r\n\
        Authorization: Basic YWxpY2U6c2VjcmV0\r\nConnection: close\r\n\r\n";
    let response = PendingResponse::begin(accelerator.plain(), request).end(usize::MAX);
    assert_eq!((response.status, &*response.text()), (200, "a"));
    std::fs::write(&users, "alice:$apr1$salt$hash").expect("write the file");
    let (code, message) = check(&text);
    let expected = "users:1: user \"alice\": its hash is MD5";
    assert!(code == 2 && message.contains(expected), "{code}: {message}");
}

#[test]
fn a_folder_takes_the_place_of_the_origin() {
    let origin = serve();
    let folder = tempfile::tempdir().expect("create a folder");
    std::fs::write(folder.path().join("b.txt"), "of the folder").expect("write the file");
    let text = |folder: &std::path::Path| {
        let rule = format!("[[site.paths]]\npath = '/files/'\nfolder = {folder:?}\n");
        config(&origin, &rule)
    };
    let accelerator = Accelerator::start(&text(folder.path()));
    let file = get(&accelerator, "/files/b.txt").end(usize::MAX);
    assert_eq!((file.status, &*file.text()), (200, "of the folder"));
    assert_eq!(get(&accelerator, "/a").end(usize::MAX).text(), "a");
    let (code, message) = check(&text(std::path::Path::new("/nowhere")));
    let expected = "folder: cannot open /nowhere";
    assert!(code == 2 && message.contains(expected), "{code}: {message}");
}
