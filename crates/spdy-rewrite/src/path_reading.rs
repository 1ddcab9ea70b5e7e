//! How a server may read a path that is written otherwise: rules that judge by path go by this reading as well.
//!
//! ```text
//!  /assets/%61ds;v=1//x    undo percent-encoding, repeatedly     /assets/ads;v=1//x
//!                          cut each segment at its first `;`     /assets/ads//x
//!                          merge slashes, resolve dot segments   /assets/ads/x
//! ```
//!
//! Servlet containers (Tomcat, Jetty, Undertow) and Spring cut each segment at `;` (path parameters, RFC 3986 §3.3), so to them
//! `/assets/..;/x` is `/x`. Some servers undo percent-encoding twice, and some also read `%uXXXX`. One reading has all of this: a path
//! that no server reads so is then kept out of a folder too often, never let into one.

use std::borrow::Cow;

/// Whether a server may take a segment of `path` for `.` or `..`.
pub(crate) fn has_dot_segment(path: &str) -> bool {
    let is_dot = |segment: &str| matches!(without_parameters(&decoded(segment)), "." | "..");
    path.split('/').any(is_dot)
}

/// Whether a server may find a slash or a backslash in a segment of `path`.
pub(crate) fn has_encoded_slash(path: &str) -> bool {
    path.split('/').any(|segment| {
        let is_slash = |byte| matches!(byte, '/' | '\\');
        decoded(segment).contains(is_slash)
    })
}

/// Whether a server may read `path` otherwise than it is written.
pub(crate) fn is_ambiguous(path: &str) -> bool {
    path.contains(['%', ';', '\\']) || path.contains("//") || path.contains("/.")
}

/// `path` as the most permissive server reads it: see the module's picture.
pub(crate) fn canonical(path: &str) -> Cow<'_, str> {
    if !is_ambiguous(path) {
        return path.into();
    }
    let mut segments: Vec<String> = Vec::new();
    let mut is_folder = false;
    for segment in path.split('/') {
        let segment = decoded(segment);
        for part in without_parameters(&segment).split(['/', '\\']) {
            is_folder = matches!(part, "" | "." | "..");
            match part {
                "" | "." => {}
                ".." => _ = segments.pop(),
                part => segments.push(part.to_owned()),
            }
        }
    }
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

/// `text` without percent-encoding, however often it was encoded.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let mut out = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        out.push(byte);
        // What a decoded byte completes is decoded too: `%252e` is `%2e` is `.`.
        while let Some((len, byte)) = encoded_at_end(&out) {
            out.truncate(out.len() - len);
            out.push(byte);
        }
    }
    String::from_utf8_lossy(&out).into_owned().into()
}

/// The byte that the end of `text` encodes, and how many bytes say it: `%2e`, or `%u002e`.
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
    fn a_path_is_read_without_encoding_parameters_and_dot_segments() {
        for (path, want) in [
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
            ("/a;%2f../b", "/a/b"),
            ("/\u{e4}%c3%a4%ff", "/\u{e4}\u{e4}\u{fffd}"),
        ] {
            assert_eq!(canonical(path), want, "{path}");
            assert_eq!(canonical(&canonical(path)), want, "{path}, read again");
        }
    }

    #[test]
    fn dot_segments_are_found_behind_parameters_and_encodings() {
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
    fn slashes_are_found_behind_encodings() {
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
