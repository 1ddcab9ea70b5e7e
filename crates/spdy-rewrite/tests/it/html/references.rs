//! A page, row by row: which references are rewritten, left unchanged, and reported.

use http::StatusCode;
use http::header::{CONTENT_SECURITY_POLICY, HeaderValue, LINK};
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::PageHead;

use crate::support::page::{CDN, PAGE, becomes, html, rewrite_with, rewritten, stays};
use crate::support::{discovering, rules, url};

#[test]
fn all_image_and_media_attributes_are_rewritten() {
    becomes(
        "<img src=https://cdn.test/a.png>",
        "<img src=\"{cdn}/a.png\">",
    );
    becomes(
        "<IMG SRC='//cdn.test/a.png' alt=x>",
        "<IMG SRC=\"{cdn}/a.png\" alt=x>",
    );
    becomes(
        "<source src=\"https://cdn.test/v.mp4\">",
        "<source src=\"{cdn}/v.mp4\">",
    );
    becomes(
        "<video poster=https://cdn.test/p.jpg src=https://cdn.test/v.mp4></video>",
        "<video poster=\"{cdn}/p.jpg\" src=\"{cdn}/v.mp4\"></video>",
    );
    becomes(
        "<audio src=https://cdn.test/a.ogg>",
        "<audio src=\"{cdn}/a.ogg\">",
    );
    becomes(
        "<track src=https://cdn.test/t.vtt>",
        "<track src=\"{cdn}/t.vtt\">",
    );
    becomes(
        "<input type=Image src=https://cdn.test/b.png>",
        "<input type=Image src=\"{cdn}/b.png\">",
    );
    stays("<input type=text src=https://cdn.test/b.png>");
    for rel in ["icon", "shortcut icon", "apple-touch-icon", "mask-icon"] {
        becomes(
            &format!("<link rel='{rel}' href=https://cdn.test/i.png>"),
            &format!("<link rel='{rel}' href=\"{{cdn}}/i.png\">"),
        );
    }
    becomes(
        "<td background=https://cdn.test/b.gif>",
        "<td background=\"{cdn}/b.gif\">",
    );
}

#[test]
fn srcset_descriptors_and_order_are_preserved() {
    becomes(
        "<img srcset='https://cdn.test/w_1,h_2/a.png 1x, /own.png 1.5x,https://cdn.test/b.png 640w' sizes=100vw>",
        "<img srcset=\"{cdn}/w_1,h_2/a.png 1x, /own.png 1.5x,{cdn}/b.png 640w\" sizes=100vw>",
    );
    becomes(
        "<picture><source srcset='https://cdn.test/a.avif, https://cdn.test/b.avif 2x'></picture>",
        "<picture><source srcset=\"{cdn}/a.avif, {cdn}/b.avif 2x\"></picture>",
    );
    becomes(
        "<link rel=preload as=image imagesrcset='https://cdn.test/a.png 2x' imagesizes=50vw>",
        "<link rel=preload as=image imagesrcset=\"{cdn}/a.png 2x\" imagesizes=50vw>",
    );
}

#[test]
fn listed_lazy_attributes_are_rewritten() {
    becomes(
        "<img data-src=https://cdn.test/a.png>",
        "<img data-src=\"{cdn}/a.png\">",
    );
    becomes(
        "<img data-srcset='https://cdn.test/a.png 2x'>",
        "<img data-srcset=\"{cdn}/a.png 2x\">",
    );
    becomes(
        "<div data-bg=https://cdn.test/a.png>",
        "<div data-bg=\"{cdn}/a.png\">",
    );
    becomes(
        "<div data-bg='url(https://cdn.test/a.png)'>",
        "<div data-bg=\"url({cdn}/a.png)\">",
    );
    stays("<img data-original=https://cdn.test/a.png>");
    // Its parent element determines its kind: cdn.test gives everything, folder.test images alone.
    for (around, is_rewritten) in [("video", false), ("audio", false), ("picture", true)] {
        let page = format!("<{around}><source data-src=https://folder.test/lib/a></{around}>");
        assert_eq!(rewritten(&page) != page, is_rewritten, "{page}");
    }
    stays("<iframe data-src=https://cdn.test/a.html></iframe>");
}

#[test]
fn absolute_css_urls_in_page_are_rewritten() {
    becomes(
        "<style>@import 'https://cdn.test/a.css'; p { background: url(b.png) url(//cdn.test/c.png) }</style>",
        "<style>@import '{cdn}/a.css'; p { background: url(b.png) url({cdn}/c.png) }</style>",
    );
    becomes(
        "<p style='background: url(&quot;https://cdn.test/a.png?x=1&amp;y=2&quot;)'>",
        "<p style=\"background: url(&quot;{cdn}/a.png?x=1&amp;y=2&quot;)\">",
    );
    stays("<style>p { fill: url(#a); background: url(data:,x) }</style>");
    stays("<p style='background: url(a.png)'>");
    stays("<svg><style>p { background: url(https://cdn.test/a.png?a&amp;b) }</style></svg>");
}

#[test]
fn base_is_used_and_preserved() {
    becomes(
        "<base href=https://cdn.test/x/><img src=a.png><img src=/b.png><base href=/no/><img src=c.png>",
        "<base href=https://cdn.test/x/><img src=\"https://www.site.test{cdn}/x/a.png\"><img src=\"https://www.site.test{cdn}/b.png\"><base href=/no/><img src=\"https://www.site.test{cdn}/x/c.png\">",
    );
    becomes(
        "<base href=/sub/><img src=//cdn.test/a.png>",
        "<base href=/sub/><img src=\"{cdn}/a.png\">",
    );
    stays("<base href='https://stranger.test/'><img src=a.png>");
    becomes(
        "<base href='&sol;&sol;who.test'><img src=a.png><img src=https://cdn.test/a.png>",
        "<base href='&sol;&sol;who.test'><img src=a.png><img src=\"https://www.site.test{cdn}/a.png\">",
    );
}

#[test]
fn origin_cache_is_reset_by_base_or_policy() {
    let images = "<img src=/a.png><img src=//cdn.test/a.png><img src=http://cdn.test/a.png>";
    becomes(
        &format!("{images}<base href=http://cdn.test/x/>{images}"),
        "<img src=/a.png><img src=\"{cdn}/a.png\"><img src=http://cdn.test/a.png><base href=http://cdn.test/x/>\
         <img src=/a.png><img src=//cdn.test/a.png><img src=http://cdn.test/a.png>",
    );
    becomes(
        &format!("{images}<base href=https://cdn.test/x/>{images}"),
        "<img src=/a.png><img src=\"{cdn}/a.png\"><img src=http://cdn.test/a.png><base href=https://cdn.test/x/>\
         <img src=\"https://www.site.test{cdn}/a.png\"><img src=\"https://www.site.test{cdn}/a.png\"><img src=http://cdn.test/a.png>",
    );
    let policy = "<meta http-equiv=content-security-policy content='img-src *; script-src none'>";
    let scripts = "<script src=//cdn.test/a.js></script>";
    becomes(
        &format!("{scripts}{policy}{scripts}"),
        &format!("<script src=\"{{cdn}}/a.js\"></script>{policy}{scripts}"),
    );
}

#[test]
fn ignored_base_is_ignored() {
    becomes(
        "<template><base href=https://cdn.test/><template></template><base href=https://cdn.test/></template><img src=a.png><base href=https://cdn.test/><img src=a.png>",
        "<template><base href=https://cdn.test/><template></template><base href=https://cdn.test/></template><img src=a.png><base href=https://cdn.test/><img src=\"https://www.site.test{cdn}/a.png\">",
    );
    for (policy, is_base) in [
        ("base-uri 'none'", false),
        ("base-uri 'self'", false),
        ("base-uri https://cdn.test", true),
        ("default-src *", true),
    ] {
        let mut headers = html("text/html");
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        // The first counts, though it is blocked.
        let page = b"<base href=https://cdn.test/><base href=https://cdn.test/x/><img src=a.png>";
        let (out, report) = rewrite_with(&rules(), &mut headers, page);
        assert_eq!(out != page, is_base, "{policy}");
        assert_eq!(report.proxied == 1, is_base, "{policy}");
    }
}

#[test]
fn scripts_noscript_comments_and_handlers_are_unchanged() {
    stays("<script>load('https://cdn.test/a.js'); '<img src=https://cdn.test/a.png>'</script>");
    stays("<script type=application/json>{\"a\":\"https://cdn.test/a.js\"}</script>");
    stays(
        "<script type=speculationrules>{\"prefetch\":[{\"urls\":[\"https://cdn.test/\"]}]}</script>",
    );
    stays(
        "<noscript><img src=https://cdn.test/a.png><style>p{background:url(https://cdn.test/a.png)}</style></noscript>",
    );
    stays("<!-- <img src=https://cdn.test/a.png> -->");
    stays("<p onclick=\"go('https://cdn.test/a.png')\">");
    stays("<textarea><img src=https://cdn.test/a.png></textarea>");
}

#[test]
fn template_contents_are_rewritten() {
    becomes(
        "<template><img src=https://cdn.test/a.png></template>",
        "<template><img src=\"{cdn}/a.png\"></template>",
    );
}

#[test]
fn stylesheets_and_preloads_are_rewritten_alike() {
    becomes(
        "<link rel=stylesheet href=https://cdn.test/a.css>",
        "<link rel=stylesheet href=\"{cdn}/a.css\">",
    );
    for (rel, destination) in [
        ("preload", "style"),
        ("preload", "font"),
        ("preload", "script"),
        ("prefetch", "image"),
        ("preload", "video"),
    ] {
        becomes(
            &format!("<link rel={rel} as={destination} href=https://cdn.test/a crossorigin>"),
            &format!("<link rel={rel} as={destination} href=\"{{cdn}}/a\" crossorigin>"),
        );
    }
    stays("<link rel=preload as=fetch href=https://cdn.test/a.json>");
    stays("<link rel=preload as=document href=https://cdn.test/a.html>");
    stays("<link rel=prefetch href=https://cdn.test/next.html>");
}

#[test]
fn preconnect_is_removed_only_if_all_is_rewritten() {
    becomes(
        "<link rel=preconnect href=https://cdn.test crossorigin><p>",
        "<!----><p>",
    );
    becomes(
        "<link rel='dns-prefetch preconnect' href=//cdn.test><p>",
        "<!----><p>",
    );
    becomes(
        "<<link rel=preconnect href=https://cdn.test>img src=https://cdn.test/a>",
        "<<!---->img src=https://cdn.test/a>",
    );
    stays("<link rel=preconnect href=https://folder.test>");
    stays("<link rel=preconnect href=https://a.wild.test>");
    stays("<link rel=preconnect href=https://stranger.test>");
    stays("<link rel=preconnect href=https://cdn.test data-no-spdy>");
    stays("<link rel=preconnect href=http://cdn.test>");
    // There it is no link, and what follows stands in it.
    stays("<svg><link rel=preconnect href=https://cdn.test><g></g></svg><p>");
}

#[test]
fn identity_and_navigation_links_are_unchanged() {
    for rel in [
        "manifest",
        "canonical",
        "alternate",
        "amphtml",
        "next",
        "expect",
        "prerender",
        "license",
    ] {
        stays(&format!("<link rel={rel} href=https://cdn.test/x>"));
    }
    stays(
        "<meta property=og:image content=https://cdn.test/a.png><meta name=twitter:image content=https://cdn.test/a.png>",
    );
    stays("<meta http-equiv=refresh content='0; url=https://cdn.test/'>");
    stays(
        "<a href=https://cdn.test/a.png ping=https://cdn.test/p>x</a><area href=https://cdn.test/>",
    );
    stays("<form action=https://cdn.test/><button formaction=https://cdn.test/></form>");
    stays("<blockquote cite=https://cdn.test/></blockquote>");
    stays("<div itemscope><link itemprop=image href=https://cdn.test/a.png></div>");
}

#[test]
fn documents_frames_and_plugins_are_unchanged() {
    for page in [
        "<iframe src=https://cdn.test/f.html></iframe>",
        "<frameset><frame src=https://cdn.test/f.html></frameset>",
        "<iframe srcdoc='<img src=https://cdn.test/a.png>'></iframe>",
        "<object data=https://cdn.test/o.svg></object>",
        "<embed src=https://cdn.test/e.svg>",
        "<portal src=https://cdn.test/></portal>",
    ] {
        stays(page);
    }
    let (_, report) = rewrite_with(
        &rules(),
        &mut html("text/html"),
        b"<iframe src=https://cdn.test/f.html></iframe>",
    );
    assert_eq!(report.skipped_by_reason.get("document"), Some(&1));
}

#[test]
fn svg_images_are_rewritten_and_uses_unchanged() {
    becomes(
        "<svg><image xlink:href=https://cdn.test/a.png /><filter><feImage href=https://cdn.test/b.png /></filter></svg>",
        "<svg><image xlink:href=\"{cdn}/a.png\" /><filter><feImage href=\"{cdn}/b.png\" /></filter></svg>",
    );
    stays(
        "<svg><use href=https://cdn.test/sprite.svg#a /><use xlink:href=https://cdn.test/sprite.svg#a /></svg>",
    );
}

#[test]
fn opt_out_attribute_skips_element() {
    stays(
        "<img data-no-spdy src=https://cdn.test/a.png srcset='https://cdn.test/b.png 2x' style='background:url(https://cdn.test/c.png)'>",
    );
    stays("<style data-no-spdy>p{background:url(https://cdn.test/a.png)}</style>");
    stays("<script data-no-spdy src=https://cdn.test/a.js></script>");
}

#[test]
fn credentialed_loads_are_unchanged() {
    stays("<img crossorigin=use-credentials src=https://cdn.test/a.png>");
    stays("<script crossorigin=Use-Credentials src=https://cdn.test/a.js></script>");
    stays(
        "<video crossorigin=use-credentials><source src=https://cdn.test/v.mp4><track src=https://cdn.test/t.vtt></video>",
    );
    becomes(
        "<img crossorigin=anonymous src=https://cdn.test/a.png>",
        "<img crossorigin=anonymous src=\"{cdn}/a.png\">",
    );
}

#[test]
fn fragment_is_preserved() {
    becomes(
        "<img src=https://cdn.test/a.svg#icon>",
        "<img src=\"{cdn}/a.svg#icon\">",
    );
}

#[test]
fn passive_kinds_are_discovered() {
    let page = b"<img src=https://open.test/a.png><script src=https://open.test/a.js></script><img src=https://printer/a.png>";
    let (out, report) = rewrite_with(&discovering(), &mut html("text/html"), page);
    let out = String::from_utf8(out).unwrap();
    let proxied_path = out.split('"').nth(1).unwrap();
    assert!(
        proxied_path.starts_with("/.spdy/1/ka") && proxied_path.ends_with("/s/open.test/a.png"),
        "{out}"
    );
    assert!(discovering().open(proxied_path).is_ok());
    assert!(
        out.ends_with(
            "><script src=https://open.test/a.js></script><img src=https://printer/a.png>"
        ),
        "{out}"
    );
    assert_eq!((report.proxied, report.unchanged_count()), (1, 2));
    assert_eq!(report.hosts["https://open.test"].skipped, 1);
}

#[test]
fn csp_blocked_reference_stays_blocked() {
    let with = |policy: &'static str, page: &str| {
        let mut headers = html("text/html");
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        let (out, _) = rewrite_with(&rules(), &mut headers, page.as_bytes());
        String::from_utf8(out).unwrap()
    };
    let script = "<script src=https://cdn.test/a.js></script>";
    let rewritten_script = format!("<script src=\"{CDN}/a.js\"></script>");
    assert_eq!(with("script-src 'self'", script), script);
    assert_eq!(
        with("script-src 'self' https://cdn.test", script),
        rewritten_script
    );
    assert_eq!(with("script-src https:", script), rewritten_script);
    assert_eq!(
        with("default-src https://cdn.test", script),
        rewritten_script
    );
    assert_eq!(with("img-src 'none'", script), rewritten_script);
    let nonce = "<script nonce=n src=https://cdn.test/a.js></script>";
    let rewritten_script = format!("<script nonce=n src=\"{CDN}/a.js\"></script>");
    assert_eq!(
        with("script-src 'nonce-n' 'strict-dynamic'", nonce),
        rewritten_script
    );
    assert_eq!(
        with("script-src 'nonce-n' 'strict-dynamic' https:", script),
        script
    );
    let wild = "<img src=https://a.wild.test/a.png>";
    assert_eq!(
        with("img-src https://*.wild.test", wild),
        wild,
        "no source contains the proxied URL"
    );
    assert_ne!(with("img-src https://a.wild.test", wild), wild);
    // A folder is allowed: what its modules name from their root is left where it is.
    let module = "<script type=module src=https://cdn.test/js/m.js></script>";
    let rewritten_module = with("script-src 'unsafe-inline' https://cdn.test/js/", module);
    let scope = format!("{{\"{CDN}/\":{{\"/\":\"https://cdn.test/\",\"/.spdy/\":\"/.spdy/\"}}}}");
    assert!(
        rewritten_module.contains(&format!("{{\"imports\":{{}},\"scopes\":{scope}}}")),
        "{rewritten_module}"
    );
    let module = "<script type=module src=/m.js></script>";
    assert_eq!(
        with("script-src 'self' https://cdn.test", module),
        module,
        "an inline map would be blocked"
    );
}

#[test]
fn meta_csp_is_rewritten_and_applied() {
    becomes(
        "<meta http-equiv=Content-Security-Policy content=\"img-src 'self' https://cdn.test/i/; script-src 'self'\"><img src=https://cdn.test/i/a.png><img src=https://cdn.test/b.png><script src=https://cdn.test/a.js></script>",
        "<meta http-equiv=Content-Security-Policy content=\"img-src 'self' https://cdn.test/i/; script-src 'self'\"><img src=\"{cdn}/i/a.png\"><img src=https://cdn.test/b.png><script src=https://cdn.test/a.js></script>",
    );
    becomes(
        "<meta http-equiv=Content-Security-Policy content='img-src https://cdn.test'>",
        "<meta http-equiv=Content-Security-Policy content=\"img-src https://cdn.test https://www.site.test{cdn}/\">",
    );
}

#[test]
fn references_are_reported_while_streaming() {
    let rules = rules();
    let head = PageHead::rewrite(
        &rules,
        &url(PAGE),
        StatusCode::OK,
        &mut html("text/html; charset=utf-8"),
        true,
    );
    let mut rewriter = HtmlRewriter::new(&rules, &url(PAGE), head, None);
    let mut out = Vec::new();
    rewriter.write(
        b"<link rel=stylesheet href=https://cdn.test/a.css><img src=own.png>",
        &mut out,
    );
    let references: Vec<_> = rewriter.take_references();
    assert_eq!(references[0].url, "https://cdn.test/a.css");
    assert_eq!(references[0].kind.name(), "style");
    assert_eq!(
        references[0].outcome.as_deref(),
        Ok("/.spdy/1/-/s/cdn.test/a.css")
    );
    assert_eq!(references[1].url, "https://www.site.test/dir/own.png");
    assert!(rewriter.take_references().is_empty());
    rewriter.write(b"<img src=https://cdn.test/b.png>", &mut out);
    assert_eq!(rewriter.take_references().len(), 1);
    assert_eq!(rewriter.end(&mut out).proxied, 2);
}

/// A preload states its kind and whether it is read, and neither its pin nor that it sends cookies.
#[test]
fn pinned_and_credentialed_references_are_marked() {
    let pin = format!("sha256-{}=", "A".repeat(43));
    for (page, is_so) in [
        ("<script src=a.js></script>", false),
        ("<script crossorigin src=a.js></script>", false),
        ("<script type=module src=a.js></script>", false),
        ("<script integrity='' src=a.js></script>", false),
        ("<script integrity='{pin}' src=a.js></script>", true),
        (
            "<script crossorigin integrity='{pin}' src=https://cdn.test/a.js></script>",
            true,
        ),
        (
            "<script crossorigin=use-credentials src=a.js></script>",
            true,
        ),
        (
            "<script data-no-spdy crossorigin=Use-Credentials src=a.js></script>",
            true,
        ),
        (
            "<link rel=stylesheet integrity='{pin}' href=https://cdn.test/a.css>",
            true,
        ),
        ("<link rel=stylesheet integrity='{pin}' href=a.css>", true),
        ("<img crossorigin=use-credentials src=a.png>", true),
        (
            "<video crossorigin=use-credentials><source src=a.webm></video>",
            true,
        ),
        (
            "<video crossorigin=use-credentials poster=a.png></video>",
            false,
        ),
        ("<script integrity='{pin}'></script><img src=a.png>", false),
    ] {
        let head = PageHead::rewrite(
            &rules(),
            &url(PAGE),
            StatusCode::OK,
            &mut html("text/html; charset=utf-8"),
            true,
        );
        let mut rewriter = HtmlRewriter::new(&rules(), &url(PAGE), head, None);
        let page = page.replace("{pin}", &pin);
        rewriter.write(page.as_bytes(), &mut Vec::new());
        let references = rewriter.take_references();
        assert!(!references.is_empty(), "{page}");
        assert!(
            references
                .iter()
                .all(|reference| reference.cannot_preload == is_so),
            "{references:?}"
        );
    }
    for (link, is_so) in [
        ("</a.js>; rel=preload; as=script", false),
        ("</a.js>; rel=preload; as=script; crossorigin", false),
        (
            "</a.js>; rel=preload; as=script; crossorigin=use-credentials",
            true,
        ),
        ("</a.js>; rel=preload; as=script; integrity=\"{pin}\"", true),
    ] {
        let mut headers = html("text/html");
        let link = link.replace("{pin}", &pin);
        headers.insert(LINK, HeaderValue::from_str(&link).unwrap());
        let head = PageHead::rewrite(&rules(), &url(PAGE), StatusCode::OK, &mut headers, true);
        let mut rewriter = HtmlRewriter::new(&rules(), &url(PAGE), head, None);
        let references = rewriter.take_references();
        let references: Vec<_> = references
            .iter()
            .map(|reference| reference.cannot_preload)
            .collect();
        assert_eq!(references, [is_so], "{link}");
    }
}
