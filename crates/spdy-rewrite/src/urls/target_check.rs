//! Checks the text of a proxied URL: its length and bytes, its authority, its path. Incoming URLs (`open.rs`) and those that the rewriter
//! builds pass the same checks.

use crate::limits::MAX_PROXIED_URL_BYTES;
use crate::rules::Rules;
use crate::rules::config::Scheme;
use crate::rules::host_name;
use crate::rules::path_normalization::{has_dot_segment, may_contain_folder};
use crate::rules::refusal::Refusal;

/// Checks that a target is not longer than [`MAX_PROXIED_URL_BYTES`].
pub(crate) fn check_length(target: &str) -> Result<(), Refusal> {
    match target.len() {
        found if found > MAX_PROXIED_URL_BYTES => Err(Refusal::TooLong {
            most: MAX_PROXIED_URL_BYTES,
            found,
        }),
        _ => Ok(()),
    }
}

/// Checks that `target` has no bytes that are not allowed in a target, or that servers and browsers interpret differently.
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

/// Checks `HOST` or `HOST~PORT`, and returns host and port. Only the shortest form of a port is allowed, so that an origin has only one
/// URL.
pub(crate) fn check_authority(authority: &str, scheme: Scheme) -> Result<(&str, u16), Refusal> {
    if authority.contains('@') {
        return Err(Refusal::Userinfo);
    }
    let (host, port) = match authority.split_once('~') {
        None => (authority, scheme.default_port()),
        Some((host, text)) => {
            let refusal = || Refusal::Port {
                found: text.to_owned(),
            };
            let port: u16 = text.parse().map_err(|_| refusal())?;
            // Refuses `+443`, `0443`, and a default port, which must be left out.
            if port.to_string() != text || port == 0 || port == scheme.default_port() {
                return Err(refusal());
            }
            (host, port)
        }
    };
    host_name::check(host)?;
    Ok((host, port))
}

/// Checks the path and query of a proxied URL: no forbidden bytes, no dot segment, and not itself a proxied URL. The caller checks its
/// length ([`check_length`]).
pub(crate) fn check_target(rules: &Rules, target: &str) -> Result<(), Refusal> {
    check_bytes(target)?;
    let path = target.split('?').next().unwrap_or_default();
    if has_dot_segment(path) {
        return Err(Refusal::DotSegment);
    }
    if may_contain_folder(path, rules.prefix()) {
        return Err(Refusal::NestedProxiedUrl);
    }
    Ok(())
}
