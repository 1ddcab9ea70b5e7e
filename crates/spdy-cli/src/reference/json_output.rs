//! The JSON Schemas of `--json`: a file for each command that has the option.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use spdy_accelerator::access_log::json::AccessLogLine;
use spdy_lab::claims::ClaimResult;
use spdy_lab::doctor::examination::Examination;
use spdy_lab::store::compare::StoreComparison;
use spdy_lab::store::row::Row;
use spdy_lab::store::summary::CellSummary;
use spdy_sim::load::Load;

use super::pages::Page;
use crate::commands::accelerate::audit::command::AuditOutput;
use crate::commands::accelerate::check::CheckOutput;
use crate::commands::accelerate::ready::ReadyOutput;
use crate::commands::bench::report::BenchSummary;
use crate::commands::fetch::result::FetchResult;
use crate::commands::inspect::inspect_event::InspectEvent;
use crate::commands::lab::browse::series::Series;
use crate::commands::lab::browse::visit_series::VisitSeries;
use crate::commands::lab::calibrate::command::Calibration;
use crate::commands::lab::calibrate::link::LinkReport;
use crate::commands::lab::calibrate::pages::PageCalibration;
use crate::commands::lab::report::view;
use crate::commands::lab::run::cell::StoreReport;
use crate::commands::lab::run::cells::CellLine;
use crate::commands::lab::shape::ShapeReport;
use crate::commands::lab::store::merge::MergeLine;
use crate::commands::record::report::RecordReport;
use crate::commands::replica::check::FindingLine;
use crate::commands::replica::command::ImportReport;
use crate::commands::replica::show::ReplicaReport;
use crate::commands::serve;

/// The output of a command with `--json`.
pub(super) struct JsonOutput {
    /// The command, without `spdy`.
    command: &'static str,
    /// What it prints, as in the table of `docs/reference/json-output.md`.
    prints: &'static str,
    /// The version of the schema. Removing or renaming a field, or another meaning, type or unit of one, increments it; a new field
    /// does not.
    version: u32,
    schema: fn() -> Schema,
}

/// The commands with `--json`, in the order of the page.
pub(super) const OUTPUTS: [JsonOutput; 23] = [
    output::<RaceLine>(
        "race",
        "a line for each load; with `--doctor`, then a line for each page and network",
    ),
    output::<Examination>("doctor", "a line for each network"),
    output::<serve::command::Ready<'_>>("serve", "a line when it is ready"),
    output::<FetchResult>("fetch", "a line for each URL and each unclaimed push"),
    output::<AccelerateLine>(
        "accelerate",
        "a line when it is ready; with `--verbose`, then a line for each response; with `--check`, only one line",
    ),
    output::<AuditOutput<'_>>("accelerate audit", "one object"),
    output::<BenchSummary<'_>>("bench", "one object"),
    output::<InspectEvent>(
        "inspect",
        "a line for each frame, error and end of a session",
    ),
    output::<CellSummary>("lab run", "a line for each cell"),
    output::<CellSummary>("lab show", "a line for each cell"),
    output::<view::Ready>("lab view", "a line when it is ready"),
    output::<StoreComparison>("lab compare", "one object"),
    output::<ClaimResult>("lab reproduce", "a line for each claim"),
    output::<CellLine>("lab cells", "a line for each cell"),
    output::<CellOutput>(
        "lab cell",
        "a line for each load; with `--store`, one object",
    ),
    output::<MergeLine>("lab merge", "a line for each part"),
    output::<CalibrateOutput>("lab calibrate", "one object"),
    output::<BrowseOutput>("lab browse", "one object"),
    output::<ShapeReport<'_>>("lab shape", "one object, on stderr"),
    output::<RecordReport>("record", "a line for each page"),
    output::<ImportReport<'_>>("replica import", "one object"),
    output::<ReplicaReport>("replica show", "one object"),
    output::<FindingLine<'_>>("replica check", "a line for each finding"),
];

/// An output in version 1 of its schema. A later one is `JsonOutput { version: 2, ..output::<T>(command, prints) }`.
const fn output<T: JsonSchema>(command: &'static str, prints: &'static str) -> JsonOutput {
    JsonOutput {
        command,
        prints,
        version: 1,
        schema: schema_of::<T>,
    }
}

/// A load, or what would make it faster.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum RaceLine {
    Load(Load),
    /// With `--doctor`.
    Examination(Examination),
}

/// The start of the accelerator, a response, or the result of a check.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum AccelerateLine {
    Ready(ReadyOutput<'static>),
    /// With `--verbose`.
    Response(AccessLogLine<'static>),
    /// With `--check`.
    Check(CheckOutput<'static>),
}

/// A load, or what was added to a store.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum CellOutput {
    Load(Row),
    /// With `--store`.
    Stored(StoreReport),
}

/// Virtual time compared with the kernel's TCP.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum CalibrateOutput {
    Downloads(Calibration),
    /// With `--pages`.
    Pages(PageCalibration),
    /// With `--link`.
    Link(LinkReport),
}

/// Loads in a browser, compared with virtual time.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum BrowseOutput {
    Page(Series),
    /// With several pages.
    Visit(VisitSeries),
}

/// The schema of `T` as it is serialised.
fn schema_of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}

/// The name of the schema's file for `command`; `None` if the command has no `--json`.
pub(super) fn file_of(command: &str) -> Option<String> {
    let mut outputs = OUTPUTS.iter();
    let found = outputs.any(|output| output.command == command);
    found.then(|| format!("{}.schema.json", command.replace(' ', "-")))
}

/// The file of each command.
pub(super) fn pages() -> Vec<Page> {
    OUTPUTS.iter().map(JsonOutput::page).collect()
}

impl JsonOutput {
    fn page(&self) -> Page {
        let mut schema = (self.schema)().to_value();
        edit(&mut schema, None);
        let (command, version) = (self.command, self.version);
        let name = command.replace(' ', "-");
        schema["$id"] =
            format!("https://github.com/spdy-rs/spdy/schemas/{name}-{version}.json").into();
        schema["title"] = format!("spdy {command} --json, version {version}").into();
        // Else the order depends on a feature of serde_json, which other crates enable.
        schema.sort_all_objects();
        let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
        Page {
            file: file_of(command).expect("the command is in the list"),
            text: text + "\n",
        }
    }

    /// Its row in the table of `docs/reference/json-output.md`.
    fn row(&self) -> String {
        let (command, prints, version) = (self.command, self.prints, self.version);
        let file = file_of(command).expect("the command is in the list");
        format!("| `spdy {command}` | {prints} | [schema](json/{file}) | {version} |")
    }
}

/// Makes plain text of the descriptions, which are comments of the code, and adds the unit that the name of the field has. Unknown
/// fields are allowed also in the types of the configuration, which refuses them.
fn edit(schema: &mut Value, field: Option<&str>) {
    match schema {
        Value::Object(keywords) => {
            if let Some(Value::String(text)) = keywords.get_mut("description") {
                *text = plain_text(text);
                let unit = field.and_then(unit_of);
                if let Some(unit) = unit.filter(|unit| !text.to_lowercase().contains(unit)) {
                    text.push_str(&format!(" Unit: {unit}."));
                }
            }
            let fields = keywords.get("properties").and_then(Value::as_object);
            if fields.is_some_and(|fields| fields.len() > 1) {
                keywords.remove("additionalProperties");
            }
            for (keyword, value) in keywords {
                match (keyword.as_str(), value) {
                    ("properties", Value::Object(fields)) => {
                        for (name, schema) in fields {
                            edit(schema, Some(name));
                        }
                    }
                    (_, value) => edit(value, None),
                }
            }
        }
        Value::Array(schemas) => {
            for schema in schemas {
                edit(schema, None);
            }
        }
        _ => {}
    }
}

/// The unit by the end of a field's name.
fn unit_of(field: &str) -> Option<&'static str> {
    let units = [
        ("_ms", "milliseconds"),
        ("_s", "seconds"),
        ("seconds", "seconds"),
        ("bytes", "bytes"),
        ("bytes_wire", "bytes"),
        ("_bps", "bits per second"),
        ("_permille", "parts per thousand"),
    ];
    let found = units.iter().find(|(end, _)| field.ends_with(end));
    found.map(|(_, unit)| *unit)
}

/// A comment as one line, without links: `[text](target)` and ``[`Type`]`` are only text.
fn plain_text(comment: &str) -> String {
    let mut text = String::new();
    let mut rest = comment;
    while let Some((before, link)) = rest.split_once('[') {
        text.push_str(before);
        let Some((name, after)) = link.split_once(']') else {
            break;
        };
        text.push_str(name);
        rest = after;
        if let Some(target) = after.strip_prefix('(')
            && let Some((_, after)) = target.split_once(')')
        {
            rest = after;
        }
    }
    text.push_str(rest);
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace("`None`", "`null`")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use clap::{Command, CommandFactory};

    use super::*;
    use crate::cli::Cli;

    /// The paths of the commands below `command` that have the option `--json`.
    fn commands_with_json(command: &Command, path: &str, found: &mut BTreeSet<String>) {
        for sub in command.get_subcommands() {
            let path = format!("{path} {}", sub.get_name()).trim().to_owned();
            let mut arguments = sub.get_arguments();
            if arguments.any(|argument| argument.get_long() == Some("json")) {
                found.insert(path.clone());
            }
            commands_with_json(sub, &path, found);
        }
    }

    #[test]
    fn every_command_with_json_has_a_schema_and_no_other_has() {
        let mut expected = BTreeSet::new();
        commands_with_json(&Cli::command(), "", &mut expected);
        let listed = OUTPUTS.iter().map(|output| output.command.to_owned());
        assert_eq!(listed.collect::<BTreeSet<_>>(), expected);
    }

    /// The paths of fields without a description.
    fn undocumented(schema: &Value, at: &str, found: &mut Vec<String>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let description = field["description"].as_str().unwrap_or_default();
            // The tag of an enum: a field with one value, or the only field, which the variant describes.
            let is_tag = field.get("const").is_some() || schema["additionalProperties"] == false;
            if description.is_empty() && !is_tag {
                found.push(format!("{at}.{name}"));
            }
        }
        let parts = schema.as_object().into_iter().flatten();
        let parts = parts.map(|(key, value)| (key.to_owned(), value));
        let items = schema.as_array().into_iter().flatten();
        let items = items
            .enumerate()
            .map(|(index, value)| (index.to_string(), value));
        for (key, value) in parts.chain(items) {
            undocumented(value, &format!("{at}/{key}"), found);
        }
    }

    #[test]
    fn every_field_has_a_description() {
        for output in &OUTPUTS {
            let page = output.page();
            let schema: Value = serde_json::from_str(&page.text).expect("a schema is JSON");
            let mut found = Vec::new();
            undocumented(&schema, "", &mut found);
            assert!(
                found.is_empty(),
                "{}: no description: {found:#?}",
                page.file
            );
        }
    }

    #[test]
    fn the_page_lists_every_schema() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/reference/json-output.md"
        );
        let page = fs::read_to_string(path).expect("the page can be read");
        let rows: Vec<_> = page
            .lines()
            .filter(|line| line.contains("(json/"))
            .collect();
        let expected: Vec<_> = OUTPUTS.iter().map(JsonOutput::row).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn links_of_comments_become_text() {
        let comment = "As [`Report::url`], [limits](crate::limits)\nof it; `None` if absent.";
        let text = "As `Report::url`, limits of it; `null` if absent.";
        assert_eq!(plain_text(comment), text);
    }
}
