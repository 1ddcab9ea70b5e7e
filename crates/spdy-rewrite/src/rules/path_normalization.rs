//! The ways in which a server may interpret a path: rules by path also apply to these interpretations.
//!
//! ```text
//!  /assets/%61ds;v=1%2f/x  undo percent-encoding, repeatedly     /assets/ads;v=1//x
//!                          split at slashes and backslashes, then
//!                          cut each segment at its first `;`     /assets/ads//x
//!                          merge slashes, resolve dot segments   /assets/ads/x
//! ```
//!
//! Servlet containers (Tomcat, Jetty, Undertow) and Spring cut each segment at `;` (path parameters, RFC 3986 §3.3), so they
//! interpret `/assets/..;/x` as `/x`. Some servers decode percent-encoding twice, and some also decode `%uXXXX`. One interpretation
//! applies all of this: for a path that no server interprets in this way, it may exclude a resource unnecessarily, but never
//! includes one.
//!
//! With an encoded slash or a dot segment one interpretation is not enough. `/x;%2f..%2fa/` is `/a/` for nginx, which does not know
//! parameters, and `/x/a/` for Tomcat, which cuts before it decodes; `/a%2f%2f..%2fx` is `/x` if slashes are merged, otherwise
//! `/a/x`. Such paths are refused for hosts of which only a part is listed. Where they cannot be refused, [`may_lead_into`] covers
//! every interpretation.

use std::borrow::Cow;

/// True if a server may interpret a segment of `path` as `.` or `..`.
pub(crate) fn has_dot_segment(path: &str) -> bool {
    let is_dot = |segment: &str| matches!(without_parameters(&decoded(segment)), "." | "..");
    path.split('/').any(is_dot)
}

/// True if a server may decode a slash or a backslash in a segment of `path`.
pub(crate) fn has_encoded_slash(path: &str) -> bool {
    path.split('/').any(|segment| {
        let is_slash = |byte| matches!(byte, '/' | '\\');
        decoded(segment).contains(is_slash)
    })
}

/// True if a server may interpret `path` differently from its spelling.
pub(crate) fn is_ambiguous(path: &str) -> bool {
    path.contains(['%', ';', '\\']) || path.contains("//") || path.contains("/.")
}

/// True if `path` is in `folder`, or equal to it if `folder` does not end in a slash.
pub fn is_in(path: &str, folder: &str) -> bool {
    if folder.ends_with('/') {
        path.starts_with(folder)
    } else {
        path == folder
    }
}

/// True if any server may interpret `path` as one in `folder`.
pub fn may_lead_into(path: &str, folder: &str) -> bool {
    is_in(path, folder) || is_in(&canonical(path), &canonical(folder)) || {
        // Dot segments and cuts only remove names, so every interpretation is a subsequence of these names.
        let mut names = names(path).into_iter();
        has_many_readings(path)
            && self::names(folder)
                .iter()
                .all(|folder_name| names.any(|name| name == *folder_name))
    }
}

/// True if any server may find `folder`, a single segment between slashes, anywhere in `path`.
pub(crate) fn may_contain_folder(path: &str, folder: &str) -> bool {
    let name = folder.trim_matches('/');
    canonical(path).contains(folder)
        || has_many_readings(path) && names(path).iter().any(|it| it == name)
}

/// True if servers may resolve `path` to different files: it has an encoded slash or a dot segment.
pub fn has_many_readings(path: &str) -> bool {
    is_ambiguous(path) && (has_encoded_slash(path) || has_dot_segment(path))
}

/// All names of folders and files that a server may find in `path`, before dot segments are resolved.
fn names(path: &str) -> Vec<String> {
    let mut names = Vec::new();
    for_each_part(path, |part| {
        if !matches!(part, "" | "." | "..") {
            names.push(part.to_owned());
        }
    });
    names
}

/// Calls `with` for each segment of the decoded `path`, without its parameters.
fn for_each_part(path: &str, mut with: impl FnMut(&str)) {
    for segment in path.split('/') {
        for part in decoded(segment).split(['/', '\\']) {
            with(without_parameters(part));
        }
    }
}

/// `path` as the most permissive server interprets it: see the module's diagram.
pub fn canonical(path: &str) -> Cow<'_, str> {
    if !is_ambiguous(path) {
        return path.into();
    }
    let mut segments: Vec<String> = Vec::new();
    let mut is_folder = false;
    for_each_part(path, |part| {
        is_folder = matches!(part, "" | "." | "..");
        match part {
            "" | "." => {}
            ".." => _ = segments.pop(),
            part => segments.push(part.to_owned()),
        }
    });
    let mut read = String::with_capacity(path.len());
    for segment in &segments {
        read.push('/');
        read.push_str(segment);
    }
    if is_folder {
        read.push('/');
    }
    read.into()
}

fn without_parameters(segment: &str) -> &str {
    segment.split(';').next().unwrap_or_default()
}

/// Decodes percent-encoding in `text`, however often it was encoded.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let mut out = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        out.push(byte);
        // A sequence that is completed by a decoded byte is decoded too: `%252e` is `%2e` is `.`.
        while let Some((len, byte)) = encoded_at_end(&out) {
            out.truncate(out.len() - len);
            out.push(byte);
        }
    }
    String::from_utf8_lossy(&out).into_owned().into()
}

/// The byte that is encoded at the end of `text`, and the length of the encoding in bytes: `%2e`, or `%u002e`.
fn encoded_at_end(text: &[u8]) -> Option<(usize, u8)> {
    if let [.., b'%', high, low] = *text {
        return Some((3, hex(high)? << 4 | hex(low)?));
    }
    if let [.., b'%', b'u' | b'U', b'0', b'0', high, low] = *text {
        return Some((6, hex(high)? << 4 | hex(low)?));
    }
    None
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_normalized_without_encoding_parameters_and_dots() {
        for (path, expected) in [
            ("/", "/"),
            ("/a/b.png", "/a/b.png"),
            ("/a/b/", "/a/b/"),
            ("/a;v=1/b;w", "/a/b"),
            ("/a%3Bv/b%3bw/", "/a/b/"),
            ("/a%253bv/b", "/a/b"),
            ("/%61/%2562/%252563/%u0064", "/a/b/c/d"),
            ("/%%361%2%35", "/a%"),
            ("/a%/%zz/100%", "/a%/%zz/100%"),
            ("//a///b//", "/a/b/"),
            ("/a/;v=1/b/;", "/a/b/"),
            ("/a/..;/b", "/b"),
            ("/a/%2e%2E;v/b/.;/c/..", "/b/"),
            ("/../..;/a", "/a"),
            ("/a%2fb%5cc\\d", "/a/b/c/d"),
            ("/a;%2f../b", "/b"),
            ("/a;%2fb%3bc%5cd", "/a/b/d"),
            ("/x;%252f..%2fusers/a", "/users/a"),
            ("/\u{e4}%c3%a4%ff", "/\u{e4}\u{e4}\u{fffd}"),
        ] {
            assert_eq!(canonical(path), expected, "{path}");
            assert_eq!(canonical(&canonical(path)), expected, "{path}, read again");
        }
    }

    #[test]
    fn every_reading_of_encoded_slashes_is_considered() {
        for path in [
            "/a/b/c",
            "/x;%2f..%2fa/b/c",
            "/a%2fb%2f%2f..%2fc",
            "/a;%2fx/b/c",
            "/a%2f/b%252f..%252f../c",
            "/a/b//../c",
        ] {
            assert!(may_lead_into(path, "/a/b/"), "{path}");
            assert!(may_contain_folder(path, "/b/"), "{path}");
        }
        for path in ["/a/x/b/", "/b/a", "/x;%2fb%2f..%2fa/c", "/ab%2fc"] {
            assert!(!may_lead_into(path, "/a/b/"), "{path}");
        }
        assert!(!may_contain_folder("/a/b", "/b/") && !may_contain_folder("/a%2fbc", "/b/"));
    }

    #[test]
    fn dot_segments_behind_parameters_and_encodings_are_found() {
        for path in [
            "/a/..",
            "/./a",
            "/..;/a",
            "/a/.;v=1",
            "/%2e%2e;/a",
            "/.%2E%3b/a",
            "/%252e./a",
            "/%u002e%u002E;/a",
        ] {
            assert!(has_dot_segment(path), "{path}");
        }
        for path in [
            "/", "/a/", "/...", "/a..;/b", "/;../a", "/.a", "/a;/b;..", "/%2e%2ea",
        ] {
            assert!(!has_dot_segment(path), "{path}");
        }
    }

    #[test]
    fn encoded_slashes_are_found() {
        for path in [
            "/a%2fb",
            "/a%5Cb",
            "/a%252Fb",
            "/a%25255cb",
            "/a%u002fb",
            "/a;%2f",
        ] {
            assert!(has_encoded_slash(path), "{path}");
        }
        for path in ["/a/b", "//", "/a%2", "/a%252", "/%20f"] {
            assert!(!has_encoded_slash(path), "{path}");
        }
    }
}
