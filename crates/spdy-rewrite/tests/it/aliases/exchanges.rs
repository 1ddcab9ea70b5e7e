//! Hosts with a name of their own: the requests to them, and which parts of their answers pass.

use http::header::{HeaderMap, HeaderName};
use http::{Method, Request, StatusCode};
use spdy_rewrite::request::alias_request;
use spdy_rewrite::response::sanitize_response::{self, SanitizedResponse};

use crate::support::aliases::{name_of, opened, rules};
use crate::support::fields::fields;

/// The request that widgets.test gets for a `method` with these fields, or the name of the refusal.
fn upstream_lines(
    method: Method,
    target: &str,
    lines: &[&str],
) -> Result<Vec<String>, &'static str> {
    let rules = rules();
    let alias_url = opened(&rules, target);
    let alias = rules.alias_of(alias_url.url()).unwrap();
    let lines: Vec<_> = lines
        .iter()
        .map(|line| line.replace("{widgets}", alias.origin()))
        .collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.headers_mut() = fields(&lines);
    let upstream = alias_request::request(&rules, alias, &alias_url, &request);
    let upstream = upstream.map_err(|refusal| refusal.name())?;
    let sorted_lines = upstream.headers.iter();
    let mut sorted_lines: Vec<_> = sorted_lines
        .filter(|(name, _)| {
            !matches!(
                name.as_str(),
                "accept" | "accept-encoding" | "user-agent" | "via" | "cdn-loop"
            )
        })
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    sorted_lines.sort();
    Ok(sorted_lines)
}

const WIDGET: &str = "https://widgets.test/w";

#[test]
fn alias_request_has_origin_but_no_identity() {
    let lines = upstream_lines(
        Method::GET,
        WIDGET,
        &[
            "cookie: a=b",
            "authorization: Basic eA==",
            "x-forwarded-for: 192.0.2.1",
            "origin: https://www.site.test",
            "referer: https://www.site.test/secret?token",
            "sec-fetch-dest: script",
            "sec-fetch-mode: cors",
            "sec-fetch-site: cross-site",
        ],
    );
    let expected = [
        "origin: https://www.site.test",
        "referer: https://www.site.test/",
    ];
    assert_eq!(lines.unwrap(), expected);
    let lines = upstream_lines(
        Method::GET,
        WIDGET,
        &[
            "origin: {widgets}",
            "referer: {widgets}/a/b?c",
            "sec-fetch-dest: font",
        ],
    );
    let expected = [
        "origin: https://widgets.test",
        "referer: https://widgets.test/",
    ];
    assert_eq!(lines.unwrap(), expected);
    let lines = upstream_lines(Method::GET, WIDGET, &["origin: null", "referer: null"]);
    assert_eq!(lines.unwrap(), ["origin: null"]);
}

#[test]
fn document_forms_and_scripts_keep_content_headers() {
    let lines = [
        "origin: {widgets}",
        "content-type: application/json",
        "x-requested-with: x",
        "x-own: y",
        "cookie: a=b",
    ];
    let forwarded = upstream_lines(Method::POST, WIDGET, &lines).unwrap();
    let expected = [
        "content-type: application/json",
        "origin: https://widgets.test",
        "x-requested-with: x",
    ];
    assert_eq!(forwarded, expected);
    let pictures = "https://pictures.test:8443/pub/a";
    assert_eq!(upstream_lines(Method::POST, pictures, &[]), Err("method"));
    assert_eq!(upstream_lines(Method::TRACE, WIDGET, &[]), Err("method"));
}

#[test]
fn unknown_requester_cannot_change_anything() {
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        for lines in [
            &[][..],
            &["origin: null"],
            &["referer: https://www.site.test/"],
        ] {
            let result = upstream_lines(method.clone(), WIDGET, lines);
            assert_eq!(result, Err("unknown-requester"), "{method} {lines:?}");
        }
        for origin in ["origin: {widgets}", "origin: https://www.site.test"] {
            assert!(upstream_lines(method.clone(), WIDGET, &[origin]).is_ok());
        }
    }
    assert!(upstream_lines(Method::OPTIONS, WIDGET, &["origin: null"]).is_ok());
}

#[test]
fn script_headers_are_forwarded_up_to_a_limit() {
    let script_headers = |target: &str, lines: &[&str]| {
        let rules = rules();
        let alias_url = opened(&rules, target);
        let alias = rules.alias_of(alias_url.url()).unwrap();
        let mut request = Request::new(());
        *request.headers_mut() = fields(lines);
        let upstream = alias_request::request(&rules, alias, &alias_url, &request).unwrap();
        let header = |name: &str| upstream.headers.get(name).cloned();
        (header("accept").unwrap(), header("x-requested-with"))
    };
    let long = format!("accept: {}", "a".repeat(257));
    let fetch = [
        "sec-fetch-dest: empty",
        "accept: text/csv",
        "x-requested-with: x",
    ];
    let (accept, with) = script_headers(WIDGET, &fetch);
    assert_eq!(
        (accept.as_bytes(), with.unwrap().as_bytes()),
        (&b"text/csv"[..], &b"x"[..])
    );
    assert_eq!(
        script_headers(WIDGET, &["sec-fetch-dest: empty", &long]).0,
        "*/*"
    );
    let image = ["sec-fetch-dest: image", "accept: text/csv"];
    assert_eq!(script_headers(WIDGET, &image).0, "image/*,*/*;q=0.8");
    assert_eq!(
        script_headers("https://pictures.test:8443/pub/a", &fetch),
        ("*/*".parse().unwrap(), None)
    );
}

#[test]
fn unexpected_load_of_alias_is_refused() {
    let pictures = "https://pictures.test:8443/pub/a";
    for (target, line, reason) in [
        (WIDGET, "sec-fetch-dest: document", "destination"),
        (WIDGET, "sec-fetch-dest: serviceworker", "destination"),
        (WIDGET, "sec-fetch-dest: report", "destination"),
        (WIDGET, "service-worker: script", "service-worker"),
        (WIDGET, "sec-fetch-site: none", "destination"),
        (WIDGET, "sec-fetch-mode: navigate", "destination"),
        (WIDGET, "sec-fetch-mode: websocket", "destination"),
        (WIDGET, "upgrade: websocket", "upgrade"),
        (WIDGET, "content-length: 1", "body"),
        (WIDGET, "origin: https://evil.test", "cross-site"),
        (WIDGET, "referer: https://evil.test/", "cross-site"),
        (WIDGET, "origin: x", "field"),
        (WIDGET, "cdn-loop: www.site.test", "loop"),
        (pictures, "sec-fetch-dest: iframe", "kind-not-listed"),
        (pictures, "sec-fetch-dest: script", "kind-not-listed"),
        (pictures, "sec-fetch-dest: worker", "kind-not-listed"),
    ] {
        assert_eq!(
            upstream_lines(Method::GET, target, &[line]),
            Err(reason),
            "{line}"
        );
    }
    let frame = ["sec-fetch-dest: iframe", "sec-fetch-mode: navigate"];
    assert_eq!(upstream_lines(Method::GET, WIDGET, &frame), Ok(Vec::new()));
}

/// What becomes of an answer with these fields to a load with these: its head, or the name of what came instead.
fn sanitized_headers(
    target: &str,
    load: &[&str],
    status: u16,
    lines: &[&str],
) -> Result<HeaderMap, String> {
    let rules = rules();
    let alias_url = opened(&rules, target);
    let alias = rules.alias_of(alias_url.url()).unwrap();
    let mut request = Request::new(());
    *request.headers_mut() = fields(load);
    let upstream = alias_request::request(&rules, alias, &alias_url, &request).unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    match sanitize_response::sanitize(&rules, &alias_url, upstream.load, status, &fields(lines)) {
        SanitizedResponse::Serve(head) => Ok(head),
        SanitizedResponse::StatusOnly(status) => Err(status.as_str().to_owned()),
        SanitizedResponse::Redirect(location) => Err(location),
        SanitizedResponse::Refuse(refusal) => Err(refusal.name().to_owned()),
    }
}

#[test]
fn alias_cannot_set_zone_wide_headers() {
    let widgets = name_of(&rules(), "widgets.test");
    let head = sanitized_headers(
        WIDGET,
        &["sec-fetch-dest: iframe"],
        200,
        &[
            "content-type: text/html",
            "set-cookie: a=b; Domain=x.assets.test",
            "strict-transport-security: max-age=1; includeSubDomains",
            "alt-svc: h3=\":443\"",
            "nel: {}",
            "report-to: {}",
            "reporting-endpoints: a=\"/b\"",
            "clear-site-data: \"*\"",
            "service-worker-allowed: /",
            "www-authenticate: Basic",
            "refresh: 0;url=https://evil.test/",
            "link: </a.css>; rel=preload",
            "content-security-policy: default-src 'self'",
            "x-frame-options: DENY",
            "cross-origin-resource-policy: same-origin",
            "access-control-allow-origin: https://widgets.test",
            "timing-allow-origin: https://widgets.test",
        ],
    );
    let head = head.unwrap();
    let mut names: Vec<_> = head.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    let expected = [
        "access-control-allow-origin",
        "content-security-policy",
        "content-type",
        "cross-origin-resource-policy",
        "timing-allow-origin",
        "x-frame-options",
    ];
    assert_eq!(names, expected);
    assert_eq!(head["access-control-allow-origin"], widgets);
    assert_eq!(head["timing-allow-origin"], widgets);
    assert_eq!(head["cross-origin-resource-policy"], "same-origin");
    // A frame of the other host sent the request.
    let to_other = [
        "content-type: application/json",
        "access-control-allow-origin: https://pictures.test:8443",
    ];
    let head = sanitized_headers(WIDGET, &[], 200, &to_other).unwrap();
    let pictures = name_of(&rules(), "pictures.test:8443");
    assert_eq!(head["access-control-allow-origin"], pictures);
}

#[test]
fn alias_without_documents_is_sandboxed_with_nosniff() {
    let pictures = "https://pictures.test:8443/pub/a";
    let svg = ["content-type: image/svg+xml", "content-security-policy: x"];
    let head = sanitized_headers(pictures, &[], 200, &svg).unwrap();
    let policy = head["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("sandbox"), "{policy}");
    assert_eq!(head["x-content-type-options"], "nosniff");
    let refused = sanitized_headers(pictures, &[], 200, &["content-type: text/html"]);
    assert_eq!(refused.unwrap_err(), "type");
}

#[test]
fn alias_resource_policy_is_enforced() {
    let image = "content-type: image/png";
    for policy in ["same-site", "same-origin"] {
        let policy = format!("cross-origin-resource-policy: {policy}");
        let to = |load: &[&str]| sanitized_headers(WIDGET, load, 200, &[image, &policy]);
        let of_site = ["sec-fetch-dest: image", "sec-fetch-site: cross-site"];
        assert_eq!(to(&of_site).unwrap_err(), WIDGET);
        // Another name's document is none of its site.
        let of_other = ["sec-fetch-dest: image", "sec-fetch-site: same-site"];
        assert_eq!(to(&of_other).unwrap_err(), WIDGET);
        let own = ["sec-fetch-dest: image", "sec-fetch-site: same-origin"];
        for load in [&own[..], &[]] {
            let head = to(load).unwrap();
            assert_eq!(head["cross-origin-resource-policy"], "same-origin");
        }
        // CORS sends its own request, and frames are not requested.
        let with_cors = [of_site[0], of_site[1], "origin: https://www.site.test"];
        assert!(to(&with_cors).is_ok());
        assert!(to(&["sec-fetch-dest: iframe", of_site[1]]).is_ok());
    }
    let open = [image, "cross-origin-resource-policy: cross-origin"];
    let head = sanitized_headers(WIDGET, &["sec-fetch-dest: image"], 200, &open).unwrap();
    assert_eq!(head["cross-origin-resource-policy"], "cross-origin");
}

#[test]
fn alias_redirects_go_to_the_browser() {
    let rules = rules();
    let widgets = name_of(&rules, "widgets.test");
    let pictures = name_of(&rules, "pictures.test:8443");
    let loaded = ["sec-fetch-dest: image"];
    let to = |load: &[&str], location: &str| {
        let location = format!("location: {location}");
        let head = sanitized_headers("https://widgets.test/a/b", load, 302, &[&location])?;
        Ok::<_, String>(head["location"].to_str().unwrap().to_owned())
    };
    assert_eq!(to(&[], "c?d#e").unwrap(), format!("{widgets}/a/c?d#e"));
    assert_eq!(
        to(&[], "https://widgets.test/").unwrap(),
        format!("{widgets}/")
    );
    let other = "https://pictures.test:8443/pub/x";
    assert_eq!(to(&[], other).unwrap(), format!("{pictures}/pub/x"));
    let elsewhere = "https://elsewhere.test/x";
    assert_eq!(to(&loaded, elsewhere).unwrap(), elsewhere);
    assert_eq!(
        to(&[], elsewhere).unwrap_err(),
        "location",
        "an open redirect"
    );
    let listed_url = "https://cdn.test/x";
    assert_eq!(
        to(&loaded, listed_url).unwrap(),
        listed_url,
        "never under the site's name"
    );
    for bad in ["javascript:alert(1)", "https://a@widgets.test/", "data:,x"] {
        assert_eq!(to(&loaded, bad).unwrap_err(), "location", "{bad}");
    }
}

#[test]
fn alias_errors_have_bodies_only_with_documents() {
    let html = ["content-type: text/html"];
    assert!(sanitized_headers(WIDGET, &["sec-fetch-dest: iframe"], 404, &html).is_ok());
    let image = sanitized_headers(WIDGET, &["sec-fetch-dest: image"], 404, &html);
    assert_eq!(image.unwrap_err(), "404");
    assert_eq!(
        sanitized_headers(WIDGET, &[], 401, &html).unwrap_err(),
        "401"
    );
    assert!(sanitized_headers(WIDGET, &[], 204, &[]).is_ok());
}

#[test]
fn response_without_type_is_for_documents_only() {
    for load in ["sec-fetch-dest: empty", "sec-fetch-dest: iframe"] {
        assert!(
            sanitized_headers(WIDGET, &[load], 200, &[]).is_ok(),
            "{load}"
        );
    }
    // The browser finds out at the host itself.
    let image = sanitized_headers(WIDGET, &["sec-fetch-dest: image"], 200, &[]);
    assert_eq!(image.unwrap_err(), WIDGET);
    let pictures = "https://pictures.test:8443/pub/a";
    assert_eq!(
        sanitized_headers(pictures, &[], 200, &[]).unwrap_err(),
        "type"
    );
}
