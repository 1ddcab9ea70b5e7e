//! Decides which hosts may be resolved: no address literals, nothing that reads as a number, no local names.
//!
//! The system's resolver takes `0x7f.1`, `017700000001` and `2130706433` for 127.0.0.1, as `inet_aton` does. Therefore any
//! host that ends in a number counts as an address (as in the URL standard, "ends in a number"), and is refused.

/// Longest name, in octets without the root's dot (RFC 1035 §3.1).
pub const MAX_NAME: usize = 253;
/// Longest label (RFC 1035 §2.3.4).
pub const MAX_LABEL: usize = 63;

/// Reserved names without public hosts, and the source that reserves them.
pub const SPECIAL_NAMES: &[(&str, &str)] = &[
    ("localhost", "RFC 6761"),
    ("invalid", "RFC 6761"),
    ("local", "RFC 6762"),
    ("onion", "RFC 7686"),
    ("home.arpa", "RFC 8375"),
    ("alt", "RFC 9476"),
    ("internal", "ICANN, 2024"),
];

/// A host that is not looked up, and why.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// It is empty.
    #[error("host is empty")]
    Empty,
    /// Longer than a name can be.
    #[error("host has {0} bytes, expected at most {MAX_NAME}")]
    TooLong(usize),
    /// A user or a password before it.
    #[error("host {0:?} contains a user name")]
    Userinfo(String),
    /// An address.
    #[error("host {0:?} is an address, expected a hostname")]
    Literal(String),
    /// Something that resolvers read as an address.
    #[error("host {0:?} ends in a number, so it would be parsed as an address")]
    Number(String),
    /// It ends in the root's dot: the same host, but a different key in every table.
    #[error("host {0:?} ends with a dot")]
    TrailingDot(String),
    /// A label that is empty or too long.
    #[error("host {0:?} has a label of {1} bytes, expected 1 to {MAX_LABEL}")]
    Label(String, usize),
    /// Something other than letters, digits, `-`, `_` and dots. Names of other scripts come as A-labels.
    #[error("host {0:?} contains {1:?}, expected letters, digits, '-', '_' and '.'")]
    Octet(String, char),
    /// One label: what it means depends on the machine.
    #[error("host {0:?} has no dot, so its meaning depends on the machine")]
    NoDot(String),
    /// Under a reserved name, which has another meaning on every machine, or none.
    #[error("{host:?} is under {name}, which is not public ({source_of_rule})")]
    Special {
        /// The host.
        host: String,
        /// The name that is reserved.
        name: &'static str,
        /// The source that reserves it.
        source_of_rule: &'static str,
    },
}

impl HostError {
    /// The reason for metrics and logs, in snake case.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Empty => "host_empty",
            Self::TooLong(_) => "host_too_long",
            Self::Userinfo(_) => "host_userinfo",
            Self::Literal(_) => "host_literal",
            Self::Number(_) => "host_number",
            Self::TrailingDot(_) => "host_trailing_dot",
            Self::Label(..) => "host_label",
            Self::Octet(..) => "host_character",
            Self::NoDot(_) => "host_no_dot",
            Self::Special { .. } => "host_special",
        }
    }
}

/// Checks that `host`, as in a URL without port, is a name that may be looked up.
///
/// Code that connects by URL must call this first: `spdy-client` does not look up literals, so no resolver can refuse them.
///
/// # Errors
///
/// The first of the reasons to refuse it.
pub fn check(host: &str) -> Result<(), HostError> {
    let named = || host.to_owned();
    if host.is_empty() {
        return Err(HostError::Empty);
    }
    if host.len() > MAX_NAME + 1 {
        return Err(HostError::TooLong(host.len()));
    }
    if host.contains('@') {
        return Err(HostError::Userinfo(named()));
    }
    // Brackets, a second colon or a zone mean IPv6; a single colon means a port.
    if host.starts_with('[') || host.matches(':').count() > 1 || host.contains('%') {
        return Err(HostError::Literal(named()));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(other) = host.chars().find(|&c| !is_name(c)) {
        return Err(HostError::Octet(named(), other));
    }
    let undotted = host.strip_suffix('.').unwrap_or(host);
    if undotted.parse::<std::net::Ipv4Addr>().is_ok() {
        return Err(HostError::Literal(named()));
    }
    let last = undotted.rsplit('.').next().unwrap_or(undotted);
    if is_number(last) {
        return Err(HostError::Number(named()));
    }
    if undotted.len() < host.len() {
        return Err(HostError::TrailingDot(named()));
    }
    if host.len() > MAX_NAME {
        return Err(HostError::TooLong(host.len()));
    }
    let wrong = host.split('.').map(str::len);
    if let Some(len) = wrong.into_iter().find(|len| !(1..=MAX_LABEL).contains(len)) {
        return Err(HostError::Label(named(), len));
    }
    for &(name, source_of_rule) in SPECIAL_NAMES {
        if is_at_or_under(host, name) {
            return Err(HostError::Special {
                host: named(),
                name,
                source_of_rule,
            });
        }
    }
    match host.contains('.') {
        true => Ok(()),
        false => Err(HostError::NoDot(named())),
    }
}

/// Whether a label can be read as a number: digits, or `0x` and zero or more hexadecimal digits.
fn is_number(label: &str) -> bool {
    let hexadecimal = label
        .strip_prefix("0x")
        .or_else(|| label.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|digit| digit.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|digit| digit.is_ascii_digit()),
    }
}

/// Whether `host` is `name` or ends in `.name`, ignoring case.
fn is_at_or_under(host: &str, name: &str) -> bool {
    let Some(split) = host.len().checked_sub(name.len()) else {
        return false;
    };
    let (before, end) = host.split_at(split); // ASCII was checked
    end.eq_ignore_ascii_case(name) && (before.is_empty() || before.ends_with('.'))
}
