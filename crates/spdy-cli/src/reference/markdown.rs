//! Text of the code as Markdown.

/// Escapes what Markdown or HTML would read as markup, outside of inline code.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            escaped.push_str(&format!("`{part}`"));
            continue;
        }
        for c in part.chars() {
            match c {
                '<' => escaped.push_str("&lt;"),
                '*' => escaped.push_str("\\*"),
                _ => escaped.push(c),
            }
        }
    }
    escaped
}

/// `text` on one line, for a cell of a table.
pub(super) fn cell(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    escape(&text).replace('|', "\\|")
}

/// `text` as inline code, for a cell of a table.
pub(super) fn code_cell(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

/// A table with the columns `head`.
pub(super) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&head.map(str::to_owned));
    text.push_str(&line(&head.map(|_| "---".to_owned())));
    for row in rows {
        text.push_str(&line(row));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{cell, table};

    #[test]
    fn markup_is_escaped_outside_of_code() {
        assert_eq!(cell("a <b> `<c>`\n *.x | y"), "a &lt;b> `<c>` \\*.x \\| y");
    }

    #[test]
    fn a_table_has_a_line_for_each_row() {
        let rows = [["1".to_owned(), "2".to_owned()]];
        assert_eq!(
            table(["a", "b"], &rows),
            "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
        );
    }
}
