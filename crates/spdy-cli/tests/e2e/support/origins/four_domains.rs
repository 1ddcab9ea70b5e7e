//! A page with resources on four domains, and its origins: style sheets, scripts, fonts, images and a frame, with three policies.

use data_encoding::BASE64;
use sha2::{Digest as _, Sha256, Sha384};

use crate::support::origins::pictures::{font, png};
use crate::support::origins::scripted::{
    OriginAddresses, OriginRequest, Origins, Step, complete_response,
};

/// The host of the page.
pub(crate) const SITE: &str = "www.site.test";
/// Another name of the same site.
pub(crate) const SECOND: &str = "site.test";
/// The host of most resources.
pub(crate) const CDN: &str = "cdn.assets-b.test";
/// The host of the fonts and a style sheet.
pub(crate) const FONTS: &str = "fonts.type-c.test";
/// The host of a frame in the page.
pub(crate) const FRAMES: &str = "frames.other-d.test";

/// The content security policies of the page: by host, by nonce, and with `strict-dynamic`.
pub(crate) const POLICIES: [&str; 3] = ["hosts", "nonce", "strict-dynamic"];

/// `text` with `{cdn}` and the like replaced by `https://name:port`.
fn fill_template(text: &str, addresses: &OriginAddresses) -> String {
    let mut text = text.to_owned();
    for (word, name) in [("{cdn}", CDN), ("{fonts}", FONTS), ("{frames}", FRAMES)] {
        text = text.replace(word, &addresses.origin(name));
    }
    text.replace("{pinned-css}", &sha384(pinned_sheet(addresses).as_bytes()))
        .replace(
            "{own-pinned-css}",
            &sha256(own_pinned_sheet(addresses).as_bytes()),
        )
        .replace("{pinned-js}", &sha256(PINNED_SCRIPT.as_bytes()))
}

/// The SHA-384 of `bytes` in the form of `integrity` attributes and policies.
pub(crate) fn sha384(bytes: &[u8]) -> String {
    format!("sha384-{}", BASE64.encode(&Sha384::digest(bytes)))
}

/// The SHA-256 in the same form.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("sha256-{}", BASE64.encode(&Sha256::digest(bytes)))
}

/// A style sheet that references another host, so its bytes change when it is rewritten.
pub(crate) fn pinned_sheet(addresses: &OriginAddresses) -> String {
    let fonts = addresses.origin(FONTS);
    format!(".pinned {{ background: url(\"{fonts}/texture.png\") }}\n")
}

/// The same style sheet on the site itself, where there is no other URL for the rewritten version.
pub(crate) fn own_pinned_sheet(addresses: &OriginAddresses) -> String {
    let cdn = addresses.origin(CDN);
    format!(".pinned {{ list-style: square url(\"{cdn}/img/pinned.png\"); text-indent: 7px }}\n")
}

const PINNED_SCRIPT: &str = "window.pinned = true;\n";

const PAGE: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>four domains</title>
<link rel="icon" href="data:,">
<link rel="preconnect" href="{cdn}">
<link rel="dns-prefetch" href="{frames}">
<link rel="preload" as="font" type="font/ttf" href="{fonts}/box.ttf" crossorigin>
<link rel="stylesheet" href="{cdn}/css/main.css?v=1&amp;w=2">
<link rel="stylesheet" href="{cdn}/css/pinned.css" integrity="{pinned-css}" crossorigin="anonymous">
<link rel="stylesheet" href="/own.css">
<link rel="stylesheet" href="/own-pinned.css" integrity="{own-pinned-css}">
<style nonce="abc">.inline { background: url({cdn}/img/inline.png) }</style>
<script type="importmap" nonce="abc">{"imports": {"lib": "{cdn}/js/lib.mjs"}}</script>
<link rel="modulepreload" href="{cdn}/js/main.mjs">
<script type="module" nonce="abc" src="{cdn}/js/main.mjs"></script>
<script nonce="abc" src="{cdn}/js/classic.js"></script>
<script nonce="abc" src="{cdn}/js/pinned.js" integrity="{pinned-js}" crossorigin="anonymous"></script>
</head><body>
<p class="inline main imported">Four domains</p>
<p class="pinned">Pinned</p>
<p style="background-image: url('{cdn}/img/attribute.png')">A style of its own</p>
<img id="dense" alt="" src="{cdn}/img/one.png" srcset="{cdn}/img/one.png 1x, {cdn}/img/two.png 2x">
<img id="sized" alt="" sizes="(max-width: 600px) 50px, 400px" src="{cdn}/img/small.png" srcset="{cdn}/img/small.png 50w, {cdn}/img/comma,in,name.png 400w">
<img id="open" alt="" crossorigin src="{cdn}/img/open.png">
<img id="own" alt="" src="/own.png">
<svg width="10" height="10"><image href="{cdn}/img/in-svg.png" width="10" height="10" /></svg>
<iframe src="{frames}/frame.html"></iframe>
</body></html>
"#;

fn policy(flavour: &str) -> &'static str {
    match flavour {
        "hosts" => {
            "default-src 'none'; script-src 'self' 'nonce-abc' {cdn}; style-src 'self' 'unsafe-inline' {cdn} {fonts}; \
             img-src 'self' data: {cdn} {fonts}; font-src {fonts}; frame-src {frames}"
        }
        "nonce" => {
            "default-src 'none'; script-src 'nonce-abc' {cdn}/js/; style-src 'self' 'nonce-abc' {cdn}/css/ {fonts}; \
             style-src-attr 'unsafe-inline'; img-src * data:; font-src {fonts}; frame-src {frames}"
        }
        _ => {
            "script-src 'nonce-abc' 'strict-dynamic'; object-src 'none'; base-uri 'none'; img-src 'self' data: {cdn} {fonts}"
        }
    }
}

fn respond(request: &OriginRequest, addresses: &OriginAddresses) -> Vec<Step> {
    let path = request.target.split('?').next().unwrap_or_default();
    let (kind, body) = match (request.host, path) {
        (SITE, "/hosts" | "/nonce" | "/strict-dynamic") => {
            ("text/html; charset=utf-8", fill_template(PAGE, addresses))
        }
        (SITE, "/own.css") => (
            "text/css",
            fill_template(
                ".main { list-style-image: url(\"{cdn}/img/from-own.png\") }\n",
                addresses,
            ),
        ),
        (SITE, "/own-pinned.css") => ("text/css", own_pinned_sheet(addresses)),
        (CDN, "/css/main.css") => (
            "text/css",
            fill_template(
                "@charset \"utf-8\";\n@import \"nested/import.css\" screen;\n@import url({fonts}/imported.css);\n\
                 @font-face { font-family: Box; src: url({fonts}/box.ttf) format(\"truetype\") }\n\
                 .main { font-family: Box; border-image: url(../img/relative.png) 1 }\n\
                 p { cursor: url(/img/root.png), auto }\n",
                addresses,
            ),
        ),
        (CDN, "/css/nested/import.css") => (
            "text/css",
            ".imported { background: url(\"../../img/nested.png\") }\n".to_owned(),
        ),
        (CDN, "/css/pinned.css") => ("text/css", pinned_sheet(addresses)),
        (FONTS, "/imported.css") => (
            "text/css",
            ".imported { outline: 3px solid rgb(1, 2, 3) }\n".to_owned(),
        ),
        (CDN, "/js/main.mjs") => (
            "text/javascript",
            fill_template(
                "import part from './part.mjs'; import lib from 'lib'; import far from '{cdn}/js/far.mjs';\n\
                 import root from '/js/root.mjs'; window.modules = [part, lib, far, root].join(' ');\n",
                addresses,
            ),
        ),
        (CDN, "/js/part.mjs") => (
            "text/javascript",
            "import deep from './deep/deep.mjs'; export default 'part ' + deep;\n".to_owned(),
        ),
        (CDN, "/js/deep/deep.mjs") => ("text/javascript", "export default 'deep';\n".to_owned()),
        (CDN, "/js/lib.mjs") => ("text/javascript", "export default 'lib';\n".to_owned()),
        (CDN, "/js/far.mjs") => ("text/javascript", "export default 'far';\n".to_owned()),
        (CDN, "/js/root.mjs") => ("text/javascript", "export default 'root';\n".to_owned()),
        (CDN, "/js/classic.js") => ("text/javascript", "window.classic = true;\n".to_owned()),
        (CDN, "/js/pinned.js") => ("text/javascript", PINNED_SCRIPT.to_owned()),
        (FRAMES, "/frame.html") => (
            "text/html",
            "<!doctype html><title>a frame</title><img alt=\"\" src=\"in-frame.png\">\n".to_owned(),
        ),
        _ => ("", String::new()),
    };
    let open = "Access-Control-Allow-Origin: *\r\nCache-Control: max-age=600\r\n";
    let cookie = match request.host {
        SITE => "Set-Cookie: of-site=secret; Path=/; Secure; HttpOnly\r\n",
        _ => "Set-Cookie: of-third=tracker; Path=/; Secure; SameSite=None\r\n",
    };
    let fields = match (request.host, path) {
        (SITE, "/own.png" | "/own.css" | "/own-pinned.css") => {
            "Cache-Control: max-age=600\r\n".to_owned()
        }
        (SITE, page) => {
            let policy = fill_template(policy(page.trim_start_matches('/')), addresses);
            format!("{cookie}Cache-Control: max-age=60\r\nContent-Security-Policy: {policy}\r\n")
        }
        _ => format!("{open}{cookie}"),
    };
    if path.ends_with(".png") {
        let size = 10 + path.len() as u32;
        let picture = png(size, 10, [path.len() as u8; 3]);
        return complete_response(
            &format!("200 OK\r\nContent-Type: image/png\r\n{fields}"),
            &picture,
        );
    }
    if path == "/box.ttf" {
        return complete_response(
            &format!("200 OK\r\nContent-Type: font/ttf\r\n{fields}"),
            &font(),
        );
    }
    if kind.is_empty() {
        return complete_response("404 Not Found\r\nContent-Type: text/plain\r\n", b"no\n");
    }
    let head = format!("200 OK\r\nContent-Type: {kind}\r\n{fields}");
    complete_response(&head, body.as_bytes())
}

/// The four origins, and a second name for the first.
pub(crate) fn origins() -> Origins {
    let hosts = [SITE, CDN, FONTS, FRAMES].map(|name| (name, "https"));
    Origins::start_as(&hosts, &[SECOND], respond)
}
