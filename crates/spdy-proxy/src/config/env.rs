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

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::config::error::{ConfigError, describe_error};
use crate::config::shared_cache::redact_error;

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
    let table: Table = toml::from_str(text)?;
    apply_overrides(table, instead).or_else(|error| {
        // An error in the text itself is reported with its line.
        toml::from_str::<C>(text)?;
        Err(error)
    })
}

/// The configuration of `table`, with the values of `instead` in place of its own.
pub(crate) fn apply_overrides<C: DeserializeOwned>(
    mut table: Table,
    instead: &BTreeMap<String, String>,
) -> Result<C, ConfigError> {
    for (name, value) in instead {
        let wrong = |reason: String| ConfigError::Environment {
            name: name.clone(),
            reason,
        };
        let path = name.strip_prefix(PREFIX).unwrap_or(name).to_lowercase();
        set_key(&mut table, &path, parse_value(value)).map_err(wrong)?;
    }
    C::deserialize(table).map_err(|error| {
        let names: Vec<&str> = instead.keys().map(String::as_str).collect();
        ConfigError::Environment {
            name: names.join(", "),
            reason: describe_error(&redact_error(error.message())),
        }
    })
}

fn set_key(table: &mut Table, path: &str, value: Value) -> Result<(), String> {
    let Some((first, rest)) = path.split_once(SEPARATOR) else {
        table.insert(path.to_owned(), value);
        return Ok(());
    };
    let inner = table
        .entry(first)
        .or_insert_with(|| Value::Table(Table::new()));
    match inner {
        Value::Table(inner) => set_key(inner, rest, value),
        other => Err(format!(
            "{first} is of type {}, expected a table",
            other.type_str()
        )),
    }
}

/// Parses a value as TOML, or returns it as a string.
fn parse_value(value: &str) -> Value {
    let text = || Value::String(value.to_owned());
    let table: Result<Table, _> = toml::from_str(&format!("value = {value}"));
    match table {
        Ok(mut table) if table.len() == 1 => table.remove("value").unwrap_or_else(text),
        _ => text(),
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
        for (value, meant_as) in [
            ("12", Value::Integer(12)),
            ("true", Value::Boolean(true)),
            ("'12'", Value::String("12".to_owned())),
            ("/a/b c", Value::String("/a/b c".to_owned())),
            ("", Value::String(String::new())),
            ("1\nother = 2", Value::String("1\nother = 2".to_owned())),
        ] {
            assert_eq!(parse_value(value), meant_as, "{value:?}");
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
