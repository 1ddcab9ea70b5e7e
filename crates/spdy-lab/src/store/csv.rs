//! A store as CSV (RFC 4180, with line ends of one byte): a line of names, then a line for each load.

use std::io::Write;

use crate::store::column::COLUMNS;
use crate::store::error::ExportError;
use crate::store::open::Store;
use crate::store::value::Value;

/// Writes every row of `store` to `out`. Returns the number of rows.
///
/// # Errors
///
/// The store cannot be read, or `out` cannot be written.
pub fn write(store: &mut Store, out: &mut impl Write) -> Result<usize, ExportError> {
    writeln!(out, "{}", COLUMNS.map(|column| column.name).join(","))?;
    let (mut count, mut written) = (0, Ok(()));
    store.each_row(|row| {
        if written.is_ok() {
            let fields: Vec<_> = row.values.iter().map(field).collect();
            written = writeln!(out, "{}", fields.join(","));
            count += 1;
        }
    })?;
    written?;
    out.flush()?;
    Ok(count)
}

/// A field, quoted if necessary.
fn field(value: &Value) -> String {
    let text = value.to_string();
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_quotes_and_line_ends_are_quoted() {
        let cases = [
            (Value::Null, ""),
            (Value::Integer(-7), "-7"),
            (Value::Real(0.1), "0.1"),
            (Value::text("dsl"), "dsl"),
            (Value::text("a,b"), "\"a,b\""),
            (Value::text("a\n\"b\""), "\"a\n\"\"b\"\"\""),
        ];
        for (value, expected) in cases {
            assert_eq!(field(&value), expected);
        }
    }
}
