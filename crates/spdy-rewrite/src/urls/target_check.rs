//! Checks the text of a proxied URL: its length and bytes, its authority, its path.

use crate::limits::MAX_PROXIED_URL_BYTES;
use crate::rules::Rules;
use crate::rules::config::Scheme;
use crate::rules::host_name;
use crate::rules::path_normalization::{has_dot_segment, may_pass};
use crate::rules::refusal::Refusal;

/// Checks that a target is not longer than [`MAX_PROXIED_URL_BYTES`].
pub(crate) fn check_length(target: &str) -> Result<(), Refusal> {
    match target.len() {
        got if got > MAX_PROXIED_URL_BYTES => Err(Refusal::TooLong {
            most: MAX_PROXIED_URL_BYTES,
            got,
        }),
        _ => Ok(()),
    }
}

/// Bytes that stand in no target, or that some read as others.
pub(crate) fn check_bytes(target: &str) -> Result<(), Refusal> {
    for (at, byte) in target.bytes().enumerate() {
        return Err(match byte {
            0..=0x20 | 0x7f => Refusal::ControlByte { byte, at },
            0x80.. => Refusal::NotAscii { byte, at },
            b'\\' => Refusal::Backslash { at },
            b'#' => Refusal::Fragment { at },
            b'%' if target[at..].starts_with("%00") => Refusal::Nul,
            _ => continue,
        });
    }
    Ok(())
}

pub(crate) fn check_authority(authority: &str, scheme: Scheme) -> Result<(&str, u16), Refusal> {
    if authority.contains('@') {
        return Err(Refusal::Userinfo);
    }
    let (host, port) = match authority.split_once('~') {
        None => (authority, scheme.default_port()),
        Some((host, text)) => {
            let wrong = || Refusal::Port {
                got: text.to_owned(),
            };
            let port: u16 = text.parse().map_err(|_| wrong())?;
            // `+443`, `0443`, and the port that is not written.
            if port.to_string() != text || port == 0 || port == scheme.default_port() {
                return Err(wrong());
            }
            (host, port)
        }
    };
    host_name::check(host)?;
    Ok((host, port))
}

/// Checks path and query, both of a URL that is opened and of one that is made.
pub(crate) fn check_target(rules: &Rules, target: &str) -> Result<(), Refusal> {
    check_bytes(target)?;
    let path = target.split('?').next().unwrap_or_default();
    if has_dot_segment(path) {
        return Err(Refusal::DotSegment);
    }
    if may_pass(path, rules.prefix()) {
        return Err(Refusal::NestedProxiedUrl);
    }
    Ok(())
}
