//! Link fields of a page's head (RFC 8288): rewritten as the elements they stand for.

use http::header::{HeaderMap, HeaderValue, LINK};
use url::Url;

use crate::csp::{Credentials, Policies};
use crate::integrity;
use crate::kind::Kind;
use crate::link_rel::{self, LinkUse};
use crate::pinned_sheet::{self, Pin};
use crate::reference::{Place, Reference};
use crate::referrer::Tells;
use crate::rules::Rules;
use crate::seen::Seen;
use crate::verdict::{Finder, Reason};

/// Rewrites the Link fields of the page at `page` in place; what they name, in order.
pub fn rewrite(
    rules: &Rules,
    page: &Url,
    policies: &Policies,
    headers: &mut HeaderMap,
    seen: Option<&dyn Seen>,
) -> Vec<Reference> {
    let place = Place {
        rules,
        page,
        base: page,
        seen_from: None,
        in_full: false,
        finder: Finder::Site,
        ascii_only: false,
        policies: Some(policies),
        seen,
        origins: None,
    };
    let tells = Tells::by_head(headers);
    let mut found = Vec::new();
    let mut values = Vec::new();
    let mut changed = false;
    for value in headers.get_all(LINK) {
        let members = value.to_str().map(members);
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
        // What was a field's value with a moved URL in it is one still.
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
        .map(|found| Reference { tells, ..found })
        .collect()
}

/// The links of a value, parted by commas outside of brackets and quotes.
fn members(value: &str) -> Vec<&str> {
    let mut members = Vec::new();
    let (mut start, mut in_brackets, mut in_quotes, mut escaped) = (0, false, false, false);
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_quotes => escaped = true,
            b'"' if !in_brackets => in_quotes = !in_quotes,
            b'<' if !in_quotes => in_brackets = true,
            b'>' if !in_quotes => in_brackets = false,
            b',' if !in_brackets && !in_quotes => {
                members.push(value[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    members.push(value[start..].trim());
    members.retain(|member| !member.is_empty());
    members
}

/// The first parameter of that name, unquoted.
fn parameter<'m>(parameters: &'m str, name: &str) -> Option<&'m str> {
    parameters.split(';').find_map(|parameter| {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        key.trim()
            .eq_ignore_ascii_case(name)
            .then(|| value.trim().trim_matches('"'))
    })
}

/// A link as it is sent on; nothing if it goes.
fn rewrite_member(place: &Place<'_>, member: &str, found: &mut Vec<Reference>) -> Option<String> {
    let parts = member
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'));
    let Some((target, parameters)) =
        parts.filter(|(_, parameters)| parameter(parameters, "anchor").is_none())
    else {
        return Some(member.to_owned());
    };
    let rel = parameter(parameters, "rel").unwrap_or_default();
    let used = link_rel::of(rel, parameter(parameters, "as"));
    let kind = match used {
        LinkUse::Fetch(kind) => kind,
        LinkUse::Module => Kind::Script,
        LinkUse::Connect if place.drops_connect(target) => return None,
        LinkUse::Connect | LinkUse::Other => return Some(member.to_owned()),
    };
    let integrity = parameter(parameters, "integrity");
    let with_cookies = parameter(parameters, "crossorigin")
        .is_some_and(|mode| mode.eq_ignore_ascii_case("use-credentials"));
    let pins = integrity.filter(|metadata| kind == Kind::Style && integrity::pins(metadata));
    let seen = place.seen.filter(|_| !with_cookies);
    let place = &Place { seen, ..*place };
    let pin = pins.map_or(Pin::Free(None), |metadata| {
        pinned_sheet::judge(place, target, metadata)
    });
    let mut marked = None;
    let (reason, hash) = match pin {
        Pin::Marked { text, plain } => {
            found.push(pinned_sheet::unknown(&plain));
            marked = Some(text);
            (None, None)
        }
        Pin::Stays => (Some(Reason::Integrity), None),
        Pin::Free(_) if used == LinkUse::Module => (place.module_stays(target), None),
        Pin::Free(hash) => (None, hash),
    };
    let reason = with_cookies.then_some(Reason::Credentials).or(reason);
    let target = marked.as_deref().unwrap_or(target);
    let credentials = Credentials {
        nonce: parameter(parameters, "nonce"),
        integrity,
        imported: used == LinkUse::Module,
    };
    let judged = place.judge_unless(reason, target, kind, credentials);
    let by_cors = used == LinkUse::Module || parameter(parameters, "crossorigin").is_some();
    found.extend(judged.reference.map(|reference| Reference {
        by_cors: by_cors || reference.by_cors,
        unhintable: with_cookies || integrity.is_some_and(integrity::pins),
        ..reference
    }));
    let written = judged.written.or_else(|| marked.clone());
    Some(match (written, hash, integrity) {
        // A hash stands in no other parameter.
        (url, Some(hash), Some(integrity)) => {
            let url = url.as_deref().unwrap_or(target);
            format!("<{url}>{}", parameters.replace(integrity, &hash))
        }
        (Some(url), ..) => format!("<{url}>{parameters}"),
        (None, ..) => member.to_owned(),
    })
}
