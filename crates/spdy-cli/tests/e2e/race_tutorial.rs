//! The tutorial that races a page: each output on it is what its command prints. `UPDATE_DOCS=1` writes the page.

use std::fs;

use crate::support::program::stdout_of;

const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/tutorials/race-a-page.md"
);

/// `page` with `output` in the block that starts with `start`.
fn with_output(page: &str, start: &str, output: &str) -> String {
    let fence = "```text\n";
    let block = format!("{fence}{start}");
    let at = page
        .find(&block)
        .unwrap_or_else(|| panic!("the page has no {block:?}"));
    let from = at + fence.len();
    let until = from + page[from..].find("```\n").expect("the block ends");
    format!("{}{output}{}", &page[..from], &page[until..])
}

#[test]
fn outputs_on_the_page_are_those_of_its_commands() {
    let page = fs::read_to_string(PATH).expect("read the tutorial");
    assert!(
        page.contains("make demo"),
        "its first command races as `spdy race` does"
    );
    let doctor = "spdy doctor portal --network cable --most 5";
    assert!(page.contains(doctor), "{doctor}");
    let arguments: Vec<_> = doctor.split(' ').skip(1).collect();
    let (race, examination) = (stdout_of(0, &["race"]), stdout_of(0, &arguments));
    let current = with_output(&page, "page ", &race);
    let current = with_output(&current, "portal over", &examination);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return fs::write(PATH, current).expect("write the tutorial");
    }
    assert_eq!(page, current, "UPDATE_DOCS=1 writes the page");
}
