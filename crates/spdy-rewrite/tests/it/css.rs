//! Sheets: the site's own, and moved ones, in which what is relative must mean what it meant.

use proptest::prelude::*;
use spdy_markup::css_urls::{UrlUse, urls};
use spdy_rewrite::css::{self, StylesheetContext};
use spdy_rewrite::kind::Kind;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::verdict::{ReferenceSource, Verdict};

use crate::support::{self, discovering, rules, url};

fn own(text: &str) -> String {
    let sheet = StylesheetContext::own(&url("https://www.site.test/css/site.css"));
    css::rewrite(&rules(), &sheet, text, &mut |_| {}).into_owned()
}

fn rewrite_proxied_at(rules: &Rules, path: &str, text: &str) -> String {
    let proxied = rules.open(path).unwrap();
    let sheet = StylesheetContext::moved(rules, &proxied, &proxied);
    css::rewrite(rules, &sheet, text, &mut |_| {}).into_owned()
}

fn rewrite_proxied(text: &str) -> String {
    rewrite_proxied_at(&rules(), "/.spdy/1/-/s/cdn.test/css/a.css", text)
}

#[test]
fn site_stylesheet_only_rewrites_other_hosts() {
    assert_eq!(
        own(
            "@import url( https://cdn.test/a.css ) print; a{b:url(/x.png) url(../y.png) url(//cdn.test/z.png)}"
        ),
        "@import url(/.spdy/1/-/s/cdn.test/a.css) print; a{b:url(/x.png) url(../y.png) url(/.spdy/1/-/s/cdn.test/z.png)}"
    );
    for untouched in [
        "@charset \"utf-8\"; @namespace svg url(https://cdn.test/svg); a { b: url(#c) url(data:,x) url('') }",
        "a { filter: url(https://cdn.test/f.svg#blur); clip-path: url(https://cdn.test/f.svg#clip) }",
        "a { content: 'https://cdn.test/a.png'; b: url(https://stranger.test/a.png) } /* url(https://cdn.test/a.png) */",
        "\u{feff}a { --x: url(rel.png) }",
    ] {
        assert_eq!(own(untouched), untouched);
    }
    assert_eq!(
        own("a{--x:url(https://cdn.test/a.png)}"),
        "a{--x:url(/.spdy/1/-/s/cdn.test/a.png)}"
    );
    assert_eq!(
        own(
            "a{b:image-set('https://cdn.test/a.png' 1x,\"https://cdn.test/b.png\" 2x) src('https://cdn.test/c.png')}"
        ),
        "a{b:image-set('/.spdy/1/-/s/cdn.test/a.png' 1x,\"/.spdy/1/-/s/cdn.test/b.png\" 2x) src('/.spdy/1/-/s/cdn.test/c.png')}"
    );
}

#[test]
fn proxied_stylesheet_rewrites_root_relative_only() {
    for untouched in [
        "@import 'b.css'; a{b:url(../i.png) url(x/y.png?z#f)}",
        "a{b:url(?x)}",
        "a{--x:url(rel.png)}",
    ] {
        assert_eq!(rewrite_proxied(untouched), untouched);
    }
    assert_eq!(
        rewrite_proxied("a{--x:url(/i.png) url(' /j.png')}"),
        "a{--x:url(/.spdy/1/-/s/cdn.test/i.png) url('/.spdy/1/-/s/cdn.test/j.png')}",
        "for every use of the font"
    );
    assert_eq!(
        rewrite_proxied("a{b:url(/i.png)}"),
        "a{b:url(/.spdy/1/-/s/cdn.test/i.png)}"
    );
    assert_eq!(
        rewrite_proxied("a{b:url(../../i.png)}"),
        "a{b:url(/.spdy/1/-/s/cdn.test/i.png)}",
        "past the root"
    );
    assert_eq!(
        rewrite_proxied("a{b:url(https://www.site.test/i.png)}"),
        "a{b:url(https://www.site.test/i.png)}"
    );
    assert_eq!(
        rewrite_proxied("a{b:url(//www.site.test/i.png)}"),
        "a{b:url(//www.site.test/i.png)}"
    );
}

#[test]
fn proxied_stylesheet_has_absolute_urls_for_unproxied() {
    let rules = support::compile(
        &spdy_rewrite::rules::config::Config {
            hosts: vec![spdy_rewrite::rules::config::HostConfig {
                path: "/css/".to_owned(),
                kinds: vec![Kind::Style, Kind::Image],
                ..spdy_rewrite::rules::config::HostConfig::passive("part.test")
            }],
            ..Default::default()
        },
        support::keys(),
    );
    let rewritten = |text| rewrite_proxied_at(&rules, "/.spdy/1/-/s/part.test/css/a.css", text);
    assert_eq!(
        rewritten("a{b:url(../i.png)}"),
        "a{b:url(https://part.test/i.png)}",
        "another path"
    );
    assert_eq!(
        rewritten("@font-face{src:url(f.woff)}"),
        "@font-face{src:url(https://part.test/css/f.woff)}",
        "another kind"
    );
    assert_eq!(rewritten("a{b:url(i.png)}"), "a{b:url(i.png)}");
    assert_eq!(
        rewritten("a{filter:url(/f.svg#x)}"),
        "a{filter:url(https://part.test/f.svg#x)}"
    );
}

#[test]
fn discovered_stylesheet_gets_no_capabilities_for_other_hosts() {
    let rules = discovering();
    let page = url("https://open.test/a.css");
    let verdict = rules.verdict(&page, Kind::Style, ReferenceSource::Site);
    let Verdict::Rewrite(path) = verdict else {
        panic!("{verdict:?}");
    };
    let head = path.strip_suffix("/a.css").unwrap();
    assert_eq!(
        rewrite_proxied_at(
            &rules,
            &path,
            "a{b:url(/i.png) url(i.png) url(https://next.test/i.png) url(https://cdn.test/i.png)}"
        ),
        format!(
            "a{{b:url({head}/i.png) url(i.png) url(https://next.test/i.png) url(/.spdy/1/-/s/cdn.test/i.png)}}"
        )
    );
}

#[test]
fn redirected_stylesheet_uses_final_url_as_base() {
    let rules = rules();
    let requested = rules.open("/.spdy/1/-/s/cdn.test/a.css").unwrap();
    let last = rules.open("/.spdy/1/-/s/cdn.test/v2/a.css").unwrap();
    let sheet = StylesheetContext::moved(&rules, &requested, &last);
    let rewritten = css::rewrite(&rules, &sheet, "a{b:url(i.png)}", &mut |_| {});
    assert_eq!(rewritten, "a{b:url(/.spdy/1/-/s/cdn.test/v2/i.png)}");
}

#[test]
fn css_strings_are_escaped() {
    assert_eq!(
        own("a{b:url(https://cdn.test/a\\(1\\).png)}"),
        "a{b:url(/.spdy/1/-/s/cdn.test/a\\(1\\).png)}"
    );
    assert_eq!(
        own("a{b:url('https://cdn.test/a\\'.png')}"),
        "a{b:url('/.spdy/1/-/s/cdn.test/a\\'.png')}"
    );
    assert_eq!(
        own("a{b:url(\"https://cdn.test/a b.png"),
        "a{b:url(\"/.spdy/1/-/s/cdn.test/a%20b.png\""
    );
}

#[test]
fn other_encodings_keep_their_bytes() {
    let rules = rules();
    let sheet = StylesheetContext::own(&url("https://www.site.test/a.css"));
    let latin = b"a{content:'\xe4';b:url(https://cdn.test/a.png) url(https://cdn.test/\xe4.png)}";
    // The last one counts as UTF-8, and is not: its letters are unknown, and all else is certain.
    for label in [Some("iso-8859-1"), None] {
        let rewritten = css::rewrite_bytes(&rules, &sheet, latin, label);
        assert_eq!(
            &*rewritten.body,
            b"a{content:'\xe4';b:url(/.spdy/1/-/s/cdn.test/a.png) url(https://cdn.test/\xe4.png)}"
        );
    }
    for (label, bytes) in [
        (Some("utf-16"), &latin[..]),
        (Some("shift_jis"), latin),
        (None, b"\xff\xfea\0{\0"),
    ] {
        let rewritten = css::rewrite_bytes(&rules, &sheet, bytes, label);
        assert_eq!(&*rewritten.body, bytes);
        assert_eq!(
            rewritten.left.map(|reason| reason.name()),
            Some("unknown-encoding"),
            "{label:?}"
        );
    }
    let declared = b"@charset \"iso-8859-1\"; a{content:'\xe4';b:url(https://cdn.test/a.png)}";
    let rewritten = css::rewrite_bytes(&rules, &sheet, declared, None);
    assert_eq!(rewritten.references.len(), 1);
    assert!(
        rewritten
            .body
            .ends_with(b"\xe4';b:url(/.spdy/1/-/s/cdn.test/a.png)}")
    );
}

#[test]
fn unreadable_stylesheet_with_custom_property_url_is_imported() {
    let rules = rules();
    let proxied = rules.open("/.spdy/1/-/s/cdn.test/a.css").unwrap();
    let sheet = StylesheetContext::moved(&rules, &proxied, &proxied);
    for (text, stays) in [("a{--x:url(/i.png)}", true), ("a{--x:url(i.png)}", false)] {
        let rewritten = css::rewrite_bytes(&rules, &sheet, text.as_bytes(), Some("shift_jis"));
        assert_eq!(rewritten.body != text.as_bytes(), stays, "{text}");
    }
}

fn any_css() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("url(https://cdn.test/a.png)".to_owned()),
        Just("url('//cdn.test/b.png')".to_owned()),
        Just("@import \"/c.css\";".to_owned()),
        Just("a{b:".to_owned()),
        Just("@font-face{src:".to_owned()),
        Just("image-set(".to_owned()),
        Just("--x:".to_owned()),
        "[a-z{}();:'\"@\\\\/*# .,\u{e4}-]{0,6}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

#[test]
fn stylesheet_part_ends_at_a_complete_rule() {
    let sheet = StylesheetContext::own(&url("https://www.site.test/css/site.css"));
    for (text, end) in [
        ("a{b:c} d", Some(6)),
        ("a{b:c}", None),
        ("a{b:c} d{e:f} g{", Some(13)),
        ("a{b:'}' } x", Some(9)),
        ("a{b:c /* } */ } /* } */", Some(15)),
        ("@media x{a{b:c} d{", None),
        ("@import 'a.css'; @layer b;", None),
        ("a{b:c} --x:{} d{e:f} g", Some(6)),
        ("a{b:c} --x:{}; d{e:f} g", Some(21)),
        ("a{b:c} \\", Some(6)),
        ("}a{b:c} ", Some(7)),
    ] {
        let part = css::rewrite_prefix(&rules(), &sheet, text.as_bytes(), None);
        assert_eq!(part.map(|(_, end)| end), end, "{text:?}");
    }
    // A letter that is cut, and what is no letter, or not of UTF-8.
    let cut = css::rewrite_prefix(&rules(), &sheet, b"a{b:c} \xc3", None);
    assert_eq!(cut.map(|(_, end)| end), Some(6));
    for (bytes, declared) in [
        (&b"a{b:c} \xff d"[..], None),
        (b"a{b:c} d", Some("iso-8859-1")),
        (b"@charset \"shift_jis\"; a{b:c} d", None),
    ] {
        assert_eq!(css::rewrite_prefix(&rules(), &sheet, bytes, declared), None);
    }
}

proptest! {
    /// Whatever is written in the site's own sheet is not written again.
    #[test]
    fn rewriting_twice_changes_nothing_more(text in any_css()) {
        let once = own(&text);
        prop_assert_eq!(own(&once), once.clone());
    }

    /// Read from where a moved sheet is served, each URL leads to where it led, or to where that is moved.
    #[test]
    fn rewritten_urls_resolve_to_the_same_resource(text in any_css()) {
        let rules = rules();
        let (before, after) = (urls(&text), rewrite_proxied(&text));
        let after = urls(&after);
        prop_assert_eq!(before.len(), after.len());
        let (base, served) = (url("https://cdn.test/css/a.css"), url("https://www.site.test/.spdy/1/-/s/cdn.test/css/a.css"));
        for (before, after) in before.iter().zip(&after) {
            let relative = before.url.is_empty() || before.url.starts_with('#')
                || before.usage == UrlUse::Custom && !before.url.trim_start().starts_with('/');
            let Some(meant) = base.join(&before.url).ok().filter(|_| !relative) else { continue };
            let kind = match before.usage {
                UrlUse::Import => Kind::Style,
                UrlUse::Font => Kind::Font,
                _ => Kind::Image,
            };
            let actual = served.join(&after.url).unwrap();
            let expected = match rules.verdict(&meant, kind, ReferenceSource::Listed) {
                Verdict::Rewrite(path) => rules.site().join(&path).unwrap(),
                Verdict::Skip(_) => meant,
            };
            prop_assert_eq!(actual, expected, "{:?}", before);
        }
    }

    /// Cut at any allowed place, a sheet becomes what it becomes whole.
    #[test]
    fn parts_rewrite_like_the_full_sheet(texts in prop::collection::vec(any_css(), 1..4), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let text = texts.join("\n.a{b:url(https://cdn.test/x.png)}\n");
        let rules = rules();
        let sheet = StylesheetContext::own(&url("https://www.site.test/css/site.css"));
        let mut ends: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        ends.sort_unstable();
        let (mut output, mut buffer, mut at) = (Vec::new(), Vec::new(), 0);
        for end in ends {
            buffer.extend_from_slice(&text.as_bytes()[at..end]);
            at = end;
            if let Some((part, read)) = css::rewrite_prefix(&rules, &sheet, &buffer, Some(css::UTF_8)) {
                output.extend_from_slice(&part.body);
                buffer.drain(..read);
            }
        }
        buffer.extend_from_slice(&text.as_bytes()[at..]);
        output.extend_from_slice(&css::rewrite_bytes(&rules, &sheet, &buffer, Some(css::UTF_8)).body);
        prop_assert_eq!(String::from_utf8_lossy(&output), own(&text));
    }

    /// A sheet that names no other host is the same bytes.
    #[test]
    fn nothing_to_move_is_nothing_changed(text in any_css()) {
        let text = text.replace("cdn.test", "www.site.test");
        prop_assert_eq!(own(&text), text.clone());
    }
}
