//! What in a header block is secret, and what an eavesdropper may tell of it all the same.
//!
//! ```text
//! cookie                 a=1; sid=9f86d081884c7d65          each crumb is a secret of its own
//!                        ^^^  ^^^^^^^^^^^^^^^^^^^^
//! set-cookie             sid=9f86d081884c7d65; path=/       what stands before the attributes, of each cookie
//!                        ^^^^^^^^^^^^^^^^^^^^
//! any other name         Bearer 4f1c2ab98e77d033            each component of the value
//!                        ^^^^^^^^^^^^^^^^^^^^^^^
//! ```
//!
//! A secret is written whole, as literals or as a repetition of an equal one: see
//! [`Secrets::whole_matches`] for what that tells and to whom.

use std::sync::Arc;

/// Which values are secrets, and whether one may be a repetition of itself.
///
/// Cheap to clone: all sessions of a client or server share one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Secrets {
    names: Arc<[Box<str>]>,
    whole_matches: bool,
}

/// The names that are secrets unless a caller says otherwise.
const NAMES: [&str; 4] = [
    "cookie",
    "set-cookie",
    "authorization",
    "proxy-authorization",
];

impl Default for Secrets {
    /// Cookie, set-cookie, authorization and proxy-authorization, with whole matches.
    fn default() -> Self {
        Self {
            names: NAMES.map(Box::from).into(),
            whole_matches: true,
        }
    }
}

impl Secrets {
    /// Bytes of a secret, the name of a cookie and the scheme of an authorization not counted, under
    /// which it is never a repetition.
    ///
    /// Sixteen hexadecimal digits are 2^64 guesses, sixteen decimal ones 2^53; what is shorter, such
    /// as `lang=en` or a PIN, could be found by trying all there are.
    pub const LEAST_WHOLE: usize = 16;

    /// Nothing is secret but what a block marks
    /// ([`HeaderBlock::mark_secret`](crate::header_block::HeaderBlock::mark_secret)): only where one
    /// party writes all headers.
    #[must_use]
    pub fn none() -> Self {
        Self {
            names: Arc::default(),
            whole_matches: true,
        }
    }

    /// Takes `names` for secrets as well, in any case of letters. Names of a request's first line, such
    /// as `:path`, are names too.
    #[must_use]
    pub fn and<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let more = names
            .into_iter()
            .map(|name| name.into().to_ascii_lowercase().into_boxed_str());
        let mut all = self.names.to_vec();
        for name in more {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        self.names = all.into();
        self
    }

    /// Whether a secret that repeats an earlier one whole may be written as a repetition. Default
    /// `true`, as Chromium did with crumbs of cookies.
    ///
    /// It tells an eavesdropper that the two are equal. That is of use to one who can put a guess into
    /// *the same header for the same host*, and tells him of a whole guess only whether it is right:
    /// what begins like the secret looks like any other wrong guess. Values under
    /// [`LEAST_WHOLE`](Self::LEAST_WHOLE) bytes, and values that a block marks, are never repetitions.
    /// With `false` no secret ever is: requests with cookies then cost their cookies every time.
    #[must_use]
    pub fn whole_matches(mut self, allowed: bool) -> Self {
        self.whole_matches = allowed;
        self
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(AsRef::as_ref)
    }

    /// How the value of `name` is cut into secrets; `None` if it is none.
    #[inline]
    pub(crate) fn rule(&self, name: &[u8]) -> Option<Rule> {
        let position = self
            .names
            .iter()
            .position(|secret| secret.as_bytes().eq_ignore_ascii_case(name))?;
        let shape = match &*self.names[position] {
            "cookie" => Shape::Crumbs,
            "set-cookie" => Shape::WithAttributes,
            "authorization" | "proxy-authorization" => Shape::Credentials,
            _ => Shape::Whole,
        };
        Some(Rule {
            name: position as u32,
            shape,
            may_repeat: self.whole_matches,
        })
    }
}

/// How one value is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// Which name it is: secrets of different names never meet.
    pub(crate) name: u32,
    pub(crate) shape: Shape,
    pub(crate) may_repeat: bool,
}

impl Rule {
    /// Of a value that its block marks, whatever its name.
    pub(crate) const MARKED: Self = Self {
        name: u32::MAX,
        shape: Shape::Whole,
        may_repeat: false,
    };
}

/// Where in a value secrets begin and end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Crumbs,
    WithAttributes,
    Credentials,
    Whole,
}

/// One run of a value.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Run<'a> {
    /// A separator, or a cookie's attributes.
    Public(&'a [u8]),
    /// A secret, and whether it is long enough to be a repetition.
    Secret(&'a [u8], bool),
}

/// Cuts `value` into runs; together they are the value.
pub(crate) fn runs(shape: Shape, value: &[u8], mut take: impl FnMut(Run<'_>)) {
    let mut rest = value;
    while !rest.is_empty() {
        // What separates components separates secrets in every shape.
        let end = match shape {
            Shape::Crumbs | Shape::WithAttributes => {
                rest.iter().position(|b| matches!(b, 0 | b';'))
            }
            Shape::Credentials | Shape::Whole => rest.iter().position(|b| *b == 0),
        };
        let (secret, after) = rest.split_at(end.unwrap_or(rest.len()));
        if !secret.is_empty() {
            let guessed = match shape {
                Shape::Crumbs | Shape::WithAttributes => after_first(secret, b'='),
                Shape::Credentials => after_first(secret, b' '),
                Shape::Whole => secret,
            };
            take(Run::Secret(secret, guessed.len() >= Secrets::LEAST_WHOLE));
        }
        let public = match shape {
            Shape::Crumbs => after.iter().position(|b| !matches!(b, 0 | b';' | b' ')),
            Shape::WithAttributes => after.iter().position(|b| *b == 0).map(|nul| nul + 1),
            Shape::Credentials | Shape::Whole => after.first().map(|_| 1),
        };
        let (public, next) = after.split_at(public.unwrap_or(after.len()));
        if !public.is_empty() {
            take(Run::Public(public));
        }
        rest = next;
    }
}

/// What of `text` is a guess: all of it where `separator` is not there.
fn after_first(text: &[u8], separator: u8) -> &[u8] {
    match text.iter().position(|byte| *byte == separator) {
        Some(at) => &text[at + 1..],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(shape: Shape, value: &str) -> Vec<String> {
        let mut told = Vec::new();
        runs(shape, value.as_bytes(), |run| {
            let (mark, bytes) = match run {
                Run::Public(bytes) => ("", bytes),
                Run::Secret(bytes, true) => ("!!", bytes),
                Run::Secret(bytes, false) => ("!", bytes),
            };
            told.push(format!("{mark}{}", bytes.escape_ascii()));
        });
        told
    }

    #[test]
    fn each_crumb_of_a_cookie_is_a_secret_and_what_parts_them_is_none() {
        let value = "a=1; sid=9f86d081884c7d65;b\0; c=";
        let want = [
            "!a=1",
            "; ",
            "!!sid=9f86d081884c7d65",
            ";",
            "!b",
            "\\x00; ",
            "!c=",
        ];
        assert_eq!(told(Shape::Crumbs, value), want);
        assert_eq!(told(Shape::Crumbs, "; ;"), ["; ;"]);
    }

    #[test]
    fn attributes_of_a_set_cookie_are_no_secret() {
        let value = "sid=9f86d081884c7d65; path=/; secure\0a=1\0b=2; httponly";
        let want = [
            "!!sid=9f86d081884c7d65",
            "; path=/; secure\\x00",
            "!a=1",
            "\\x00",
            "!b=2",
            "; httponly",
        ];
        assert_eq!(told(Shape::WithAttributes, value), want);
    }

    #[test]
    fn names_and_schemes_do_not_make_a_secret_long() {
        assert_eq!(
            told(Shape::Credentials, "Bearer 0123456789abcde"),
            ["!Bearer 0123456789abcde"]
        );
        assert_eq!(
            told(Shape::Credentials, "Bearer 0123456789abcdef"),
            ["!!Bearer 0123456789abcdef"]
        );
        assert_eq!(
            told(Shape::Crumbs, "a-very-long-name-for-a=short-one"),
            ["!a-very-long-name-for-a=short-one"]
        );
        assert_eq!(told(Shape::Whole, "0123456789abcde"), ["!0123456789abcde"]);
        assert_eq!(
            told(Shape::Whole, "0123456789abcdef"),
            ["!!0123456789abcdef"]
        );
    }

    #[test]
    fn names_are_taken_in_any_case_and_once() {
        let secrets = Secrets::default().and(["X-Api-Key", "cookie", "x-api-key"]);
        assert_eq!(secrets.names().count(), 5);
        assert!(secrets.rule(b"x-API-key").is_some());
        assert!(secrets.rule(b"x-api-keys").is_none());
        assert!(Secrets::none().rule(b"cookie").is_none());
    }
}
