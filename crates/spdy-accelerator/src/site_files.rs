//! Reads the files that `include` of the configuration names.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;
use spdy_proxy::config::site_files::SiteFile;
use spdy_service::error::Usage;

/// The files of `patterns`, which are relative to `folder`: those of each pattern in the order of their names, and each file once.
pub(crate) fn read(folder: &Path, patterns: &[String]) -> anyhow::Result<Vec<SiteFile>> {
    let mut files = Vec::new();
    let mut used = BTreeSet::new();
    for pattern in patterns {
        for path in paths(folder, pattern)? {
            if !used.insert(path.clone()) {
                continue;
            }
            let text = fs::read_to_string(&path);
            let text = text.with_context(|| format!("include: cannot read {}", path.display()))?;
            files.push(SiteFile { path, text });
        }
    }
    Ok(files)
}

/// The paths that match `pattern`. A pattern without `*` is a path itself, whether or not there is such a file.
fn paths(folder: &Path, pattern: &str) -> anyhow::Result<BTreeSet<PathBuf>> {
    let path = folder.join(pattern);
    let (Some(above), Some(name)) = (
        path.parent(),
        path.file_name().and_then(|name| name.to_str()),
    ) else {
        return Err(invalid(pattern));
    };
    let parts = Path::new(pattern).parent().into_iter().flatten();
    if parts
        .map(|part| part.to_string_lossy())
        .any(|part| part.contains('*'))
    {
        return Err(invalid(pattern));
    }
    if !name.contains('*') {
        return Ok(BTreeSet::from([path]));
    }
    let entries = match fs::read_dir(above) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries.with_context(|| format!("include: cannot list {}", above.display()))?,
    };
    let mut paths = BTreeSet::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("include: cannot list {}", above.display()))?;
        let is_match = entry
            .file_name()
            .to_str()
            .is_some_and(|found| matches(name, found));
        if is_match && entry.path().is_file() {
            paths.insert(entry.path());
        }
    }
    Ok(paths)
}

fn invalid(pattern: &str) -> anyhow::Error {
    let expected = "the path of a file, with * only in its last part";
    Usage(format!("include: expected {expected}, found {pattern:?}")).into()
}

/// Whether the file name `found` matches `pattern`. Hidden files match only a pattern that begins with a dot, as in shells.
fn matches(pattern: &str, found: &str) -> bool {
    if found.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = found.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, found, expected) in [
            ("*.toml", "a.toml", true),
            ("*.toml", ".toml", false),
            ("*.toml", ".#a.toml", false),
            (".*", ".a", true),
            ("*.toml", "a.toml~", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXcYb", false),
            ("a*a", "a", false),
            ("*", "a", true),
            ("a**b", "ab", true),
        ] {
            assert_eq!(matches(pattern, found), expected, "{pattern} {found}");
        }
    }

    #[test]
    fn files_are_read_once_and_in_order() {
        let folder = tempfile::tempdir().expect("create a folder");
        let sites = folder.path().join("sites");
        fs::create_dir_all(sites.join("folder.toml")).expect("create a folder");
        for name in ["b.toml", "a.toml", "c.txt"] {
            fs::write(sites.join(name), name).expect("write the file");
        }
        let read = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|it| (*it).to_owned()).collect();
            let files = read(folder.path(), &patterns).map_err(|error| format!("{error:#}"))?;
            Ok::<_, String>(files.into_iter().map(|file| file.text).collect::<Vec<_>>())
        };
        let both = ["a.toml", "b.toml"].map(str::to_owned).to_vec();
        assert_eq!(read(&["sites/*.toml"]), Ok(both));
        let all = ["c.txt", "a.toml", "b.toml"].map(str::to_owned).to_vec();
        assert_eq!(read(&["sites/c.txt", "sites/*", "sites/a.toml"]), Ok(all));
        assert_eq!(read(&["nothing/*.toml", "sites/*.conf"]), Ok(Vec::new()));
        for (pattern, expected) in [
            ("sites/missing.toml", "include: cannot read "),
            ("sites*/a.toml", "* only in its last part"),
            ("sites/..", "* only in its last part"),
        ] {
            let error = read(&[pattern]).expect_err("an error");
            assert!(error.contains(expected), "{error}");
        }
    }
}
