//! Filters of reports in a browser: by level in an experiment of four factors, by verdict among claims.

use serde_json::{Value, json};

use crate::support::clients::chromium::{Chromium, Viewport};
use crate::support::lab::experiment_folder::Lab;
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::run_expecting;

const FOUR_FACTORS: &str = "name = 'four'\npages = ['lulic-bing']\nprotocols = ['http', 'spdy']\n[factors]\nrate = ['1mbit', \
                            '4mbit']\nrtt = ['20ms', '60ms']\nconnections = [2, 6]\ncompression = ['masked', 0]\n";

const SCREEN: Viewport = Viewport {
    width: 390,
    dark: false,
};

/// Opens `file` of `lab` in a browser.
fn open(lab: &Lab, file: &str) -> Chromium {
    let mut chromium = Chromium::start();
    chromium.open(&format!("file://{}", lab.path(file).display()), SCREEN);
    chromium.evaluate("document.querySelectorAll('details').forEach(it => it.open = true)");
    chromium
}

/// The number of visible elements that match `selector`.
fn visible(chromium: &mut Chromium, selector: &str) -> Value {
    chromium.evaluate(&format!(
        "[...document.querySelectorAll('{selector}')].filter(it => it.checkVisibility() && getComputedStyle(it).display !== 'none').length"
    ))
}

#[test]
fn a_filter_by_level_works_with_the_keyboard_and_shows_everything_at_first() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let lab = Lab::new(FOUR_FACTORS);
    lab.run("four.db", &[]);
    run_expecting(0, &mut lab.command(&["report", "four.db"]));
    let mut chromium = open(&lab, "four.html");
    let panels = "[data-figure^=load-over-rate] figure";
    let dots = "[data-figure=scatter] g";
    assert_eq!(visible(&mut chromium, panels), 8);
    assert_eq!(visible(&mut chromium, dots), 16);

    // The keyboard reaches the second level of the round trip: rate has two checkboxes before it.
    chromium.evaluate("document.querySelector('.filter input').focus()");
    for _ in 0..3 {
        chromium.press("Tab", 9, "");
    }
    let focused = chromium.evaluate("document.activeElement.value");
    assert_eq!(focused, "rtt=60ms");
    chromium.press(" ", 32, " ");
    assert_eq!(visible(&mut chromium, panels), 4);
    assert_eq!(visible(&mut chromium, dots), 8);
    chromium.save_screenshot("filter");
    // Over the round trip itself, every panel has other levels as well.
    let over_rtt = "[data-figure^=load-over-rtt] figure";
    assert_eq!(visible(&mut chromium, over_rtt), 8);

    chromium.evaluate("document.querySelector('.filter button').focus()");
    chromium.press("Enter", 13, "\r");
    assert_eq!(visible(&mut chromium, panels), 8);
    assert_eq!(chromium.evaluate("location.search"), "");
    assert!(chromium.console_messages().is_empty());
}

#[test]
fn a_filter_by_verdict_hides_claims_and_papers_without_others() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let lab = Lab::new(FOUR_FACTORS);
    let reproduce = ["reproduce", "mineki", "--quick", "--report", "claims.html"];
    run_expecting(0, &mut lab.command(&reproduce));
    let mut chromium = open(&lab, "claims.html");
    let rows = "tbody tr";
    let all = visible(&mut chromium, rows);
    assert_eq!(all, 7);
    let verdicts = chromium.evaluate(
        "[...document.querySelectorAll('.filter label')].map(it => it.textContent.match(/(.*) \\((\\d+)\\)/).slice(1))",
    );
    let verdicts = verdicts.as_array().expect("a list");
    let mut left = 7;
    for (place, verdict) in verdicts.iter().enumerate() {
        chromium.evaluate(&format!(
            "document.querySelectorAll('.filter input')[{place}].click()"
        ));
        let count: u64 = verdict[1]
            .as_str()
            .and_then(|count| count.parse().ok())
            .expect("a number");
        left -= count;
        assert_eq!(visible(&mut chromium, rows), left, "{verdict}");
        let shown = chromium.evaluate(
            "[...document.querySelectorAll('td .verdict')].filter(it => it.checkVisibility()).map(it => it.textContent)",
        );
        let shown = shown.as_array().expect("a list");
        assert!(!shown.contains(&verdict[0]), "{verdict}: {shown:?}");
    }
    assert_eq!(left, 0, "{}", json!(verdicts));
    assert_eq!(visible(&mut chromium, "section"), 0);
}
