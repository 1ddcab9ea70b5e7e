//! Finds the URLs of a `srcset`, which lists the candidates of one image (HTML §4.8.4.3.9, *parsing a srcset attribute*).

use std::ops::Range;

/// The positions of the URLs in a `srcset`, in order.
///
/// A URL ends at white space, and may contain commas. Commas at its end separate it from the next URL; otherwise its descriptors end at
/// the next comma outside of parentheses.
pub fn urls(value: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let is_gap = |byte: &u8| is_space(*byte) || *byte == b',';
        let start = at
            + value.as_bytes()[at..]
                .iter()
                .position(|byte| !is_gap(byte))?;
        let rest = &value.as_bytes()[start..];
        let len = rest.iter().position(|byte| is_space(*byte));
        let len = len.unwrap_or(rest.len());
        let url = value[start..start + len].trim_end_matches(',');
        at = start + len;
        if url.len() == len {
            at += descriptors(&rest[len..]);
        }
        Some(start..start + url.len())
    })
}

/// The length of the descriptors at the start of `rest`.
fn descriptors(rest: &[u8]) -> usize {
    let mut in_parentheses = false;
    let end = rest.iter().position(|byte| {
        match byte {
            b'(' => in_parentheses = true,
            b')' => in_parentheses = false,
            _ => {}
        }
        *byte == b',' && !in_parentheses
    });
    end.unwrap_or(rest.len())
}

/// `value` with each URL replaced for which `replacement` returns one; `None` if no URL is replaced.
pub fn replace_urls(
    value: &str,
    mut replacement: impl FnMut(&str) -> Option<String>,
) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    for range in urls(value) {
        // A replacement that ends in a comma would be separated from its descriptors.
        if let Some(url) = replacement(&value[range.clone()]).filter(|url| !url.ends_with(',')) {
            out.reserve(url.len() + value.len() - copied);
            out.push_str(&value[copied..range.start]);
            out.push_str(&url);
            copied = range.end;
        }
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&value[copied..]);
    Some(out)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: &str) -> Vec<&str> {
        urls(value).map(|range| &value[range]).collect()
    }

    #[test]
    fn srcset_candidates_split_like_browsers() {
        assert_eq!(found("a.png 1x, b.png 2x"), ["a.png", "b.png"]);
        assert_eq!(found("a.png 1.5x,b.png 640w"), ["a.png", "b.png"]);
        assert_eq!(
            found(" ,a.png,  b.png , c.png "),
            ["a.png", "b.png", "c.png"]
        );
        assert_eq!(
            found("a.png,b.png 2x"),
            ["a.png,b.png"],
            "commas are part of URLs"
        );
        assert_eq!(
            found("w_1,h_2/a.png 1x, w_2/a.png,, 3x"),
            ["w_1,h_2/a.png", "w_2/a.png", "3x"]
        );
        assert_eq!(found("a.png foo(1,2) 2x, b.png"), ["a.png", "b.png"]);
        assert_eq!(found("a.png (unclosed, b.png 2x"), ["a.png"]);
        assert_eq!(
            found("data:image/png;base64,AA== 1x, b.png 2x"),
            ["data:image/png;base64,AA==", "b.png"]
        );
        assert_eq!(found(""), [""; 0]);
        assert_eq!(found(" , , "), [""; 0]);
        assert_eq!(found("a.png\n\t2x,\x0cb.png"), ["a.png", "b.png"]);
    }
}
