//! Link fields of a page's head (RFC 8288): rewritten like the equivalent elements.

use std::borrow::Cow;
use std::ops::Range;

use http::header::{HeaderMap, HeaderValue, LINK};
use spdy_markup::srcset;
use url::Url;

use crate::csp::{CspCredentials, Policies};
use crate::html::link_use::{self, LinkUse};
use crate::kind::Kind;
use crate::reference::integrity;
use crate::reference::pinned_reference::{self, IntegrityRewrite};
use crate::reference::site_facts::SiteFacts;
use crate::reference::{Reference, ReferenceContext};
use crate::referrer::ReferrerScope;
use crate::rules::Rules;
use crate::rules::verdict::{ReferenceSource, SkipReason};

/// Rewrites the Link fields of the page at `page` in place; returns their references, in order.
pub fn rewrite(
    rules: &Rules,
    page: &Url,
    policies: &Policies,
    headers: &mut HeaderMap,
    seen: Option<&dyn SiteFacts>,
) -> Vec<Reference> {
    let place = ReferenceContext {
        rules,
        page,
        base: page,
        browser_base: None,
        absolute_urls: false,
        source: ReferenceSource::Site,
        ascii_only: false,
        policies: Some(policies),
        seen,
        origin_cache: None,
    };
    let referrer_scope = ReferrerScope::from_headers(headers);
    let mut found = Vec::new();
    let mut values = Vec::new();
    let mut changed = false;
    for value in headers.get_all(LINK) {
        let members = value.to_str().map(split_links);
        let Ok(members) = members else {
            values.push(value.clone());
            continue;
        };
        let rewritten: Vec<_> = members
            .iter()
            .filter_map(|member| rewrite_member(&place, member, &mut found))
            .collect();
        if rewritten.iter().eq(members.iter().copied()) {
            values.push(value.clone());
            continue;
        }
        changed = true;
        // A field value stays valid when a proxied URL is inserted.
        if !rewritten.is_empty()
            && let Ok(value) = HeaderValue::from_str(&rewritten.join(", "))
        {
            values.push(value);
        }
    }
    if changed {
        headers.remove(LINK);
        for value in values {
            headers.append(LINK, value);
        }
    }
    found
        .into_iter()
        .map(|found| Reference {
            referrer_scope,
            ..found
        })
        .collect()
}

/// Splits a value into links.
fn split_links(value: &str) -> Vec<&str> {
    let members = split_outside_quotes(value, b',')
        .into_iter()
        .map(|at| value[at].trim());
    members.filter(|member| !member.is_empty()).collect()
}

/// The ranges of the parts of a text between separators, outside of brackets and quotes.
fn split_outside_quotes(text: &str, by: u8) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut start, mut in_brackets, mut in_quotes, mut escaped) = (0, false, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_quotes => escaped = true,
            b'"' if !in_brackets => in_quotes = !in_quotes,
            b'<' if !in_quotes => in_brackets = true,
            b'>' if !in_quotes => in_brackets = false,
            _ if byte == by && !in_brackets && !in_quotes => {
                parts.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(start..text.len());
    parts
}

/// The range of the value of the first parameter `name`, without quotes.
fn parameter_at(parameters: &str, name: &str) -> Option<Range<usize>> {
    split_outside_quotes(parameters, b';')
        .into_iter()
        .find_map(|part| {
            let text = &parameters[part.clone()];
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            key.trim().eq_ignore_ascii_case(name).then(|| {
                let is_around = |c: char| c.is_whitespace() || c == '"';
                let start = part.end - value.trim_start_matches(is_around).len();
                start..start + value.trim_matches(is_around).len()
            })
        })
}

/// The value of the first parameter `name`, without quotes.
fn parameter<'m>(parameters: &'m str, name: &str) -> Option<&'m str> {
    parameter_at(parameters, name).map(|at| &parameters[at])
}

/// Rewrites the candidates of `imagesrcset` in the parameters.
fn rewrite_candidates<'m>(
    place: &ReferenceContext<'_>,
    parameters: &'m str,
    reason: Option<&SkipReason>,
    found: &mut Vec<Reference>,
) -> Cow<'m, str> {
    let Some(at) = parameter_at(parameters, "imagesrcset") else {
        return Cow::Borrowed(parameters);
    };
    let written = srcset::replace_urls(&parameters[at.clone()], |url| {
        let judged = place.rewrite_candidate(reason.cloned(), url);
        found.extend(judged.reference);
        judged.written
    });
    let Some(written) = written else {
        return Cow::Borrowed(parameters);
    };
    let (before, after) = (&parameters[..at.start], &parameters[at.end..]);
    // There may be spaces between the quote and the first candidate.
    Cow::Owned(match before.trim_end().ends_with('"') {
        true => format!("{before}{written}{after}"),
        // A URL is not a token and must be quoted.
        false => format!("{before}\"{written}\"{after}"),
    })
}

/// Rewrites a link; empty if it is removed.
fn rewrite_member(
    place: &ReferenceContext<'_>,
    member: &str,
    found: &mut Vec<Reference>,
) -> Option<String> {
    let parts = member
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'));
    let Some((target, parameters)) =
        parts.filter(|(_, parameters)| parameter(parameters, "anchor").is_none())
    else {
        return Some(member.to_owned());
    };
    let rel = parameter(parameters, "rel").unwrap_or_default();
    let used = link_use::of(rel, parameter(parameters, "as"));
    let kind = match used {
        LinkUse::Fetch(kind) => kind,
        LinkUse::Module => Kind::Script,
        LinkUse::Connect if place.removes_preconnect(target) => return None,
        LinkUse::Connect | LinkUse::Other => return Some(member.to_owned()),
    };
    let integrity = parameter(parameters, "integrity");
    let with_cookies = parameter(parameters, "crossorigin")
        .is_some_and(|mode| mode.eq_ignore_ascii_case("use-credentials"));
    let pins =
        integrity.filter(|metadata| kind == Kind::Style && integrity::has_integrity(metadata));
    let seen = place.seen.filter(|_| !with_cookies);
    let place = &ReferenceContext { seen, ..*place };
    let pin = pins.map_or(IntegrityRewrite::Rewrite(None), |metadata| {
        pinned_reference::plan_integrity(place, target, metadata)
    });
    let mut marked = None;
    let (reason, hash) = match pin {
        IntegrityRewrite::RequestUnrewritten { text, plain } => {
            found.push(pinned_reference::unknown_stylesheet(&plain));
            marked = Some(text);
            (None, None)
        }
        IntegrityRewrite::Skip => (Some(SkipReason::Integrity), None),
        IntegrityRewrite::Rewrite(_) if used == LinkUse::Module => {
            (place.module_skip_reason(target), None)
        }
        IntegrityRewrite::Rewrite(hash) => (None, hash),
    };
    let reason = with_cookies.then_some(SkipReason::Credentials).or(reason);
    let target = marked.as_deref().unwrap_or(target);
    let credentials = CspCredentials {
        nonce: parameter(parameters, "nonce"),
        integrity,
        imported: used == LinkUse::Module,
    };
    let judged = place.rewrite_unless(reason.clone(), target, kind, credentials);
    let first = found.len();
    found.extend(judged.reference);
    let with_candidates = match kind {
        Kind::Image => rewrite_candidates(place, parameters, reason.as_ref(), found),
        _ => Cow::Borrowed(parameters),
    };
    let by_cors = used == LinkUse::Module || parameter(parameters, "crossorigin").is_some();
    for reference in &mut found[first..] {
        reference.by_cors |= by_cors;
        reference.cannot_preload = with_cookies || integrity.is_some_and(integrity::has_integrity);
    }
    let written = judged.written.or_else(|| marked.clone());
    let parameters = match (hash, integrity) {
        // A hash occurs in no other parameter.
        (Some(hash), Some(integrity)) => parameters.replace(integrity, &hash).into(),
        _ => with_candidates,
    };
    let url = written.as_deref().unwrap_or(target);
    Some(format!("<{url}>{parameters}"))
}
