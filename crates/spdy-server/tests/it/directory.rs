//! A folder as a site.

use std::fs;

use bytes::Bytes;
use http::{Request, Response};
use spdy_server::directory::{Directory, DirectoryLimits};
use spdy_server::respond::{Limits, respond};
use spdy_server::site::Site;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (path, text) in [
        ("site/index.html", "home"),
        ("site/a b/ü.css", "style"),
        ("site/docs/index.html", "docs"),
        ("site/.git/config", "secret"),
        ("site/.well-known/x", "known"),
        ("outside.txt", "outside"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn fetch(site: &Site, request: http::request::Builder) -> Response<Bytes> {
    let (head, ()) = request.body(()).unwrap().into_parts();
    respond(site, &head, None, &Limits::default())
}

#[test]
fn only_files_in_the_folder_are_served_by_their_paths() {
    let folder = folder();
    #[cfg(unix)]
    std::os::unix::fs::symlink(
        folder.path().join("outside.txt"),
        folder.path().join("site/link"),
    )
    .unwrap();
    let directory =
        Directory::read(&folder.path().join("site"), &DirectoryLimits::default()).unwrap();
    let site = Site::of_directory(directory);
    for (target, expected) in [
        ("/", "home"),
        ("/index.html", "home"),
        ("/?query=ignored", "home"),
        ("/a%20b/%C3%BC.css", "style"),
        ("/a%20b/%c3%bc.css", "style"),
        ("/docs/", "docs"),
        ("/.well-known/x", "known"),
    ] {
        let response = fetch(&site, Request::get(format!("http://any.name{target}")));
        assert_eq!(response.status(), 200, "{target}");
        assert_eq!(response.body(), expected, "{target}");
    }
    for target in [
        "/nix",
        "/.git/config",
        "/../outside.txt",
        "/%2e%2e/outside.txt",
        "/docs/../../outside.txt",
        "/link",
        "/%",
        "/%zz",
        "//",
    ] {
        let response = fetch(&site, Request::get(format!("http://any.name{target}")));
        assert_eq!(response.status(), 404, "{target}");
    }
}

#[cfg(unix)]
#[test]
fn circular_links_are_not_followed() {
    use std::os::unix::fs::symlink;
    // Once one was too deep to be served, and two of them were walked for ever.
    let folder = folder();
    let site = folder.path().join("site");
    symlink(".", site.join("here")).unwrap();
    symlink("..", site.join("docs/up")).unwrap();
    symlink("a b", site.join("ab")).unwrap();
    let directory = Directory::read(&site, &DirectoryLimits::default()).unwrap();
    let site = Site::of_directory(directory);
    let status = |target: &str| {
        let response = fetch(&site, Request::get(format!("http://any.name{target}")));
        response.status().as_u16()
    };
    assert_eq!(
        status("/ab/%C3%BC.css"),
        200,
        "a link within goes somewhere"
    );
    for target in ["/here", "/here/", "/docs/up/", "/docs/up/index.html"] {
        assert_eq!(status(target), 404, "{target}");
    }
}

#[test]
fn a_folder_without_its_slash_is_redirected() {
    let folder = folder();
    let directory =
        Directory::read(&folder.path().join("site"), &DirectoryLimits::default()).unwrap();
    let site = Site::of_directory(directory);
    let response = fetch(&site, Request::get("http://any.name/docs?x"));
    assert_eq!(
        (response.status().as_u16(), &response.headers()["location"]),
        (301, &"/docs/".parse().unwrap())
    );
}

#[test]
fn a_file_has_a_content_type_an_etag_and_a_date() {
    let folder = folder();
    let directory =
        Directory::read(&folder.path().join("site"), &DirectoryLimits::default()).unwrap();
    let site = Site::of_directory(directory);
    let response = fetch(&site, Request::get("http://any.name/a%20b/%C3%BC.css"));
    assert_eq!(
        response.headers()["content-type"],
        "text/css; charset=utf-8"
    );
    let tag = response.headers()["etag"].clone();
    assert!(response.headers().contains_key("last-modified"));
    let again = Request::get("http://any.name/a%20b/%C3%BC.css").header("if-none-match", tag);
    assert_eq!(fetch(&site, again).status(), 304);
    assert_eq!(
        fetch(&site, Request::post("http://any.name/")).status(),
        405
    );
}

#[test]
fn a_directory_over_the_limits_is_an_error() {
    let folder = folder();
    let root = folder.path().join("site");
    let exact = DirectoryLimits {
        bytes: 18,
        files: 6,
        depth: 1,
    };
    Directory::read(&root, &exact).expect("18 bytes, in 4 files under 6 paths");
    for (limits, expected) in [
        (DirectoryLimits { bytes: 17, ..exact }, "17 bytes"),
        (DirectoryLimits { files: 4, ..exact }, "4 files"),
        (
            DirectoryLimits { depth: 0, ..exact },
            "0 folders in folders",
        ),
    ] {
        let error = Directory::read(&root, &limits).unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("has more than {expected}")),
            "{error}"
        );
    }
    assert!(Directory::read(&folder.path().join("nix"), &exact).is_err());
}
