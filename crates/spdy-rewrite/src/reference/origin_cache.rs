//! Caches the results for origins that a page has already referenced: a reference with a simple target has the same result as the
//! origin's root.
//!
//! ```text
//!  https://cdn.test /things/1.webp             a reference: its origin as it is written, and a plain target
//!  https://cdn.test/                           the root of that, which is judged: moved to
//!  /.spdy/1/-/s/cdn.test/                      this, so the reference is moved to
//!  /.spdy/1/-/s/cdn.test/ things/1.webp        this
//! ```
//!
//! Pages reference few origins, many times, and nearly always with simple targets: no byte of the target is changed by the URL
//! standard, or relevant to the rules. Everything else is evaluated separately: other targets, hosts of which only parts are
//! proxied, scripts of shared hosts, and every reference that depends on a policy or on facts about the site.

use std::cell::RefCell;

use url::{Position, Url};

use crate::csp::CspCredentials;
use crate::kind::Kind;
use crate::limits::{MAX_CACHED_ORIGINS, MAX_HOST_BYTES};
use crate::reference::{Reference, ReferenceContext, ReferenceRewrite};
use crate::rules::Rules;
use crate::rules::config::Scheme;
use crate::rules::path_normalization::canonical;
use crate::rules::verdict::SkipReason;
use crate::urls::target_check::check_length;

/// Maximum length of a cached origin, as written and in full, bytes: `https://`, a host name, a port and a slash.
const MAX_ORIGIN_BYTES: usize = 8 + MAX_HOST_BYTES + 7;

/// The cached origins of one page, while its base stays the same.
#[derive(Debug, Default)]
pub(crate) struct OriginCache(RefCell<Vec<CachedOrigin>>);

#[derive(Debug)]
struct CachedOrigin {
    /// The origin as references write it; empty for a path from the root of the base.
    written: String,
    kind: Kind,
    /// The result for its root; `None` if that does not apply to other paths.
    root: Option<ReferenceRewrite>,
}

impl OriginCache {
    /// The result for `text` at `place`, used as `kind`, if it follows from its origin.
    pub(crate) fn rewrite(
        &self,
        place: &ReferenceContext<'_>,
        text: &str,
        kind: Kind,
    ) -> Option<ReferenceRewrite> {
        let (written, target) = part(text)?;
        if !is_plain(target) || holds_prefix(target, place.rules.prefix()) {
            return None;
        }
        let is_it = |origin: &&CachedOrigin| origin.kind == kind && origin.written == written;
        if let Some(origin) = self.0.borrow().iter().find(is_it) {
            return origin.rewrite_target(target);
        }
        if self.0.borrow().len() == MAX_CACHED_ORIGINS {
            return None;
        }
        let origin = CachedOrigin::of(place, written, kind)?;
        let judged = origin.rewrite_target(target);
        self.0.borrow_mut().push(origin);
        judged
    }
}

impl CachedOrigin {
    /// Evaluates the root of the origin that is written as `written`; `None` if it is too long, or if the result is not valid for
    /// all paths.
    fn of(place: &ReferenceContext<'_>, written: &str, kind: Kind) -> Option<Self> {
        if written.len() > MAX_ORIGIN_BYTES || !written.is_ascii() {
            return None;
        }
        let root = place.base.join(&[written, "/"].concat()).ok();
        let is_alike = |root: &Url| {
            // The site's own origin over `http` is rewritten to a path, and a text that begins with two slashes is not a path.
            let is_own = place.site_url_over_https(root, kind).is_some();
            is_root(root) && !is_own && place.rules.is_uniform_origin(root, kind)
        };
        let root = root.filter(is_alike);
        let judge =
            |root: Url| place.rewrite_uncached(root.as_str(), kind, CspCredentials::default());
        Some(Self {
            written: written.to_owned(),
            kind,
            root: root.map(judge),
        })
    }

    /// The result for a simple target; `None` if the proxied URL would be too long.
    fn rewrite_target(&self, target: &str) -> Option<ReferenceRewrite> {
        let root = self.root.as_ref()?;
        let reference = root.reference.as_ref()?;
        let go_on = |of_root: &String| joined(of_root, &target[1..]);
        let outcome = reference.outcome.as_ref().map(go_on);
        if let Ok(path) = &outcome
            && check_length(path).is_err()
        {
            return None;
        }
        Some(ReferenceRewrite {
            written: root.written.as_ref().map(go_on),
            reference: Some(Reference {
                url: go_on(&reference.url),
                outcome: outcome.map_err(SkipReason::clone),
                ..*reference
            }),
        })
    }
}

impl Rules {
    /// True if the result for the origin of `url`, used as `kind`, does not depend on its targets.
    fn is_uniform_origin(&self, url: &Url, kind: Kind) -> bool {
        let (Some(scheme), Some(host)) = (Scheme::of_name(url.scheme()), url.host_str()) else {
            return false;
        };
        let port = url.port().unwrap_or(scheme.default_port());
        let mut entries = self.entries.iter();
        let first = entries.find(|entry| entry.matches_host(scheme, host, port));
        first.is_none_or(|entry| {
            !entry.is_partial() && !entry.needs_url_capability(kind) && !entry.is_alias()
        })
    }
}

/// The same as `concat`, in half the time.
fn joined(start: &str, rest: &str) -> String {
    let mut text = String::with_capacity(start.len() + rest.len());
    text.push_str(start);
    text.push_str(rest);
    text
}

/// Splits a reference into its origin and its target; `None` if that is not possible.
fn part(text: &str) -> Option<(&str, &str)> {
    let after_scheme = text
        .strip_prefix("https:")
        .or_else(|| text.strip_prefix("http:"));
    let authority = after_scheme.unwrap_or(text).strip_prefix("//");
    let at = match (after_scheme, authority) {
        (_, Some(authority)) => {
            text.len() - authority.len() + authority.bytes().position(|byte| byte == b'/')?
        }
        // `https:/a` is a path if the base has that scheme, otherwise it contains a host.
        (Some(_), None) => return None,
        (None, None) => 0,
    };
    Some(text.split_at(at))
}

/// True if `url` is only an origin, so that a text after its final slash is the target.
fn is_root(url: &Url) -> bool {
    &url[Position::BeforePath..] == "/" && url.as_str().len() <= MAX_ORIGIN_BYTES
}

/// True if the URL standard leaves a target unchanged, with any text before it, and the target is requested unchanged: no byte of it
/// is encoded or corrected, and no segment begins with a dot.
fn is_plain(target: &str) -> bool {
    let mut before = 0;
    let is_unchanged = |byte: u8| {
        let begins_segment = before == b'/';
        before = byte;
        IS_UNCHANGED[usize::from(byte)] && !(begins_segment && byte == b'.')
    };
    target.starts_with('/') && target.bytes().all(is_unchanged)
}

/// By byte: true if the URL standard leaves it unchanged in a path and in a query.
const IS_UNCHANGED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = matches!(
            byte,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' | b'?' | b'=' | b'&'
                | b'+' | b',' | b';' | b':' | b'@' | b'!' | b'$' | b'(' | b')' | b'*'
        );
        byte += 1;
    }
    table
};

/// True if a simple target contains the prefix of proxied URLs, as a server may interpret it; the default prefix begins with a dot,
/// so no simple target contains it.
fn holds_prefix(target: &str, prefix: &str) -> bool {
    !prefix.starts_with("/.") && {
        let path = target.split('?').next().unwrap_or_default();
        target.contains(prefix) || canonical(path).contains(prefix)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::MAX_PROXIED_URL_BYTES;
    use crate::rules::capability::{Key, Keys};
    use crate::rules::config::{Config, HostConfig};
    use crate::rules::verdict::ReferenceSource;

    /// A site with a host of each sort.
    fn rules(discover: bool, prefix: &str) -> Rules {
        let in_folder = HostConfig {
            path: "/lib/".to_owned(),
            ..HostConfig::passive("folder.test")
        };
        let in_part = HostConfig {
            except: vec!["/lib/".to_owned()],
            ..HostConfig::passive("part.test")
        };
        let shared = HostConfig {
            shared: true,
            ..HostConfig::all_kinds("shared.test")
        };
        let plain = HostConfig {
            scheme: Scheme::Http,
            ..HostConfig::passive("plain.test")
        };
        let config = Config {
            prefix: prefix.to_owned(),
            hosts: vec![
                HostConfig::all_kinds("cdn.test"),
                HostConfig::passive("*.wild.test"),
                HostConfig::passive("port.test:8443"),
                HostConfig::named("named.test"),
                HostConfig::passive("folder.wild.test"),
                in_folder,
                in_part,
                shared,
                plain,
            ],
            names_under: Some("x.names.test".to_owned()),
            deny: vec!["denied.test".to_owned()],
            own_hosts: vec!["img.site.test".to_owned()],
            discover,
            ..Config::default()
        };
        let keys = Keys::new(Key::new('a', &[1; 32]).unwrap(), None);
        let site = Url::parse("https://www.site.test").unwrap();
        Rules::compile(&site, &config, Some(keys)).unwrap()
    }

    fn place<'a>(
        rules: &'a Rules,
        base: &'a Url,
        origins: Option<&'a OriginCache>,
    ) -> ReferenceContext<'a> {
        ReferenceContext {
            rules,
            page: rules.site(),
            base,
            browser_base: None,
            absolute_urls: base.origin() != rules.site().origin(),
            source: ReferenceSource::Site,
            ascii_only: false,
            policies: None,
            seen: None,
            origin_cache: origins,
        }
    }

    /// The bases of the references.
    const BASES: [&str; 4] = [
        "https://www.site.test/dir/page?x",
        "http://www.site.test/",
        "https://cdn.test/dir/",
        "https://u:p@www.site.test/",
    ];

    fn any_of<T: Clone + std::fmt::Debug>(all: &'static [T]) -> impl Strategy<Value = T> {
        proptest::sample::select(all)
    }

    /// References as pages have them, and malformed ones.
    fn any_text() -> impl Strategy<Value = String> {
        const ORIGINS: [&str; 37] = [
            "",
            "//cdn.test",
            "https://cdn.test",
            "http://cdn.test",
            "HTTPS://cdn.test",
            "https://CDN.test",
            "https:\\\\cdn.test",
            "https:/cdn.test",
            "https:cdn.test",
            "https:///cdn.test",
            "https://cdn.test:443",
            "https://cdn.test:",
            "https://cdn.test:8443",
            "https://cdn.test:99999",
            "https://cdn.test?",
            "https://cdn.test#",
            "https://cdn.test\\",
            "https://cdn\n.test",
            "https://c%64n.test",
            "https://u:p@cdn.test",
            "https://@cdn.test",
            "https://b\u{fc}cher.test",
            "//",
            "https://",
            "https://127.1",
            "https://[::1]",
            "https://a.wild.test",
            "https://folder.wild.test",
            "https://folder.test",
            "https://part.test",
            "https://shared.test",
            "http://plain.test",
            "https://named.test",
            "https://denied.test",
            "https://open.test",
            "https://img.site.test",
            "https://www.site.test",
        ];
        let origin = any_of(&ORIGINS);
        let plain = "(/[a-z0-9._~?=&+,;:@!$()*-]{0,6}){0,4}";
        let any = "(/(lib/|moved/|[.]{1,3}|%2[eEfF])?[ -~\t\n\u{e4}]{0,6}){0,3}";
        let target = prop_oneof![3 => plain, 1 => any];
        let long = (MAX_PROXIED_URL_BYTES - 40..MAX_PROXIED_URL_BYTES)
            .prop_map(|len| format!("/{}", "a".repeat(len)));
        let target = prop_oneof![30 => target, 1 => long];
        (origin, target).prop_map(|(origin, target)| format!("{origin}{target}"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// The result from a cached origin equals the result of the URL standard and the rules for the reference itself.
        #[test]
        fn cached_origin_gives_same_rewrite(
            texts in proptest::collection::vec((any_text(), any_of(&Kind::ALL[..2])), 1..12),
            kind in any_of(&Kind::ALL),
            base in any_of(&BASES),
            (discover, ascii_only) in any::<(bool, bool)>(),
            prefix in any_of(&["/.spdy/", "/moved/"]),
        ) {
            let (rules, base) = (rules(discover, prefix), Url::parse(base).unwrap());
            let origins = OriginCache::default();
            for (text, often) in &texts {
                for kind in [*often, kind] {
                    let judge = |origins| {
                        let place = ReferenceContext { ascii_only, ..place(&rules, &base, origins) };
                        place.rewrite(text, kind, CspCredentials::default())
                    };
                    let (by_origin, by_itself) = (judge(Some(&origins)), judge(None));
                    prop_assert_eq!(by_origin, by_itself, "{} as {}", text, kind);
                }
            }
        }
    }

    #[test]
    fn second_plain_reference_uses_origin_cache() {
        let (rules, origins) = (rules(true, "/.spdy/"), OriginCache::default());
        let place = place(&rules, rules.site(), Some(&origins));
        let by_origin = |text: &str| origins.rewrite(&place, text, Kind::Image);
        for (text, expected) in [
            (
                "https://cdn.test/a/b.png?v=1&q=2",
                "/.spdy/1/-/s/cdn.test/a/b.png?v=1&q=2",
            ),
            ("https://cdn.test//c.png", "/.spdy/1/-/s/cdn.test//c.png"),
        ] {
            let judged = by_origin(text).unwrap();
            assert_eq!(judged.written.as_deref(), Some(expected), "{text}");
        }
        assert_eq!(origins.0.borrow().len(), 1);
        for other in [
            "https://folder.test/lib/a.png",
            "https://part.test/a.png",
            "https://cdn.test/%61",
            "https://cdn.test/a/../b",
            "a.png",
        ] {
            assert_eq!(by_origin(other), None, "{other}");
        }
    }

    #[test]
    fn origin_cache_size_and_length_are_limited() {
        let (rules, origins) = (rules(true, "/.spdy/"), OriginCache::default());
        let place = place(&rules, rules.site(), Some(&origins));
        let judge = |origin: &str| origins.rewrite(&place, &format!("{origin}/a.png"), Kind::Image);
        let of_bytes = |len: usize| format!("https://{}", "a".repeat(len - "https://".len()));
        judge(&of_bytes(MAX_ORIGIN_BYTES + 1));
        assert_eq!(origins.0.borrow().len(), 0);
        judge(&of_bytes(MAX_ORIGIN_BYTES));
        assert_eq!(origins.0.borrow().len(), 1);
        for nth in 1..MAX_CACHED_ORIGINS {
            assert!(judge(&format!("https://h{nth}.test")).is_some());
        }
        assert_eq!(judge("https://one-more.test"), None);
        assert!(judge("https://h1.test").is_some());
        assert_eq!(origins.0.borrow().len(), MAX_CACHED_ORIGINS);
    }
}
