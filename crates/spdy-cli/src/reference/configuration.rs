//! The pages of the accelerator's configuration, from the JSON Schema of its types.
//!
//! The schema has each key's description (the comment on the field), type, range and default. A description may also state the default
//! and the range, for readers of rustdoc, in sentences of their own: "Range: 1 to 10. Default 5." They go to columns of the table. Where
//! the schema has a default or a range, the two must agree.

use schemars::schema_for;
use serde_json::Value;
use spdy_proxy::config::Config;

use super::markdown::{cell, escape, table as markdown_table};
use super::pages::Page;

/// The pages: file, title, what is on it, and the tables, by the start of their path. The longest start is used.
const PAGES: [(&str, &str, &str, &[&str]); 7] = [
    (
        "clients",
        "Configuration: clients",
        "Listeners, limits of clients, and certificates.",
        &["listen", "limits", "tls"],
    ),
    (
        "cache",
        "Configuration: cache",
        "What is stored, where, and for how long; and what is sent before a client requests it.",
        &["cache", "learn"],
    ),
    (
        "origins",
        "Configuration: origins",
        "How origins are contacted, and WebSockets to them.",
        &["upstream", "websocket"],
    ),
    (
        "sites",
        "Configuration: sites",
        "The sites: their names, origins, and rules for paths.",
        &["site"],
    ),
    (
        "rewriting",
        "Configuration: rewriting",
        "The third-party hosts that are proxied under the names of a site.",
        &["site.rewrite"],
    ),
    (
        "dns",
        "Configuration: DNS",
        "The built-in name server, and the servers that look up third-party hosts.",
        &["dns"],
    ),
    (
        "operation",
        "Configuration: operation",
        "The operator's listener, the access log, timing headers and traces.",
        &["admin", "access_log", "timing", "telemetry"],
    ),
];

/// Where a table is explained: title and page.
const EXPLAINED: [(&str, &[(&str, &str)]); 19] = [
    (
        "listen",
        &[("Run behind a balancer", "how-to/behind-a-balancer.md")],
    ),
    (
        "limits",
        &[(
            "Limits of the accelerator",
            "reference/limits-accelerator.md",
        )],
    ),
    ("tls", &[("Certificates", "how-to/certificates.md")]),
    (
        "tls.acme",
        &[("ACME certificates", "how-to/acme-certificates.md")],
    ),
    (
        "cache",
        &[
            ("What is cached", "explanation/what-is-cached.md"),
            ("Memory and bodies", "explanation/memory-and-bodies.md"),
            ("Request coalescing", "explanation/request-coalescing.md"),
        ],
    ),
    (
        "cache.shared",
        &[("Share a cache", "how-to/share-a-cache.md")],
    ),
    (
        "learn",
        &[
            ("Prefetching", "explanation/prefetching.md"),
            (
                "Learned hints and pushes",
                "explanation/learned-hints-and-pushes.md",
            ),
        ],
    ),
    (
        "upstream",
        &[
            (
                "Origins and failures",
                "explanation/origins-and-failures.md",
            ),
            ("Origin addresses", "explanation/origin-addresses.md"),
        ],
    ),
    ("websocket", &[("WebSockets", "explanation/websockets.md")]),
    (
        "site",
        &[("Content codings", "explanation/content-codings.md")],
    ),
    (
        "site.servers",
        &[("Balance several servers", "how-to/balance-servers.md")],
    ),
    (
        "site.health",
        &[("Balance several servers", "how-to/balance-servers.md")],
    ),
    (
        "site.paths",
        &[("Set rules for paths", "how-to/set-rules-for-paths.md")],
    ),
    (
        "site.rewrite",
        &[(
            "How a page is rewritten",
            "explanation/how-a-page-is-rewritten.md",
        )],
    ),
    (
        "site.rewrite.hosts",
        &[
            (
                "Proxy third-party hosts",
                "how-to/proxy-third-party-hosts.md",
            ),
            ("Names for listed hosts", "how-to/names-for-listed-hosts.md"),
        ],
    ),
    ("admin", &[("Monitor the accelerator", "how-to/monitor.md")]),
    (
        "access_log",
        &[("Trace and log", "how-to/trace-and-log.md")],
    ),
    ("telemetry", &[("Trace and log", "how-to/trace-and-log.md")]),
    (
        "dns",
        &[("Names for listed hosts", "how-to/names-for-listed-hosts.md")],
    ),
];

const INTRODUCTION: &str = "\
This is the reference of the configuration of `spdy accelerate`, a TOML file.

- [deploy/accelerate.toml](https://github.com/spdy-rs/spdy/blob/HEAD/deploy/accelerate.toml) is an example with every key.
- `spdy accelerate --check FILE` checks a file, and `spdy accelerate schema` prints the [JSON Schema](configuration.schema.json).
- Keys can also be set [from the environment](../../how-to/run-as-a-service.md#set-keys-from-the-environment).
- Some keys change on a [reload](../../how-to/reload-and-upgrade.md#reload-the-configuration-sighup), others with a restart.

The name of a key has its unit: `_s` is seconds, `_ms` milliseconds, `_kib` KiB, `_mib` MiB. An unknown key is an error. \
A *client* in limits is an IPv4 address or a /56 of IPv6, unless stated otherwise. A missing table has its defaults, except where \
the description says that it is optional.";

/// A table of the configuration.
#[derive(Clone)]
struct Table<'a> {
    /// As `site.rewrite.hosts`.
    path: String,
    /// Whether it may be there several times, as `[[site]]`, for it and each table above it.
    is_list: bool,
    description: String,
    schema: &'a Value,
}

/// A page for each group of tables, the overview, and the schema.
pub(super) fn pages() -> Vec<Page> {
    let schema = serde_json::to_value(schema_for!(Config));
    let mut schema = schema.expect("the schema is valid JSON");
    // Else the order depends on a feature of serde_json, which other crates enable.
    schema.sort_all_objects();
    let mut text = serde_json::to_string_pretty(&schema).expect("the schema is valid JSON");
    text.push('\n');
    let mut pages = vec![Page {
        file: "configuration.schema.json".to_owned(),
        text,
    }];
    let schema = Schema { root: &schema };
    let mut tables = Vec::new();
    schema.add_tables(&schema.top(), &mut tables);
    let mut overview = format!(
        "# Accelerator configuration\n\n{INTRODUCTION}\n\n## Top level\n\n{}\n## Tables\n\n",
        schema.keys(schema.root, "", &[])
    );
    let mut rows = Vec::new();
    for (file, title, introduction, keys) in PAGES {
        let mut text = format!(
            "# {title}\n\n{introduction} The [configuration](README.md) has more tables, and says how to check a file.\n"
        );
        let mut is_empty = true;
        for key in keys {
            let is_on_page = |table: &&Table<'_>| page_key(&table.path) == Some(key);
            for table in tables.iter().filter(is_on_page) {
                is_empty = false;
                text.push_str(&schema.section(table, &tables));
                let link = format!("[`{}`]({file}.md#{})", heading(table), anchor(&table.path));
                rows.push([link, cell(&table.description)]);
            }
        }
        if !is_empty {
            pages.push(Page::new(&format!("{file}.md"), &text));
        }
    }
    let mut tables = tables.iter();
    if let Some(table) = tables.find(|table| page_key(&table.path).is_none()) {
        panic!("table [{}] is on no page: add it to PAGES", table.path);
    }
    overview.push_str(&markdown_table(["table", "content"], &rows));
    pages.push(Page::new("README.md", &overview));
    pages
}

/// The key of [`PAGES`] by which the table `path` has its page.
fn page_key(path: &str) -> Option<&'static str> {
    let keys = PAGES.iter().flat_map(|(_, _, _, keys)| *keys).copied();
    let is_start = |key: &&str| {
        let rest = path.strip_prefix(key);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    keys.filter(is_start).max_by_key(|key| key.len())
}

fn heading(table: &Table<'_>) -> String {
    match table.is_list {
        true => format!("[[{}]]", table.path),
        false => format!("[{}]", table.path),
    }
}

/// The anchor of the heading of the table `path`, as mdBook makes it.
fn anchor(path: &str) -> String {
    path.replace('.', "").to_lowercase()
}

struct Schema<'a> {
    root: &'a Value,
}

impl<'a> Schema<'a> {
    fn top(&self) -> Table<'a> {
        Table {
            path: String::new(),
            is_list: false,
            description: String::new(),
            schema: self.root,
        }
    }

    /// `schema`, or the definition that it refers to, alone or beside null.
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        if let Some(pointer) = schema["$ref"].as_str() {
            let pointer = pointer.trim_start_matches('#');
            return self
                .root
                .pointer(pointer)
                .expect("a reference names a definition of the schema");
        }
        let choices = schema["anyOf"].as_array().into_iter().flatten();
        let mut choices = choices.filter(|choice| choice["type"] != "null");
        choices.next().map_or(schema, |choice| self.resolve(choice))
    }

    /// The table that the key `schema` is, and whether it is a list of them.
    fn table(&self, schema: &'a Value) -> Option<(&'a Value, bool)> {
        let of = self.resolve(schema);
        let item = of.get("items").map(|item| self.resolve(item));
        let is_table = |schema: &&Value| schema.get("properties").is_some();
        match item {
            Some(item) => Some(item).filter(is_table).map(|item| (item, true)),
            None => Some(of).filter(is_table).map(|of| (of, false)),
        }
    }

    /// All tables below `above`, each after the tables that are one level higher. Limits of one host have the keys of the limits of all
    /// hosts, which are described once.
    fn add_tables(&self, above: &Table<'a>, tables: &mut Vec<Table<'a>>) {
        let mut below = Vec::new();
        for (key, of) in properties(above.schema) {
            let Some((schema, is_list)) = self.table(of) else {
                continue;
            };
            if tables
                .iter()
                .any(|table| std::ptr::eq(table.schema, schema))
            {
                continue;
            }
            let path = match above.path.as_str() {
                "" => key.clone(),
                above => format!("{above}.{key}"),
            };
            let table = Table {
                path,
                is_list,
                description: text(of).unwrap_or_default(),
                schema,
            };
            tables.push(table.clone());
            below.push(table);
        }
        for table in below {
            self.add_tables(&table, tables);
        }
    }

    fn section(&self, table: &Table<'a>, tables: &[Table<'a>]) -> String {
        let mut section = format!(
            "\n## `{}`\n\n{}",
            heading(table),
            escape(&table.description)
        );
        let explained = EXPLAINED.iter().find(|(path, _)| *path == table.path);
        if let Some((_, pages)) = explained {
            let links = pages
                .iter()
                .map(|(title, page)| format!("[{title}](../../{page})"));
            section.push_str(&format!(" See {}.", links.collect::<Vec<_>>().join(", ")));
        }
        section.push_str(&format!(
            "\n\n{}",
            self.keys(table.schema, &table.path, tables)
        ));
        for (key, of) in properties(table.schema) {
            let values = self.values(of);
            if values.iter().all(|(_, meaning)| meaning.is_some()) && !values.is_empty() {
                section.push_str(&format!("\nValues of `{key}`:\n\n"));
                let rows = values.into_iter().map(|(value, meaning)| {
                    [format!("`{value}`"), cell(&meaning.unwrap_or_default())]
                });
                let rows: Vec<_> = rows.collect();
                section.push_str(&markdown_table(["value", "meaning"], &rows));
            }
        }
        section
    }

    /// The keys of a table that are not tables, and those whose table is described elsewhere.
    fn keys(&self, schema: &'a Value, path: &str, tables: &[Table<'a>]) -> String {
        let required = schema["required"].as_array();
        let is_required = |key: &str| {
            let mut keys = required.into_iter().flatten();
            keys.any(|it| it == key)
        };
        let mut rows = Vec::new();
        for (key, of) in properties(schema) {
            let below = self.table(of);
            let existing_table = below.and_then(|(below, _)| {
                let mut tables = tables.iter();
                tables.find(|table| std::ptr::eq(table.schema, below))
            });
            let full = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            let (description, stated) = split_sentence(&text(of).unwrap_or_default(), "Default ");
            let (description, range) = split_sentence(&description, "Range: ");
            if below.is_some() {
                if let Some(table) = existing_table.filter(|table| table.path != full) {
                    let link = format!("as [`[{}]`](#{})", table.path, anchor(&table.path));
                    rows.push([format!("`{key}`"), link, String::new(), cell(&description)]);
                }
                continue;
            }
            let default = self.default_of(of, stated, &full);
            let default = if is_required(key) {
                "required".to_owned()
            } else {
                default
            };
            let kind = self.kind(of, key);
            if let Some(range) = range {
                assert!(
                    kind.ends_with(&range),
                    "the range of {full}: {kind}, and its comment"
                );
            }
            rows.push([
                format!("`{key}`"),
                cell(&kind),
                cell(&default),
                cell(&description),
            ]);
        }
        markdown_table(["key", "type", "default", "meaning"], &rows)
    }

    /// The default for the column, which is the schema's if it has one.
    fn default_of(&self, of: &Value, stated: Option<String>, key: &str) -> String {
        let default = match &of["default"] {
            Value::Null => None,
            Value::Array(all) if all.is_empty() => None,
            Value::Object(all) if all.is_empty() => None,
            Value::String(text) => Some(format!("`{text}`")),
            Value::Array(all) => {
                let all = all
                    .iter()
                    .map(|it| format!("`{}`", it.as_str().unwrap_or_default()));
                Some(all.collect::<Vec<_>>().join(", "))
            }
            other => Some(format!("`{other}`")),
        };
        match (default, stated) {
            (Some(default), Some(stated)) => {
                let plain = |text: &str| text.replace(['`', ','], "");
                assert_eq!(
                    plain(&default),
                    plain(&stated),
                    "the default of {key} and its comment"
                );
                default
            }
            (Some(default), None) => default,
            (None, Some(stated)) => stated,
            (None, None) => "none".to_owned(),
        }
    }

    /// The values of an enum, each with its meaning, as `oneOf` and `enum` have them.
    fn values(&self, of: &'a Value) -> Vec<(&'a str, Option<String>)> {
        let of = self.resolve(of);
        let of = of.get("items").map_or(of, |item| self.resolve(item));
        let choices = of["oneOf"].as_array().into_iter().flatten();
        let alone = of["enum"].as_array().into_iter().flatten();
        let choices = choices.filter_map(|it| Some((it["const"].as_str()?, text(it))));
        let alone = alone.filter_map(|it| Some((it.as_str()?, None)));
        choices.chain(alone).collect()
    }

    /// Type and range of a key.
    fn kind(&self, of: &'a Value, key: &str) -> String {
        let of = self.resolve(of);
        let values = self.values(of);
        if let Some(item) = of.get("items") {
            return match values.is_empty() {
                true => format!("list of {}", plural(&self.kind(item, ""))),
                false => "list of values".to_owned(),
            };
        }
        if !values.is_empty() {
            return "value".to_owned();
        }
        if let Some(item) = of.get("additionalProperties").filter(|it| it.is_object()) {
            return format!("table of {}", plural(&self.kind(item, "")));
        }
        match (&of["type"], of["format"].as_str()) {
            (_, Some("uri")) => "URL".to_owned(),
            (_, Some("ip")) => "IP address".to_owned(),
            (kind, _) => {
                let all = kind
                    .as_array()
                    .map_or(std::slice::from_ref(kind), Vec::as_slice);
                let mut all = all.iter().filter_map(Value::as_str);
                match all.find(|name| *name != "null") {
                    Some("integer" | "number") => number(of, key),
                    Some("boolean") => "boolean".to_owned(),
                    Some("string") => "string".to_owned(),
                    other => {
                        panic!("unknown type {other:?} of {key}: add its name to this function")
                    }
                }
            }
        }
    }
}

/// The plural of a type, without its range.
fn plural(kind: &str) -> String {
    let kind = kind.split(',').next().unwrap_or_default();
    let end = if kind.ends_with('s') { "es" } else { "s" };
    format!("{kind}{end}")
}

/// The unit of a number by the name of its key, and its range.
fn number(of: &Value, key: &str) -> String {
    let unit = match key.rsplit('_').next() {
        Some("s") => "seconds",
        Some("ms") => "milliseconds",
        Some("kib") => "KiB",
        Some("mib") => "MiB",
        Some("percent") => "percent",
        _ => "number",
    };
    let bound = |name: &str| of[name].as_f64();
    // The largest value of the type is no limit worth printing.
    let is_of_type = |most: &f64| [255.0, 4_294_967_295.0].contains(most);
    let most = bound("maximum").filter(|most| !is_of_type(most));
    match (bound("minimum"), most) {
        (Some(least), Some(most)) => format!("{unit}, {least} to {most}"),
        (Some(least), None) if least > 0.0 => format!("{unit}, at least {least}"),
        (_, Some(most)) => format!("{unit}, at most {most}"),
        (_, None) => unit.to_owned(),
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// The description on one line.
fn text(schema: &Value) -> Option<String> {
    let text = schema["description"].as_str()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The description without the sentence that begins with `start`, and what the sentence states.
fn split_sentence(text: &str, start: &str) -> (String, Option<String>) {
    let Some((before, rest)) = text.split_once(start) else {
        return (text.to_owned(), None);
    };
    let end = [". ", "; "].into_iter();
    let ends = end.filter_map(|end| rest.find(end).map(|at| (at, at + end.len())));
    let (stated, after) = match ends.min() {
        Some((at, next)) => (&rest[..at], &rest[next..]),
        None => (rest.trim_end_matches('.'), ""),
    };
    let text = format!("{before}{after}");
    (text.trim().to_owned(), Some(stated.to_owned()))
}

#[test]
fn a_default_in_a_description_is_a_sentence_of_its_own() {
    let (text, default) = split_sentence("Memory. Default 5. 0: none.", "Default ");
    assert_eq!(text, "Memory. 0: none.");
    assert_eq!(default.as_deref(), Some("5"));
    let text = "Memory.".to_owned();
    assert_eq!(split_sentence("Memory.", "Default "), (text, None));
}
