//! Sites in files of their own (`include`). This module parses their text; the program finds and reads them.

use std::path::PathBuf;

use serde::Deserialize;

use crate::config::error::ConfigError;
use crate::config::site::SiteConfig;

/// A file that `include` names, as it was read.
#[derive(Clone, Debug)]
pub struct SiteFile {
    /// Its path, for errors.
    pub path: PathBuf,
    /// Its text, which may contain only `[[site]]` tables.
    pub text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SiteTables {
    #[serde(default)]
    site: Vec<SiteConfig>,
}

impl SiteFile {
    /// Its sites, which are not checked yet.
    pub(crate) fn sites(self) -> Result<Vec<SiteConfig>, ConfigError> {
        let Self { path, text } = self;
        let tables: SiteTables = match toml::from_str(&text) {
            Ok(tables) => tables,
            Err(error) => return Err(ConfigError::from(error).in_file(&path)),
        };
        let mut sites = tables.site;
        for site in &mut sites {
            site.file = Some(path.clone());
        }
        Ok(sites)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::Config;

    const MAIN: &str =
        "include = ['a', 'b']\n[[site]]\nnames = ['main.test']\norigin = 'http://o.test'\n";
    const SITE: &str = "[[site]]\nnames = ['a.test']\norigin = 'http://o.test'\n";

    fn parse(files: &[(&str, &str)]) -> Result<Config, ConfigError> {
        Config::parse_with_includes(MAIN, &BTreeMap::new(), |patterns| {
            assert_eq!(patterns, ["a", "b"]);
            let file = |(path, text): &(&str, &str)| SiteFile {
                path: PathBuf::from(path),
                text: (*text).to_owned(),
            };
            Ok(files.iter().map(file).collect())
        })
    }

    #[test]
    fn sites_of_files_follow_those_of_the_main_file() {
        let other = SITE.replace("a.test", "b.test");
        let config = parse(&[("a", SITE), ("empty", "# nothing\n"), ("b", &other)]);
        let config = config.expect("a valid configuration");
        let names = config.site.iter().map(|site| site.names[0].as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["main.test", "a.test", "b.test"]);
    }

    #[test]
    fn an_error_names_the_file_and_the_key() {
        for (text, expected) in [
            (
                "[cache]\nmemory_mib = 1\n".to_owned(),
                "unknown field `cache`",
            ),
            (
                format!("include = ['c']\n{SITE}"),
                "only [[site]] tables in a file of `include`",
            ),
            ("[[site]\n".to_owned(), "line 1"),
            (format!("{SITE}colour = 'red'\n"), "unknown field `colour`"),
            (
                SITE.replace("a.test", "A.test"),
                "site.names: expected a complete hostname",
            ),
            (
                SITE.replace("a.test", "main.test"),
                "site.names: expected each name in one site only, found \"main.test\"",
            ),
            (format!("{SITE}cache_mib = 0\n"), "site.cache_mib: expected"),
        ] {
            let error = parse(&[("fine", ""), ("sites/a.toml", &text)]).expect_err("a fault");
            let error = error.to_string();
            assert!(error.starts_with("sites/a.toml: "), "{error}");
            assert!(error.contains(expected), "{error}");
        }
    }
}
