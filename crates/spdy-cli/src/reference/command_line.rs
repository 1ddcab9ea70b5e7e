//! The pages of the command line, from clap's definition of the program.

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};

use super::json_output;
use super::markdown::{cell, code_cell, escape, table};
use super::pages::Page;
use crate::cli::Cli;

/// Pages for subcommands that do not fit on their command's own page: file, title, subcommands.
const OTHER_PAGES: [(&str, &str, &[&str]); 4] = [
    (
        "accelerate-audit",
        "spdy accelerate: audit",
        &["accelerate audit"],
    ),
    (
        "lab-results",
        "spdy lab: results",
        &[
            "lab show",
            "lab report",
            "lab view",
            "lab compare",
            "lab reproduce",
        ],
    ),
    (
        "lab-stores",
        "spdy lab: stores",
        &["lab merge", "lab import", "lab export"],
    ),
    (
        "lab-real-time",
        "spdy lab: real time",
        &["lab calibrate", "lab browse", "lab shape"],
    ),
];

/// Environment variables, except those of the accelerator's configuration.
const ENVIRONMENT: [(&str, &str); 7] = [
    ("SPDY_LOG", "the filter of the log, without `--log`"),
    ("NO_COLOR", "no colours"),
    (
        "SSLKEYLOGFILE",
        "`fetch` writes the keys of TLS to this file, for its owner only",
    ),
    (
        "SSL_CERT_FILE",
        "the authorities that are trusted, PEM, instead of the public ones",
    ),
    (
        "SPDY_ACCELERATE__KEY",
        "a key of the accelerator's [configuration](../../how-to/run-as-a-service.md#set-keys-from-the-environment)",
    ),
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "the collector of [traces](../../how-to/trace-and-log.md), and other variables of OTLP",
    ),
    ("OTEL_TRACES_SAMPLER", "the traces that are recorded"),
];

/// The page of each command, and the overview.
pub(super) fn pages() -> Vec<Page> {
    let mut root = Cli::command();
    root.build();
    let mut pages = vec![Page::new("README.md", &overview(&root))];
    for command in visible(&root) {
        let name = command.get_name();
        let mut text = format!("# spdy {name}\n\n{}", describe(command));
        for sub in visible(command) {
            let path = format!("{name} {}", sub.get_name());
            if page_of(&path).is_none() {
                text.push_str(&format!("\n## spdy {path}\n\n{}", describe(sub)));
            }
        }
        pages.push(Page::new(&format!("{name}.md"), &text));
    }
    for (file, title, paths) in OTHER_PAGES {
        let mut text = format!("# {title}\n");
        for path in paths {
            let command = find(&root, path);
            text.push_str(&format!("\n## spdy {path}\n\n{}", describe(command)));
        }
        pages.push(Page::new(&format!("{file}.md"), &text));
    }
    pages
}

/// The page of the subcommand `path`, if it is not on its command's own page.
fn page_of(path: &str) -> Option<&'static str> {
    let mut pages = OTHER_PAGES.iter();
    let page = pages.find(|(_, _, paths)| paths.contains(&path));
    page.map(|(file, _, _)| *file)
}

fn find<'a>(root: &'a Command, path: &str) -> &'a Command {
    path.split(' ').fold(root, |command, name| {
        let found = command.find_subcommand(name);
        found.unwrap_or_else(|| panic!("no command `spdy {path}`: remove it from OTHER_PAGES"))
    })
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    let all = command.get_subcommands();
    all.filter(|it| !it.is_hide_set() && it.get_name() != "help")
}

fn overview(root: &Command) -> String {
    let commands = visible(root).map(|command| {
        let name = command.get_name();
        [format!("[`spdy {name}`]({name}.md)"), cell(&about(command))]
    });
    let commands: Vec<_> = commands.collect();
    let more = OTHER_PAGES.map(|(file, title, _)| format!("[{title}]({file}.md)"));
    let environment = ENVIRONMENT.map(|(name, text)| [code_cell(name), text.to_owned()]);
    let (examples, exit_codes) = examples_and_exit_codes(root);
    let options = options(root, |arg| arg.is_global_set() || is_built_in(arg));
    let mut text = format!(
        "# Command line\n\n{}\n\n```sh\n{examples}```\n\n## Commands\n\n",
        long_about(root)
    );
    text.push_str(&table(["command", "purpose"], &commands));
    text.push_str(&format!("\nMore pages: {}.\n", more.join(", ")));
    text.push_str(&format!("\n## Options of every command\n\n{options}"));
    text.push_str("\n## Environment\n\n");
    text.push_str(&table(["variable", "meaning"], &environment));
    text.push_str("\n## Exit codes\n\n");
    let codes = exit_codes.lines().filter_map(|line| {
        let (code, meaning) = line.trim().split_once("  ")?;
        Some([code.to_owned(), cell(meaning)])
    });
    text.push_str(&table(["code", "meaning"], &codes.collect::<Vec<_>>()));
    text
}

/// Purpose, usage, arguments, options and examples of `command`.
fn describe(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage: String = usage
        .trim_start_matches("Usage:")
        .lines()
        .map(|line| format!("{}\n", line.trim()))
        .collect();
    let mut text = format!("{}\n\n```text\n{usage}```\n", long_about(command));
    let subcommands = visible(command).map(|sub| {
        let path = format!("{} {}", command.get_name(), sub.get_name());
        let page = page_of(&path).unwrap_or(command.get_name());
        let anchor = format!("spdy-{}", path.replace(' ', "-"));
        [
            format!("[`{}`]({page}.md#{anchor})", sub.get_name()),
            cell(&about(sub)),
        ]
    });
    let subcommands: Vec<_> = subcommands.collect();
    if !subcommands.is_empty() {
        text.push_str(&format!(
            "\n{}",
            table(["subcommand", "purpose"], &subcommands)
        ));
    }
    let arguments = command.get_positionals().filter(|arg| !arg.is_hide_set());
    let arguments = arguments.map(|arg| [code_cell(&arg.to_string()), meaning(arg)]);
    let arguments: Vec<_> = arguments.collect();
    if !arguments.is_empty() {
        text.push_str(&format!("\n{}", table(["argument", "meaning"], &arguments)));
    }
    let options = options(command, |arg| !arg.is_global_set() && !is_built_in(arg));
    if !options.is_empty() {
        text.push_str(&format!("\n{options}"));
    }
    let (examples, exit_codes) = examples_and_exit_codes(command);
    text.push_str(&format!("\n```sh\n{examples}```\n"));
    let (_, usual) = examples_and_exit_codes(&Cli::command());
    if exit_codes != usual {
        text.push_str(&format!("\nExit codes:\n\n```text\n{exit_codes}```\n"));
    }
    text
}

/// Whether clap adds the option itself.
fn is_built_in(arg: &Arg) -> bool {
    matches!(arg.get_id().as_str(), "help" | "version")
}

/// Tables of the options that `is_included` selects, one for each heading.
fn options(command: &Command, is_included: impl Fn(&Arg) -> bool) -> String {
    let all = command.get_arguments().filter(|arg| !arg.is_positional());
    let shown: Vec<&Arg> = all
        .filter(|arg| !arg.is_hide_set() && is_included(arg))
        .collect();
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in &shown {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    let mut tables = Vec::new();
    for heading in headings {
        let of = shown.iter().filter(|arg| arg.get_help_heading() == heading);
        let rows = of.map(|arg| {
            let (mut text, default) = text_and_default(arg);
            if let Some(schema) = schema_of(command, arg) {
                text.push_str(&format!(" ([schema](../json/{schema}))"));
            }
            [code_cell(&spelling(arg)), default, text]
        });
        let head = ["option", "default", "meaning"];
        let options = table(head, &rows.collect::<Vec<_>>());
        tables.push(match heading {
            Some(heading) => format!("{heading}:\n\n{options}"),
            None => options,
        });
    }
    tables.join("\n")
}

/// The file with the JSON Schema of `command`, if `arg` is its `--json`.
fn schema_of(command: &Command, arg: &Arg) -> Option<String> {
    let path = command.get_bin_name()?.strip_prefix("spdy ")?;
    json_output::file_of(path).filter(|_| arg.get_long() == Some("json"))
}

/// The option's names and value, such as `-s, --store <STORE>`.
fn spelling(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("-{short}, "));
    format!("{}{arg}", short.unwrap_or_default())
}

/// The help of an option, and its default.
fn text_and_default(arg: &Arg) -> (String, String) {
    let text = meaning(arg);
    let takes_value = arg.get_action().takes_values();
    let values = arg.get_default_values().iter();
    let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
    if takes_value && !values.is_empty() {
        return (text, code_cell(&values.join(" ")));
    }
    // Defaults that depend on other arguments are part of the help.
    match text.split_once("[default: ") {
        Some((before, rest)) => {
            let (default, after) = rest.split_once(']').unwrap_or((rest, ""));
            (format!("{}{after}", before.trim_end()), default.to_owned())
        }
        None => (text, String::new()),
    }
}

/// The help of an argument, with the values that it may have.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let mut text = cell(&help.map(ToString::to_string).unwrap_or_default());
    if arg.get_action().takes_values() && !arg.is_hide_possible_values_set() {
        let values = arg.get_possible_values().into_iter();
        let values = values.filter(|value| !value.is_hide_set()).map(|value| {
            let name = format!("`{}`", value.get_name());
            match value.get_help() {
                Some(help) => format!("{name} ({})", cell(&help.to_string())),
                None => name,
            }
        });
        let values: Vec<_> = values.collect();
        if !values.is_empty() {
            text.push_str(&format!(". Values: {}", values.join(", ")));
        }
    }
    text
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// All paragraphs of the description.
fn long_about(command: &Command) -> String {
    let long = command.get_long_about().or_else(|| command.get_about());
    let long = long.map(ToString::to_string).unwrap_or_default();
    let paragraphs = long.split("\n\n").map(|paragraph| {
        let text = escape(paragraph);
        match text.ends_with(['.', ':']) {
            true => text,
            false => format!("{text}."),
        }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// The examples and the exit codes at the end of each help.
fn examples_and_exit_codes(command: &Command) -> (String, String) {
    let end = command.get_after_help().map(StyledStr::to_string);
    let end = end.expect("help text ends with examples");
    let (examples, codes) = end
        .split_once("Exit codes:\n")
        .expect("help text has exit codes");
    let examples = examples.trim_start_matches("Examples:\n");
    let lines = |text: &str, line: fn(&str) -> String| -> String {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        lines
            .map(|text| format!("{}\n", line(text.trim())))
            .collect()
    };
    (lines(examples, example), lines(codes, str::to_owned))
}

/// A line of the examples, with its explanation as a shell comment.
fn example(line: &str) -> String {
    match line.split_once("    ") {
        Some((command, comment)) => format!("{command}    # {}", comment.trim_start()),
        None => line.to_owned(),
    }
}
