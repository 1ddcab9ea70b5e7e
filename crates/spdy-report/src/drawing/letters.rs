//! Estimated widths of texts: to wrap, shorten and place them without a font.
//!
//! The estimate is of DejaVu Sans, which is wider than the fonts of most screens and than the one on paper, so a text that fits by
//! the estimate fits when it is drawn.

/// Width of `text` in units of the drawing, at a font of `size` units.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(part_of_size).sum::<f64>() * size
}

fn part_of_size(char: char) -> f64 {
    match char {
        'i' | 'j' | 'l' | '\'' | '|' => 0.31,
        '.' | ',' | ':' | ';' | '!' | ' ' | '\u{202f}' | 'I' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' | '"' => 0.42,
        'm' | 'M' | 'W' | '@' | '%' | '…' | '—' => 1.0,
        'w' | '×' | '+' | '=' | '<' | '>' | '~' | '#' => 0.84,
        'A'..='Z' => 0.74,
        // Letters of wide scripts are as wide as high.
        '\u{1100}'.. => 1.0,
        _ => 0.64,
    }
}

/// Wraps `text` at spaces into lines of at most `most` units. A longer word is split.
pub(crate) fn wrap(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let longer = if line.is_empty() {
            word.to_owned()
        } else {
            format!("{line} {word}")
        };
        if width(&longer, size) <= most {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for char in word.chars() {
            line.push(char);
            if width(&line, size) > most && line.chars().nth(1).is_some() {
                line.pop();
                lines.push(std::mem::take(&mut line));
                line.push(char);
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// `text` without its end, if it is wider than `most` units.
pub(crate) fn shorten(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut wide = width("…", size);
    for char in text.chars() {
        wide += part_of_size(char) * size;
        if wide > most {
            break;
        }
        kept.push(char);
    }
    kept + "…"
}

/// `text` without its beginning, if it is wider than `most` units: the end of a host distinguishes it.
pub(crate) fn shorten_start(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let reversed: String = text.chars().rev().collect();
    shorten(&reversed, size, most).chars().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_all_words_and_stay_within_the_width() {
        let text = "rate 512kbit, 10mbit; https://a-host-name-without-any-space.example/ and more";
        for most in [40.0, 90.0, 200.0] {
            let lines = wrap(text, 9.0, most);
            assert!(
                lines.iter().all(|line| width(line, 9.0) <= most),
                "{lines:?}"
            );
            let letters = |text: &str| text.replace(' ', "");
            assert_eq!(letters(&lines.concat()), letters(text));
        }
        assert!(wrap("", 9.0, 40.0).is_empty());
        assert_eq!(wrap("wide", 9.0, 1.0), ["w", "i", "d", "e"]);
    }

    #[test]
    fn a_name_keeps_its_start_and_a_host_its_end() {
        assert_eq!(shorten("logo.png", 9.0, 100.0), "logo.png");
        let name = shorten("a-very-long-name-of-a-picture.png", 9.0, 60.0);
        assert!(name.starts_with("a-very") && name.ends_with('…'), "{name}");
        let host = shorten_start("static.assets.cdn.example.org", 9.0, 80.0);
        assert!(
            host.starts_with('…') && host.ends_with("example.org"),
            "{host}"
        );
        assert!(width(&host, 9.0) <= 80.0);
    }
}
