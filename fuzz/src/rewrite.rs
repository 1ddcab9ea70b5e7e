//! Properties of the accelerator's rewriting (`spdy-rewrite`): moved URLs as any client may request them, pages and
//! sheets.
//!
//! - A moved URL that opens is the one that its target would get, byte for byte; and a generated moved URL opens as its target.
//! - IP addresses, the site's own name and denied hosts never open.
//! - How a page is split changes nothing; rewriting is idempotent; a page without URLs to move keeps its
//!   bytes; and every generated path opens.

use std::sync::{Arc, LazyLock};

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use spdy_rewrite::css::{self, StylesheetContext};
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::reference::page_report::PageReport;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::capability::{Key, Keys};
use spdy_rewrite::rules::config::{Config, HostConfig, Scheme};
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::rules::verdict::{ReferenceSource, Verdict};
use spdy_rewrite::urls::proxied_url::{Grant, ProxiedUrl};
use url::{Host, Url};

use crate::choices::Choices;
use crate::memory;

/// Bytes of heap for a page of any length that a fuzzer makes: lol_html's buffers, a style element, and three copies of the output.
const MAX_HEAP_BYTES: usize = 8 << 20;

/// A site that moves a few hosts, gives one a name, discovers others, and denies one.
static RULES: LazyLock<Arc<Rules>> = LazyLock::new(|| {
    let listed = |host: &str, path: &str, kinds: &[Kind]| HostConfig {
        path: path.to_owned(),
        kinds: kinds.to_vec(),
        ..HostConfig::passive(host)
    };
    let config = Config {
        hosts: vec![
            HostConfig::all_kinds("a.test"),
            listed("b.test", "/lib/", &[Kind::Image, Kind::Style]),
            listed("*.c.test", "/", &[Kind::Image]),
            listed("d.test:8443", "/", &[Kind::Font]),
            HostConfig {
                scheme: Scheme::Http,
                ..HostConfig::passive("e.test")
            },
            HostConfig {
                shared: true,
                ..HostConfig::all_kinds("f.test")
            },
            HostConfig::named("g.test"),
        ],
        names_under: Some("x.names.test".to_owned()),
        deny: vec!["x.test".to_owned()],
        own_hosts: vec!["y.test".to_owned()],
        discover: true,
        lazy_attributes: vec!["data-src".to_owned(), "data-srcset".to_owned()],
        ..Config::default()
    };
    compile(&config)
});

/// A site that moves nothing.
static NO_REWRITE_RULES: LazyLock<Arc<Rules>> = LazyLock::new(|| compile(&Config::default()));

fn compile(config: &Config) -> Arc<Rules> {
    let key = Key::new('a', &[7; 32]).expect("a key");
    let keys = Keys::new(key, None);
    let site = Url::parse("https://z.test").expect("a URL");
    Arc::new(Rules::compile(&site, config, Some(keys)).expect("rules"))
}

/// The rules that inputs are made for.
pub fn rules() -> &'static Arc<Rules> {
    &RULES
}

/// The result of a request for a moved URL: a path of the site, or a URL of a name.
fn open(place: &str) -> Result<ProxiedUrl, Refusal> {
    let Ok(url) = Url::parse(place) else {
        return RULES.open(place);
    };
    let named = url.host_str().and_then(|host| RULES.named(host));
    let named = named.unwrap_or_else(|| panic!("{place} has no alias host"));
    RULES.open_alias(named, &place[named.origin().len()..])
}

/// Requests the input, as it is and under the prefix, and moves it as a URL.
pub fn check_proxied_url(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    memory::at_most(MAX_HEAP_BYTES, || {
        for target in [text, &format!("/.spdy/1/-/s/{text}")] {
            if let Ok(moved) = RULES.open(target) {
                check_opened(&moved, target);
            }
        }
        if let Some(named) = RULES.aliases().next()
            && let Ok(moved) = RULES.open_alias(named, text)
        {
            check_opened(&moved, &format!("{}{text}", named.origin()));
        }
        if let Ok(url) = Url::parse(text) {
            for kind in Kind::ALL {
                let finders = [
                    ReferenceSource::Site,
                    ReferenceSource::Listed,
                    ReferenceSource::Discovered,
                    ReferenceSource::Alias,
                ];
                for finder in finders {
                    if let Verdict::Rewrite(path) = RULES.verdict(&url, kind, finder) {
                        check_made(&url, kind, &path);
                    }
                }
            }
        }
    });
}

fn check_opened(moved: &ProxiedUrl, target: &str) {
    assert_eq!(
        moved.path(),
        target,
        "the path differs from the requested target"
    );
    assert!(
        matches!(moved.url().host(), Some(Host::Domain(_))),
        "{target}"
    );
    assert!(
        moved.host() != "x.test" && !RULES.is_site_host(moved.host()),
        "{target}"
    );
    assert!(target.ends_with(moved.target()) && !moved.kinds().is_empty());
    // A capability stays valid when its host is listed later, but would not be generated.
    if moved.grant() != Grant::Listed
        && RULES
            .entry(moved)
            .is_some_and(|_| moved.grant() == Grant::Origin)
    {
        return;
    }
    for kind in moved.kinds().iter() {
        match RULES.verdict(moved.url(), kind, ReferenceSource::Site) {
            Verdict::Rewrite(again) => {
                assert_eq!(without_key(&again), without_key(target), "{kind}");
            }
            Verdict::Skip(reason) => {
                panic!("{target} opens, but would not be moved as {kind}: {reason:?}")
            }
        }
    }
}

/// `path` without the key name. Any name is valid: it only selects the key that is tried first.
fn without_key(path: &str) -> String {
    match path.strip_prefix("/.spdy/1/") {
        Some(by) if !by.starts_with('-') => [&by[..1], &by[2..]].concat(),
        // A URL of a listed host, or under an alias.
        _ => path.to_owned(),
    }
}

/// `url` with an encoded `^` in its path: browsers encode it, and the url crate does not.
fn as_browsers_send(url: &Url) -> Url {
    let mut sent = url.clone();
    sent.set_path(&url.path().replace('^', "%5E"));
    sent
}

fn check_made(url: &Url, kind: Kind, path: &str) {
    let (target, fragment) = path
        .split_once('#')
        .map_or((path, None), |(target, fragment)| (target, Some(fragment)));
    match open(target) {
        Ok(moved) => {
            let mut back = moved.url().clone();
            back.set_fragment(fragment);
            assert_eq!(as_browsers_send(&back), as_browsers_send(url), "{path}");
            assert!(moved.kinds().has(kind), "{path} as {kind}");
        }
        Err(refusal) => panic!("{path} was generated, but is rejected: {refusal}"),
    }
}

/// The owner of the page.
#[derive(Clone, Copy, Debug)]
enum PageOwner {
    Site,
    /// A host with an alias.
    Alias,
}

/// Uses the input as a page of the site and of a host with an alias, split, and as a style sheet.
pub fn check_rewrite_html(input: &[u8]) {
    let (mut choices, text) = Choices::split(input);
    let content_type = choices.pick(&[
        "text/html",
        "text/html; charset=utf-8",
        "text/html; charset=shift_jis",
        "text/html; charset=koi8-r",
    ]);
    let pieces = choices.cut(text);
    memory::at_most(MAX_HEAP_BYTES, || {
        for owner in [PageOwner::Site, PageOwner::Alias] {
            check_page(owner, content_type, text, &pieces);
        }
        assert!(
            rewrite(&NO_REWRITE_RULES, PageOwner::Site, content_type, &[text]).0 == text,
            "rules without moved hosts changed the input"
        );
        check_sheet(text);
    });
}

fn check_page(owner: PageOwner, content_type: &'static str, text: &[u8], pieces: &[&[u8]]) {
    let (whole, report) = rewrite(&RULES, owner, content_type, &[text]);
    assert!(
        rewrite(&RULES, owner, content_type, pieces).0 == whole,
        "the result depends on how the page is split"
    );
    let again = rewrite(&RULES, owner, content_type, &[&whole]).0;
    if again != whole {
        let [once, twice] = [&whole, &again].map(|page| String::from_utf8_lossy(page));
        panic!("{owner:?}: rewriting is not idempotent\nonce:  {once:?}\ntwice: {twice:?}");
    }
    check_report(report);
}

fn rewrite(
    rules: &Arc<Rules>,
    owner: PageOwner,
    content_type: &'static str,
    pieces: &[&[u8]],
) -> (Vec<u8>, PageReport) {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    let (page, head) = match owner {
        PageOwner::Site => {
            let page = rules.site().join("/dir/page").expect("a URL");
            let head = PageHead::rewrite(rules, &page, StatusCode::OK, &mut headers, true);
            (page, head)
        }
        PageOwner::Alias => {
            let named = rules.aliases().next().expect("a named host");
            let moved = rules
                .open_alias(named, "/dir/page")
                .expect("a path of the alias");
            let head = PageHead::rewrite_alias(rules, &moved, StatusCode::OK, &mut headers);
            (moved.url().clone(), head)
        }
    };
    let mut rewriter = HtmlRewriter::new(rules, &page, head, None);
    let mut out = Vec::new();
    for piece in pieces {
        rewriter.write(piece, &mut out);
    }
    let report = rewriter.end(&mut out);
    (out, report)
}

fn check_report(mut report: PageReport) {
    let references = report.take_references();
    let moved = references
        .iter()
        .filter_map(|reference| Some((reference, reference.outcome.as_ref().ok()?)));
    assert_eq!(moved.clone().count(), report.proxied);
    for (reference, path) in moved {
        let opened = open(path)
            .unwrap_or_else(|refusal| panic!("{path} was generated, but is rejected: {refusal}"));
        assert!(opened.kinds().has(reference.kind), "{reference:?}");
    }
}

fn check_sheet(text: &[u8]) {
    let own = StylesheetContext::own(RULES.site());
    let once = css::rewrite_bytes(&RULES, &own, text, None);
    let twice = css::rewrite_bytes(&RULES, &own, &once.body, None);
    assert!(
        twice.body == once.body,
        "rewriting a sheet is not idempotent"
    );
    assert!(
        css::rewrite_bytes(
            &NO_REWRITE_RULES,
            &StylesheetContext::own(NO_REWRITE_RULES.site()),
            text,
            None
        )
        .body
            == text,
        "rules without moved hosts changed the input"
    );
    let moved = RULES
        .open("/.spdy/1/-/s/b.test/lib/a.css")
        .expect("a listed sheet");
    for reference in css::rewrite_bytes(
        &RULES,
        &StylesheetContext::moved(&RULES, &moved, &moved),
        text,
        None,
    )
    .references
    {
        if let Ok(path) = reference.outcome {
            assert!(open(&path).is_ok(), "{path} was generated, but is rejected");
        }
    }
}
