//! TOML values that are not from a file: of environment variables, and of `--origin`.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// A string.
pub(crate) fn text(text: &str) -> DeValue<'_> {
    DeValue::String(Cow::Borrowed(text))
}

/// A list.
pub(crate) fn array<'v>(values: impl IntoIterator<Item = DeValue<'v>>) -> DeValue<'v> {
    let mut array = DeArray::new();
    for value in values {
        array.push(unspanned(value));
    }
    DeValue::Array(array)
}

/// A table.
pub(crate) fn table<'v, const N: usize>(entries: [(&'v str, DeValue<'v>); N]) -> DeTable<'v> {
    let entry = |(key, value)| (unspanned(Cow::Borrowed(key)), unspanned(value));
    entries.map(entry).into_iter().collect()
}

/// Wraps a value that is not from a file: errors about it name no line.
pub(crate) fn unspanned<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}
