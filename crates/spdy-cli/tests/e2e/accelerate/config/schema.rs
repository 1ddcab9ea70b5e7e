//! `spdy accelerate schema` compared with what the program accepts, and configuration keys from environment variables.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::accelerator::program::check_with;
use crate::support::program::{run_expecting, spdy};

/// The shipped example. Tests also check it with its commented keys enabled.
const EXAMPLE: &str = include_str!("../../../../../../deploy/accelerate.toml");

fn schema() -> Value {
    let output = run_expecting(0, &mut spdy(&["accelerate", "schema"]));
    serde_json::from_slice(&output.stdout).expect("valid JSON")
}

/// The first error of `value` by `schema`, with its path.
fn first_error(schema: &Value, value: &Value) -> Option<String> {
    let validator = jsonschema::draft202012::new(schema).expect("a valid schema");
    let error = validator.iter_errors(value).next()?;
    Some(format!("{}: {error}", error.instance_path()))
}

fn as_json(text: &str) -> Value {
    let table: toml::Table = toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    serde_json::to_value(table).expect("TOML is JSON")
}

/// `text` with its commented keys enabled.
fn enable_commented_keys(text: &str) -> String {
    let lines = text.lines().map(|line| match line.strip_prefix("# ") {
        Some(rest) if rest.starts_with('[') || rest.contains(" = ") => rest,
        _ => line,
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The exit code and stderr of `--check` for `text`, with these environment variables.
fn check(text: &str, variables: &[(&str, &str)]) -> (i32, String) {
    let mut command = spdy(&["accelerate", "--check"]);
    check_with(command.envs(variables.iter().copied()), text)
}

#[test]
fn the_shipped_example_and_its_comments_match_the_schema() {
    let schema = schema();
    for text in [EXAMPLE.to_owned(), enable_commented_keys(EXAMPLE)] {
        assert_eq!(first_error(&schema, &as_json(&text)), None, "{text}");
    }
}

/// All configuration keys, with their tables.
fn keys(schema: &Value) -> BTreeSet<String> {
    fn table<'a>(schema: &'a Value, of: &'a Value) -> Option<&'a Value> {
        if let Some(name) = of["$ref"].as_str().and_then(|name| name.strip_prefix("#/")) {
            let subschema = name.split('/').fold(schema, |at, step| &at[step]);
            return subschema.get("properties").map(|_| subschema);
        }
        let choices = of["anyOf"].as_array().into_iter().flatten();
        choices
            .chain(of.get("items"))
            .find_map(|of| table(schema, of))
    }
    fn add(schema: &Value, of: &Value, prefix: &str, keys: &mut BTreeSet<String>) {
        for (key, of) in of["properties"].as_object().expect("a table") {
            let key = format!("{prefix}{key}");
            // The same limits exist for all hosts of a site and for each host.
            if let Some(of) = table(schema, of).filter(|_| !key.ends_with("hosts.limits")) {
                add(schema, of, &format!("{key}."), keys);
            }
            keys.insert(key);
        }
    }
    let mut keys = BTreeSet::new();
    add(schema, schema, "", &mut keys);
    keys
}

/// The keys that the configuration `text` uses, in the same form.
fn used_keys(text: &Value, prefix: &str) -> BTreeSet<String> {
    match text {
        Value::Object(table) => {
            let of = |(key, value): (&String, &Value)| {
                let key = format!("{prefix}{key}");
                let mut keys = used_keys(value, &format!("{key}."));
                keys.insert(key);
                keys
            };
            table.iter().flat_map(of).collect()
        }
        Value::Array(all) => all
            .iter()
            .flat_map(|item| used_keys(item, prefix))
            .collect(),
        _ => BTreeSet::new(),
    }
}

#[test]
fn the_shipped_example_has_every_key() {
    let (all, example_keys) = (
        keys(&schema()),
        used_keys(&as_json(&enable_commented_keys(EXAMPLE)), ""),
    );
    assert!(all.len() > 100, "{all:?}");
    let missing: Vec<&String> = all.difference(&example_keys).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_configuration_in_the_nginx_guide_is_valid() {
    let page = include_str!("../../../../../../docs/how-to/migrate-from-nginx.md");
    let (_, page) = page
        .split_once("# Migrate from nginx\n")
        .expect("the migration page");
    let (_, block) = page.split_once("```toml\n").expect("an example");
    let (block, _) = block.split_once("```").expect("the end of the example");
    assert_eq!(first_error(&schema(), &as_json(block)), None, "{block}");
    let folder = tempfile::tempdir().expect("create a folder");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, [b's'; 32]).expect("write the file");
    // Files that do not exist on a test machine.
    let lines = block.lines().filter(|line| !line.contains("/etc/ssl/"));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    let text = text.replace("/etc/spdy/secret", &secret.display().to_string());
    let (code, message) = check(&text, &[]);
    assert_eq!(code, 0, "{message}");
    assert!(
        message.contains("good: example.com, www.example.com"),
        "{message}"
    );
}

#[test]
fn schema_and_program_accept_the_same_configurations() {
    let schema = schema();
    let site = "[[site]]\nnames = ['a.test']\norigin = 'https://b.test'\n";
    let host = "[[site.rewrite.hosts]]\nhost = 'c.test'\n";
    for (text, expected_error) in [
        (site.to_owned(), None),
        (
            format!("{site}keep_host = true\n{host}kinds = ['image', 'script']\n"),
            None,
        ),
        (format!("{site}[site.rewrite]\nreferrer = 'none'\n"), None),
        (
            format!("[upstream]\nresolve = {{ 'd.test' = '192.0.2.1' }}\n{site}"),
            None,
        ),
        (
            format!("colour = 'red'\n{site}"),
            Some(": Additional properties are not allowed ('colour'"),
        ),
        (
            format!("{site}colour = 'red'\n"),
            Some("/site/0: Additional properties are not allowed ('colour'"),
        ),
        (
            format!("{site}{host}kinds = ['page']\n"),
            Some("/site/0/rewrite/hosts/0/kinds"),
        ),
        (
            format!("{site}{host}scheme = 'ftp'\n"),
            Some("/site/0/rewrite/hosts/0/scheme"),
        ),
        (
            format!("{site}[site.rewrite]\nreferrer = 'all'\n"),
            Some("/site/0/rewrite/referrer"),
        ),
        (
            "[[site]]\nnames = ['a.test']\n".to_owned(),
            Some("/site/0: \"origin\" is a required property"),
        ),
        (
            "[[site]]\nnames = 'a.test'\norigin = 'https://b.test'\n".to_owned(),
            Some("/site/0/names"),
        ),
        (
            format!("[cache]\nmemory_mib = 'all'\n{site}"),
            Some("/cache/memory_mib"),
        ),
        (
            format!("[cache]\nmemory_mib = -1\n{site}"),
            Some("/cache/memory_mib"),
        ),
        (
            format!("[listen]\npublic_port = 70000\n{site}"),
            Some("/listen/public_port"),
        ),
        (
            format!("[admin]\naddress = '127.0.0.1:1'\n{site}"),
            Some("/admin"),
        ),
        (
            format!("[upstream]\nresolve = {{ 'd.test' = 1 }}\n{site}"),
            Some("/upstream/resolve/d.test"),
        ),
    ] {
        let error = first_error(&schema, &as_json(&text));
        let (code, message) = check(&text, &[]);
        match expected_error {
            None => assert_eq!((error, code), (None, 0), "{text}\n{message}"),
            Some(expected) => {
                let error = error.unwrap_or_else(|| panic!("the schema accepts:\n{text}"));
                assert!(error.starts_with(expected), "{error}\n{text}");
                assert_eq!(code, 2, "{text}\n{message}");
            }
        }
    }
}

#[test]
fn environment_variables_set_configuration_keys() {
    let site = "[[site]]\nnames = ['a.test']\norigin = 'https://b.test'\n";
    let disk = ("SPDY_ACCELERATE__CACHE__DISK", "/var/cache/spdy");
    let (code, message) = check(site, &[disk]);
    assert_eq!(code, 2, "{message}");
    assert!(
        message.contains("cache.disk: expected secret_file"),
        "{message}"
    );
    let folder = tempfile::tempdir().expect("create a folder");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, [b's'; 32]).expect("write the file");
    let secret = (
        "SPDY_ACCELERATE__SECRET_FILE",
        secret.to_str().expect("UTF-8"),
    );
    assert_eq!(
        check(site, &[disk, secret]),
        (0, "good: a.test\n".to_owned())
    );
    let service = ("SPDY_ACCELERATE_SERVICE_HOST", "10.0.0.1");
    assert_eq!(check(site, &[service]), (0, "good: a.test\n".to_owned()));
    let mut command = spdy(&["accelerate", "--check", "--origin", "https://b.test"]);
    run_expecting(2, command.envs([disk]));
    run_expecting(0, command.envs([disk, secret]));
    let (code, message) = check(site, &[("SPDY_ACCELERATE__COLOUR", "red")]);
    assert_eq!(code, 2, "{message}");
    assert!(
        message.contains("SPDY_ACCELERATE__COLOUR in the environment"),
        "{message}"
    );
}
