//! Validates what commands print with `--json` by the schemas in `docs/reference/json`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use jsonschema::Validator;
use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json");

/// Keywords whose value has schemas for the same instance: one of them alone does not know all of its fields.
const IN_PLACE: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Validates the output of `command` if it is `spdy` with `--json`.
///
/// # Panics
///
/// If a line is invalid by the schema of the command, or has a field that is not in it.
pub(crate) fn check_json_output(command: &Command, output: &Output) {
    let is_shape = command.get_args().any(|argument| argument == "shape");
    let bytes = match is_shape {
        // stdout belongs to the program behind the link.
        true => &output.stderr,
        false => &output.stdout,
    };
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines();
    check_json_lines(
        command,
        lines.filter(|line| !is_shape || line.starts_with('{')),
    );
}

/// Validates lines that `command` printed, if it is `spdy` with `--json`.
///
/// # Panics
///
/// As [`check_json_output`].
pub(crate) fn check_json_lines<'a>(command: &Command, lines: impl IntoIterator<Item = &'a str>) {
    let errors = json_errors(command, lines);
    assert!(errors.is_empty(), "{command:?}: {}", errors.join("\n"));
}

/// The errors of lines that `command` printed, if it is `spdy` with `--json`.
pub(crate) fn json_errors<'a>(
    command: &Command,
    lines: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    let Some(schema) = schema_path(command) else {
        return Vec::new();
    };
    let validator = validator(&schema);
    let of_line = |line: &str| {
        let value: Value = match serde_json::from_str(line) {
            Ok(value) => value,
            Err(error) => return vec![format!("{error}: {line:?}")],
        };
        let errors = validator.iter_errors(&value);
        let errors = errors.map(|error| format!("{}: {error}, in {line}", error.instance_path()));
        errors.collect()
    };
    lines.into_iter().flat_map(of_line).collect()
}

/// The schema of the JSON that `command` prints; `None` if it prints none.
fn schema_path(command: &Command) -> Option<PathBuf> {
    // Another program may start `spdy`.
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    let mut words = words.skip_while(|word| Path::new(word).file_name() != Some("spdy".as_ref()));
    words.next()?;
    let arguments: Vec<_> = words.filter_map(OsStr::to_str).collect();
    let mut names = arguments.iter().filter(|word| !word.starts_with('-'));
    let (first, second) = (names.next()?, names.next().copied().unwrap_or_default());
    let file = |name: &str| Path::new(FOLDER).join(format!("{name}.schema.json"));
    let of_subcommand = file(&format!("{first}-{second}"));
    let path = match of_subcommand.is_file() {
        true => of_subcommand,
        false => file(first),
    };
    let is_json = arguments.contains(&"--json") && !arguments.contains(&"--help");
    is_json.then_some(path)
}

fn validator(path: &Path) -> Validator {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let mut schema = serde_json::from_str(&text).expect("a schema is JSON");
    jsonschema::meta::validate(&schema).expect("a valid schema");
    refuse_unknown_fields(&mut schema);
    jsonschema::draft202012::new(&schema).expect("a valid schema")
}

/// Makes `schema`, and each schema of a part of the instance, refuse fields that it does not list.
fn refuse_unknown_fields(schema: &mut Value) {
    let Value::Object(keywords) = schema else {
        return;
    };
    keywords.insert("unevaluatedProperties".to_owned(), false.into());
    refuse_in_parts(schema);
}

/// Does so for the parts only, because other schemas also apply to the instance of `schema`.
fn refuse_in_parts(schema: &mut Value) {
    let keywords = schema.as_object_mut().into_iter().flatten();
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(schemas)) => {
                schemas.values_mut().for_each(refuse_unknown_fields);
            }
            ("$defs", Value::Object(schemas)) => schemas.values_mut().for_each(refuse_in_parts),
            ("prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(refuse_unknown_fields);
            }
            ("items" | "additionalProperties", schema) => refuse_unknown_fields(schema),
            (keyword, Value::Array(schemas)) if IN_PLACE.contains(&keyword) => {
                schemas.iter_mut().for_each(refuse_in_parts);
            }
            _ => {}
        }
    }
}
