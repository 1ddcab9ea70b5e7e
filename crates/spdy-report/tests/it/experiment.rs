//! Reports of experiments: every figure on the page is also a file for papers, and waterfalls match the store.

use std::ops::ControlFlow;

use spdy_lab::experiment::builtin_experiments;
use spdy_lab::experiment::plan::Plan;
use spdy_lab::experiment::runner::Runner;
use spdy_lab::store::manifest::Manifest;
use spdy_lab::store::row::{Row, Rows};
use spdy_report::experiment::{again, figures, render};

const PLAN: &str = r#"
name = "small"
runs = 3
pages = ["portal", "lulic-bing"]
protocols = ["http", "spdy", "h2"]
[factors]
rate = ["1mbit", "4mbit"]
rtt = ["20ms", "60ms"]
loss = ["0", "1%"]
"#;

fn loaded(text: &str) -> (Runner, Vec<Row>) {
    let plan = Plan::parse(text).unwrap();
    let replicas = plan
        .pages()
        .iter()
        .map(|name| builtin_experiments::page(name).unwrap());
    let replicas = replicas.collect();
    let runner = Runner::new(plan, replicas);
    let numbers: Vec<_> = (1..=runner.plan().len()).collect();
    let rows = Rows::new(&runner, "test");
    let mut cells = Vec::new();
    runner.run(
        &numbers,
        None,
        || false,
        |cell| {
            let cell = cell.unwrap();
            cells.push((cell.cell.number(), rows.of(&cell)));
            ControlFlow::Continue(())
        },
    );
    cells.sort_by_key(|(number, _)| *number);
    let rows = cells.into_iter().flat_map(|(_, rows)| rows).collect();
    (runner, rows)
}

fn contents(runner: &Runner) -> Manifest {
    Manifest::of(runner, "test")
}

#[test]
fn missing_cells_are_listed_by_their_keys() {
    let (runner, mut rows) = loaded(PLAN);
    let heading = "Missing cells";
    let page = |rows: &[Row]| render(&contents(&runner), rows, &[]);
    assert!(!page(&rows).contains(heading), "nothing is missing");
    let gone = |row: &Row| {
        row.value("cell").as_str()
            == Some("page=portal,protocol=spdy,rate=1mbit,rtt=20ms,loss=1%25")
    };
    rows.retain(|row| !gone(row));
    let html = page(&rows);
    assert!(
        html.contains(heading) && html.contains("1 of 48 cells of the plan have not been loaded")
    );
    assert!(html.contains(
        "<th scope=\"row\">page=portal,protocol=spdy,rate=1mbit,rtt=20ms,loss=1%25</th>"
    ));
    // A store with a plan but no runs: the page lists as many missing cells as fit, and the number of the others.
    let html = page(&[]);
    assert!(html.contains("48 of 48 cells") && html.contains("And 8 more"));
    assert_eq!(html.matches("<th scope=\"row\">page=").count(), 40);
}

#[test]
fn every_figure_of_the_page_is_a_file_of_its_own() {
    let (runner, rows) = loaded(PLAN);
    let again = again(&runner, &rows, None);
    let page = render(&contents(&runner), &rows, &again);
    let files = figures(&contents(&runner), &rows, &again);
    let names: Vec<_> = files.iter().map(|file| &file.name[..]).collect();
    assert_eq!(
        names,
        [
            "main-effects-portal",
            "main-effects-lulic-bing",
            "scatter",
            "load-over-rate-portal",
            "load-over-rate-lulic-bing",
            "load-over-rtt-portal",
            "load-over-rtt-lulic-bing",
            "load-over-loss-portal",
            "load-over-loss-lulic-bing",
            "moments-over-rate-portal",
            "moments-over-rate-lulic-bing",
            "ratio-over-rate-rtt-portal",
            "ratio-over-rate-rtt-lulic-bing",
            "cdf-load",
            "cdf-ratio",
            "waterfall-portal",
            "waterfall-lulic-bing",
            "wire-portal",
            "wire-lulic-bing",
            "validity",
        ]
    );
    assert_eq!(page.matches("data-figure=").count(), files.len());
    for file in &files {
        let svg = &file.svg;
        for door in ["var(", "class=", "<style", "href", "url(", "NaN", "\"inf"] {
            assert!(!svg.contains(door), "{door} in {}", file.name);
        }
        let text = text_of(svg);
        for condition in [
            "pages: portal, lulic-bing;",
            "rate: 1mbit, 4mbit;",
            "loss: 0, 1%;",
            "protocols: http, spdy, h2;",
            "runs per cell: 3;",
            "seed: 1;",
            "clock: virtual;",
            &format!("model: {};", spdy_sim::model::MODEL_VERSION),
            "program: spdy test; plan: ",
        ] {
            assert!(
                text.contains(condition),
                "no {condition} in {}: {text}",
                file.name
            );
        }
        assert!(
            svg.contains("xmlns=\"http://www.w3.org/2000/svg\""),
            "{}",
            file.name
        );
    }
    assert_eq!(
        files,
        figures(&contents(&runner), &rows, &again),
        "the same rows, other figures"
    );
}

/// The texts of an SVG file, joined by spaces: long ones are wrapped.
fn text_of(svg: &str) -> String {
    let texts = svg.split("<text ").skip(1);
    let texts = texts.filter_map(|rest| rest.split("</text>").next()?.split_once('>'));
    let texts: Vec<_> = texts.map(|(_, text)| text).collect();
    texts.join(" ")
}

/// The section of main effects, which ends before that of interactions.
fn effects_of(page: &str) -> &str {
    let (_, rest) = page.split_once("<h2>Main effects</h2>").unwrap();
    rest.split_once("<h2>Interactions: ").unwrap().0
}

#[test]
fn main_effects_stand_before_interactions_and_one_factor_has_none() {
    let (runner, rows) = loaded(&PLAN.replace("runs = 3", "runs = 1"));
    let page = render(&contents(&runner), &rows, &[]);
    // Of 2 pages, 3 protocols and 3 factors with 4 combinations of the others.
    let effects = effects_of(&page);
    assert_eq!(
        effects.matches("</td><td>4</td></tr>").count(),
        18,
        "{effects}"
    );
    let (runner, rows) = loaded(
        "name = 'one'\npages = ['portal']\n[factors]\nrate = '1mbit'\nrtt = ['20ms', '400ms']\n",
    );
    let page = render(&contents(&runner), &rows, &[]);
    assert!(page.contains("<h2>Load time over rtt</h2>"));
    assert!(
        page.contains(">rtt (log scale)<"),
        "the axis is logarithmic"
    );
    assert!(!page.contains("Main effects") && !page.contains("Interactions"));
}

#[test]
fn an_incomplete_combination_is_in_no_main_effect() {
    let (runner, mut rows) = loaded(&PLAN.replace("runs = 3", "runs = 1"));
    let gone = "page=portal,protocol=spdy,rate=1mbit,rtt=20ms,loss=1%25";
    rows.retain(|row| row.value("cell").as_str() != Some(gone));
    let page = render(&contents(&runner), &rows, &[]);
    let effects = effects_of(&page);
    assert_eq!(effects.matches("</td><td>3</td></tr>").count(), 9);
    assert_eq!(effects.matches("</td><td>4</td></tr>").count(), 9);
}

#[test]
fn four_factors_have_a_filter_without_a_script() {
    let (runner, rows) = loaded(
        "name = 'four'\npages = ['lulic-bing']\nprotocols = ['http', 'spdy']\n[factors]\nrate = ['1mbit', '4mbit']\nrtt = ['20ms', \
         '60ms']\nloss = ['0', '1%']\ntls = ['1.2', '1.3']\n",
    );
    let page = render(&contents(&runner), &rows, &[]);
    assert_eq!(page.matches("type=\"checkbox\"").count(), 8);
    assert!(page.contains("value=\"loss=1%\" checked>1%</label>"));
    assert!(!page.contains("<script"));
    // A panel of the load time over rate for each combination of the others.
    for combination in ["lv1-0 lv2-0 lv3-0", "lv1-1 lv2-1 lv3-1"] {
        let panel = format!("<figure class=\"{combination}\">");
        assert!(page.contains(&panel), "no {panel}");
    }
    let (runner, rows) = loaded(&PLAN.replace("runs = 3", "runs = 1"));
    assert!(!render(&contents(&runner), &rows, &[]).contains("checkbox"));
}

#[test]
fn a_picture_is_the_same_pixels_twice_and_its_letters_are_in_it() {
    let (runner, rows) = loaded(
        &PLAN
            .replace("\"portal\", ", "")
            .replace("runs = 3", "runs = 1"),
    );
    let files = figures(&contents(&runner), &rows, &[]);
    let wire = files
        .iter()
        .find(|file| file.name == "wire-lulic-bing")
        .unwrap();
    let pixels = spdy_report::png(&wire.svg);
    assert_eq!(pixels, spdy_report::png(&wire.svg));
    assert_eq!(pixels[..8], *b"\x89PNG\r\n\x1a\n");
    let without = wire
        .svg
        .replace(">packets<", "><")
        .replace(": packets<", "<");
    assert_ne!(pixels, spdy_report::png(&without), "no letters were drawn");
}

#[test]
fn waterfalls_are_the_stores_own_loads_to_the_nanosecond() {
    let (runner, rows) = loaded(PLAN);
    let again = again(&runner, &rows, None);
    assert_eq!(again.len(), 2);
    assert_eq!(
        again[0].over, "rate 4mbit, rtt 60ms, loss 1%",
        "the middle of all factors"
    );
    for one in &again {
        let loads: Vec<_> = one
            .loads
            .iter()
            .map(|load| (&load.protocol[..], load.load_ms))
            .collect();
        let stored = |protocol: &str| {
            let key = format!(
                "page={},protocol={protocol},rate=4mbit,rtt=60ms,loss=1%25",
                one.page
            );
            let of = rows
                .iter()
                .filter(|row| row.value("cell").as_str() == Some(&key));
            let mut times: Vec<f64> = of
                .map(|row| row.value("load_ms").as_f64().unwrap())
                .collect();
            times.sort_by(f64::total_cmp);
            times[1]
        };
        let expected = ["http", "spdy", "h2"].map(|protocol| (protocol, stored(protocol)));
        assert_eq!(loads, expected);
        assert!(one.loads.iter().all(|load| !load.waterfall.is_empty()));
        assert_eq!(one.notes.len(), 1, "{:?}", one.notes);
    }
}

#[test]
fn a_trial_is_chosen_by_the_key_of_any_of_its_cells() {
    let (runner, rows) = loaded(PLAN);
    let key = "page=lulic-bing,protocol=h2,rate=1mbit,rtt=20ms,loss=0";
    let again = again(&runner, &rows, Some(key));
    assert_eq!(again.len(), 1);
    assert_eq!(
        (&again[0].page[..], &again[0].over[..]),
        ("lulic-bing", "rate 1mbit, rtt 20ms, loss 0")
    );
    assert_eq!(again[0].loads.len(), 3);
}

#[test]
fn a_load_with_a_different_time_now_is_not_shown() {
    let (_, rows) = loaded(PLAN);
    // The same keys, pages and network; other seeds.
    let (other, _) = loaded(&PLAN.replace("runs = 3", "runs = 3\nseed = 2"));
    let again = again(&other, &rows, None);
    assert!(again[0].loads.is_empty());
    assert!(
        again[0].notes[0].contains("ms now, but"),
        "{:?}",
        again[0].notes
    );
}

#[test]
fn an_experiment_without_factors_shows_its_moments_side_by_side() {
    let (runner, rows) =
        loaded("name = 'one'\npages = ['lulic-bing']\n[factors]\nnetwork = 'dsl'\n");
    let files = figures(&contents(&runner), &rows, &[]);
    let moments = files
        .iter()
        .find(|file| file.name == "moments")
        .expect("a figure");
    for word in ["DOMContentLoaded", "load time", "time on wire"] {
        assert!(moments.svg.contains(word), "no {word}");
    }
}

#[test]
fn network_names_are_shown_side_by_side() {
    let (runner, rows) =
        loaded("name = 'nets'\npages = ['lulic-bing']\n[factors]\nnetwork = ['dsl', 'cable']\n");
    let files = figures(&contents(&runner), &rows, &[]);
    let over = files
        .iter()
        .find(|file| file.name == "load-over-network-lulic-bing");
    let svg = &over.expect("a figure").svg;
    assert!(svg.contains(">dsl<") && svg.contains(">cable<"), "{svg}");
}

#[test]
fn duplicate_cells_are_counted_once() {
    let (runner, rows) = loaded(
        "name = 'again'\npages = ['portal']\nprotocols = ['http', 'https', 'spdy']\n[factors]\nnetwork = ['dsl', 'cable']\ncompression \
         = ['masked', 0]\n",
    );
    let page = render(&contents(&runner), &rows, &[]);
    // Four of the twelve: HTTP's and HTTPS's without compression.
    assert!(
        page.contains("<p>4 cells differ from others in levels"),
        "no word of it"
    );
    let counted = |protocol: &str, count: usize| {
        let row = format!("\">{protocol}</td><td>{count}</td>");
        assert!(page.contains(&row), "{protocol} {count}");
    };
    counted("http", 2);
    counted("https", 2);
    counted("spdy", 4);
    assert!(page.contains("https against http: faster in 0 of 2"));
    let (runner, rows) = loaded(&PLAN.replace("runs = 3", "runs = 1"));
    assert!(!render(&contents(&runner), &rows, &[]).contains("differ from others in levels"));
}
