//! Which fields may be in our table, so that lengths reveal no secrets (CRIME).
//!
//! A field that is in the table takes one or two bytes in place of its value. An attacker that chooses the values of fields and sees
//! lengths would learn which values are in the table, so only these are:
//!
//! - values of public headers, the same list as for SPDY (`public_headers.rs` of spdy-frame);
//! - each crumb of a cookie, an authorization and the last referer, if an attacker cannot try all values (`secrets.rs` there), and
//!   only for the host that had them.
//!
//! The value of any other field is a literal. Its name may be in the table: names are public.
//! docs/explanation/header-compression.md has the reasons.

use bytes::Bytes;
use spdy_frame::public_headers::is_public;
use spdy_frame::secrets::Secrets;
use spdy_frame::version::Version;

use crate::qpack::field::Field;

/// What of a field may be in the table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Indexing {
    /// Only its name.
    Name,
    /// Its name and value.
    Public,
    /// Its name and value, for requests to the same host.
    Private,
}

impl Indexing {
    /// The rule for `field`. A cookie must be cut into crumbs before.
    pub(super) fn of(field: &Field) -> Self {
        match &field.name[..] {
            _ if field.is_sensitive => Self::Name,
            b":authority" => Self::Public,
            name if is_public(Version::V31, name) => Self::Public,
            // A response sets each cookie once. Its path and other attributes may be of a user.
            b"set-cookie" => Self::Name,
            name if Secrets::default().may_repeat(name, &field.value) => Self::Private,
            _ => Self::Name,
        }
    }
}

/// The host of a message, to which its private values belong. Responses have none, and no private values that may be in the table.
pub(super) fn host(fields: &[Field]) -> Bytes {
    let authority = fields.iter().find(|it| it.name == ":authority");
    authority.map_or_else(Bytes::new, |it| it.value.clone())
}

/// Cuts cookies into crumbs, which are fields of their own. The receiver joins them again (RFC 9114 §4.2.1).
pub(super) fn with_crumbs(fields: &[Field]) -> Vec<Field> {
    let mut cut = Vec::with_capacity(fields.len());
    for field in fields {
        if field.name != "cookie" || field.is_sensitive {
            cut.push(field.clone());
            continue;
        }
        let mut rest = field.value.clone();
        while let Some(at) = rest.windows(2).position(|pair| pair == b"; ") {
            cut.push(Field::new(field.name.clone(), rest.split_to(at)));
            let _ = rest.split_to(2);
        }
        cut.push(Field::new(field.name.clone(), rest));
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &'static str, value: &'static str) -> Field {
        Field::new(Bytes::from(name), Bytes::from(value))
    }

    #[test]
    fn only_public_values_and_long_secrets_may_be_in_the_table() {
        for (name, value, expected) in [
            (":authority", "a.test", Indexing::Public),
            ("user-agent", "x", Indexing::Public),
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT", Indexing::Public),
            (":path", "/0123456789abcdef", Indexing::Name),
            ("etag", "0123456789abcdef", Indexing::Name),
            ("x-csrf-token", "0123456789abcdef", Indexing::Name),
            ("set-cookie", "a=0123456789abcdef", Indexing::Name),
            ("cookie", "a=0123456789abcdef", Indexing::Private),
            ("cookie", "a=0123456789abcde", Indexing::Name),
            // Not cut into crumbs: each of them can be guessed.
            ("cookie", "a=1; b=2; c=3; d=4; e=5", Indexing::Name),
            (
                "authorization",
                "Bearer 0123456789abcdef",
                Indexing::Private,
            ),
            ("authorization", "Basic 0123", Indexing::Name),
            (
                "referer",
                "https://a.test/0123456789abcdef",
                Indexing::Private,
            ),
            ("referer", "https://a.test/inbox/4711", Indexing::Name),
        ] {
            assert_eq!(
                Indexing::of(&field(name, value)),
                expected,
                "{name}: {value}"
            );
        }
        let mut sensitive = field("user-agent", "x");
        sensitive.is_sensitive = true;
        assert_eq!(Indexing::of(&sensitive), Indexing::Name);
    }

    #[test]
    fn a_cookie_is_cut_so_that_it_can_be_joined_exactly() {
        let crumbs = |value| {
            let cut = with_crumbs(&[field("cookie", value)]);
            let values: Vec<_> = cut
                .iter()
                .map(|it| std::str::from_utf8(&it.value).unwrap().to_owned())
                .collect();
            assert_eq!(values.join("; "), value);
            values
        };
        assert_eq!(crumbs("a=1; b=2"), ["a=1", "b=2"]);
        assert_eq!(crumbs("a=1;b=2;  c"), ["a=1;b=2", " c"]);
        assert_eq!(crumbs(""), [""]);
        assert_eq!(crumbs("; "), ["", ""]);
    }
}
