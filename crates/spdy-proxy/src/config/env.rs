//! Configuration keys from the environment: values of one container beside a file that all of them share.
//!
//! ```text
//! SPDY_ACCELERATE__SECRET_FILE=/run/secrets/spdy          secret_file = "/run/secrets/spdy"
//! SPDY_ACCELERATE__CACHE__MEMORY_MIB=512                  [cache] memory_mib = 512
//! SPDY_ACCELERATE__LISTEN__TLS='["0.0.0.0:443"]'          [listen] tls = ["0.0.0.0:443"]
//! ```
//!
//! Two underscores stand before the first name, and between the name of a table and that of its key. `SPDY_ACCELERATE_PORT` and the like
//! are set by Kubernetes for a service of that name, and are no keys. A value is TOML; any other value is taken as text, so that paths and
//! addresses need no quotes. Sites and zones are lists, and cannot be set this way.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};
use toml::{Deserializer, Spanned};

use crate::config::error::{ConfigError, describe_error};
use crate::config::shared_cache::redact_error;
use crate::config::toml_values::{text, unspanned};

/// Prefix of the variables' names.
pub const PREFIX: &str = "SPDY_ACCELERATE__";
/// Between the name of a table and that of its key.
const SEPARATOR: &str = "__";

/// The variables that are keys of the configuration.
pub fn from_variables(
    variables: impl IntoIterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let variables = variables.into_iter();
    variables
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect()
}

/// The configuration of `text`, with the values of `instead` in place of its own.
pub(crate) fn parse_with_overrides<C: DeserializeOwned>(
    text: &str,
    instead: &BTreeMap<String, String>,
) -> Result<C, ConfigError> {
    let table = DeTable::parse(text)?;
    apply_overrides(table, instead).or_else(|error| {
        // An error in the text itself is reported with its line.
        toml::from_str::<C>(text)?;
        Err(error)
    })
}

/// The configuration of `table`, with the values of `instead` in place of its own.
pub(crate) fn apply_overrides<C: DeserializeOwned>(
    table: Spanned<DeTable<'_>>,
    instead: &BTreeMap<String, String>,
) -> Result<C, ConfigError> {
    let documents: Vec<String> = instead.values().map(|value| document_of(value)).collect();
    let mut table = table; // borrows from the documents too
    for ((name, value), document) in instead.iter().zip(&documents) {
        let wrong = |reason: String| ConfigError::Environment {
            name: name.clone(),
            reason,
        };
        let path = name.strip_prefix(PREFIX).unwrap_or(name).to_lowercase();
        set_key(table.get_mut(), &path, parse_value(value, document)).map_err(wrong)?;
    }
    // The deserializer of `toml::from_str`: each other one makes the program 0.4 MB larger.
    C::deserialize(Deserializer::from(table)).map_err(|error| {
        let names: Vec<&str> = instead.keys().map(String::as_str).collect();
        ConfigError::Environment {
            name: names.join(", "),
            reason: describe_error(&redact_error(error.message())),
        }
    })
}

fn set_key<'v>(table: &mut DeTable<'v>, path: &str, value: DeValue<'v>) -> Result<(), String> {
    let (first, rest) = match path.split_once(SEPARATOR) {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    let key = unspanned(Cow::Owned(first.to_owned()));
    let Some(rest) = rest else {
        table.insert(key, unspanned(value));
        return Ok(());
    };
    let inner = table
        .entry(key)
        .or_insert_with(|| unspanned(DeValue::Table(DeTable::new())));
    match inner.get_mut() {
        DeValue::Table(inner) => set_key(inner, rest, value),
        other => Err(format!(
            "{first} is of type {}, expected a table",
            other.type_str()
        )),
    }
}

/// A document with `value` as its only value.
fn document_of(value: &str) -> String {
    format!("value = {value}")
}

/// Parses `document`, which is that of `value`. If it is not one TOML value, or one that no key has, returns `value` as a string.
fn parse_value<'v>(value: &'v str, document: &'v str) -> DeValue<'v> {
    let mut values = DeTable::parse(document)
        .map(|table| table.into_inner().into_iter())
        .into_iter()
        .flatten();
    match (values.next(), values.next()) {
        (Some((_, parsed)), None) if may_be_of_key(parsed.get_ref()) => parsed.into_inner(),
        _ => text(value),
    }
}

/// False for dates, and for numbers that fit no key.
fn may_be_of_key(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Datetime(_) => false,
        DeValue::Integer(number) => {
            let (digits, radix) = (number.as_str(), number.radix());
            i64::from_str_radix(digits, radix).is_ok() || u64::from_str_radix(digits, radix).is_ok()
        }
        DeValue::Float(number) => number.as_str().parse().is_ok_and(f64::is_finite),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const SITE: &str = "[[site]]\nnames = ['a.test']\norigin = 'https://b.test'\n";

    fn read(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let variables = variables.iter();
        let variables =
            variables.map(|(name, value)| (format!("{PREFIX}{name}"), (*value).to_owned()));
        Config::parse_with_env(text, &from_variables(variables)).map_err(|error| error.to_string())
    }

    #[test]
    fn unparsable_variable_error_names_expected_value() {
        for (text, expected) in [
            ("[listen]\nplain = ['localhost:80']\n", "127.0.0.1:8443"),
            ("[cache]\nmemory_mib = '64MB'\n", "expected a whole number"),
            (
                "[listen]\ntrusted = ['10.0.0.1', 'proxy.test']\n",
                "listen.trusted: expected addresses and ranges, such as 10.0.0.0/8, found \"proxy.test\"",
            ),
            (
                "[[site]]\nnames = ['b.test']\norigin = '127.0.0.1:80'\n",
                "http:// or https://",
            ),
        ] {
            let error = read(&format!("{text}{SITE}"), &[]).expect_err("invalid configuration");
            assert!(error.contains(expected), "{error}");
        }
        let error = read(SITE, &[("LISTEN__TLS", "['[::]']")]).expect_err("invalid configuration");
        assert!(error.contains("127.0.0.1:8443"), "{error}");
    }

    #[test]
    fn variable_overrides_key_and_creates_missing_tables() {
        let text = format!("secret_file = '/file'\n[cache]\nmemory_mib = 64\n{SITE}");
        let config = read(
            &text,
            &[
                ("SECRET_FILE", "/run/secrets/spdy"),
                ("CACHE__DISK", "/var/cache/spdy"),
                ("CACHE__DISK_MIB", "100"),
                ("LISTEN__TLS", r#"["0.0.0.0:443", "[::]:443"]"#),
                ("LEARN__PUSH", "false"),
                ("ADMIN__ADDRESS", "127.0.0.1:9180"),
                ("ADMIN__TOKEN_FILE", "/run/secrets/token"),
            ],
        )
        .unwrap();
        let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
        assert_eq!(path(&config.secret_file.unwrap()), "/run/secrets/spdy");
        assert_eq!(path(&config.cache.disk.unwrap()), "/var/cache/spdy");
        assert_eq!((config.cache.memory_mib, config.cache.disk_mib), (64, 100));
        assert_eq!(config.listen.tls().len(), 2);
        assert!(!config.learn.push && config.learn.prefetch);
        assert_eq!(
            path(&config.admin.unwrap().token_file),
            "/run/secrets/token"
        );
    }

    #[test]
    fn variable_overrides_key_of_inline_and_dotted_tables() {
        for text in [
            "cache = { memory_mib = 64, disk_mib = 100 }\n",
            "cache.memory_mib = 64\ncache.disk_mib = 100\n",
        ] {
            let config = read(&format!("{text}{SITE}"), &[("CACHE__MEMORY_MIB", "65")]);
            let cache = config.expect("a valid configuration").cache;
            assert_eq!((cache.memory_mib, cache.disk_mib), (65, 100), "{text}");
        }
    }

    #[test]
    fn invalid_override_error_names_variable_or_line() {
        for (text, variable, expected) in [
            (
                SITE,
                ("COLOUR", "red"),
                "SPDY_ACCELERATE__COLOUR in the environment: unknown field `colour`",
            ),
            (
                SITE,
                ("CACHE__DISK_MIB", "much"),
                "SPDY_ACCELERATE__CACHE__DISK_MIB in the environment: invalid type: string",
            ),
            (
                SITE,
                ("SITE__ORIGIN", "https://c.test"),
                "SPDY_ACCELERATE__SITE__ORIGIN in the environment: site is of type array, expected a table",
            ),
            (
                SITE,
                ("CACHE__OBJECT_MIB", "999"),
                "cache.object_mib: expected no more than cache.memory_mib",
            ),
            (
                SITE,
                ("CACHE__IN_FLIGHT_MIB", "31"),
                "cache.in_flight_mib: expected no less than cache.object_mib, found 31",
            ),
            ("colour = 'red'", ("CACHE__DISK_MIB", "1"), "line 1"),
            ("[cache", ("CACHE__DISK_MIB", "1"), "line 1"),
        ] {
            let error = read(text, &[variable]).unwrap_err();
            assert!(error.contains(expected), "{variable:?}: {error}");
        }
    }

    #[test]
    fn value_is_parsed_as_toml_or_else_text() {
        for (value, is_text, meant_as) in [
            ("12", false, "12"),
            ("true", false, "true"),
            ("'12'", true, "12"),
            ("/a/b c", true, "/a/b c"),
            ("", true, ""),
            ("1\nother = 2", true, "1\nother = 2"),
            ("2026-11-30", true, "2026-11-30"),
            ("0x1F", false, "0x1F"),
            ("18446744073709551615", false, "18446744073709551615"),
            ("123456789012345678901", true, "123456789012345678901"),
            ("1.5", false, "1.5"),
            ("1e400", true, "1e400"),
            ("1 # comment", false, "1"),
            ("[1, 'a']", false, "array"),
            ("{ a = 1 }", false, "table"),
        ] {
            let found = match parse_value(value, &document_of(value)) {
                DeValue::String(text) => (true, text.into_owned()),
                DeValue::Integer(number) => (false, number.to_string()),
                DeValue::Boolean(is_set) => (false, is_set.to_string()),
                DeValue::Float(number) => (false, number.to_string()),
                other => (false, other.type_str().to_owned()),
            };
            assert_eq!(found, (is_text, meant_as.to_owned()), "{value:?}");
        }
    }

    #[test]
    fn origin_only_config_reads_keys_from_environment() {
        let origin = url::Url::parse("https://b.test/").unwrap();
        let of = |name: &str, value: &str| {
            let variable = (format!("{PREFIX}{name}"), value.to_owned());
            Config::for_origin(&origin, &from_variables([variable]))
        };
        let config = of("CACHE__MEMORY_MIB", "64").unwrap();
        assert_eq!(config.cache.memory_mib, 64);
        assert_eq!(config.site[0].names, ["b.test"]);
        assert_eq!(config.site[0].origin, origin);
        let error = of("COLOUR", "red").unwrap_err().to_string();
        assert!(error.contains("unknown field `colour`"), "{error}");
    }

    #[test]
    fn kubernetes_service_variables_are_ignored() {
        let others = [
            ("HOME", "/"),
            ("SPDY_LOG", "debug"),
            ("SPDY_ACCELERATE_PORT", "tcp://10.0.0.1:443"),
            ("SPDY_ACCELERATE_PORT_443_TCP_ADDR", "10.0.0.1"),
            ("SPDY_ACCELERATE_SERVICE_HOST", "10.0.0.1"),
            ("SPDY_ACCELERATE_SERVICE_PORT_HTTPS", "443"),
        ];
        let others = others.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert!(from_variables(others).is_empty());
    }
}
