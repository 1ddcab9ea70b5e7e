//! Reports in a browser: on wide and narrow screens, in light and dark, every chart, and no request to another host.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::clients::chromium::{Chromium, Viewport};
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{run_expecting, spdy};

/// Four protocols over two axes and a third factor, with randomness; names of networks; one with nothing to compare and thin rows in its
/// waterfall; and four factors with a filter, long levels and ratios far from 1.
const EXPERIMENTS: [(&str, &str); 4] = [
    (
        "grid",
        "name = 'grid'\nruns = 6\npages = ['portal', 'lulic-bing']\nprotocols = ['http', 'https', 'spdy', 'h2']\n\
         [factors]\nrate = ['512kbit', '10mbit']\nrtt = ['20ms', '200ms']\nloss = ['0', '1%']\n",
    ),
    (
        "names",
        "name = 'names'\npages = ['portal']\nprotocols = ['http', 'spdy-plain', 'h3']\n[factors]\nnetwork = ['dsl', '3g', 'cable']\n",
    ),
    (
        "alone",
        "name = 'alone'\npages = ['flags']\nprotocols = ['spdy']\n[factors]\nnetwork = 'dsl'\n",
    ),
    (
        "four",
        "name = 'four'\npages = ['lulic-bing']\nprotocols = ['http', 'spdy']\n[factors]\nrate = ['10240kbit', '100mbit']\n\
         rtt = ['5ms', '800ms']\nconnections = [1, 6]\ncompression = ['masked', 0]\n",
    ),
];

const LOOKS: [Viewport; 4] = [
    Viewport {
        width: 1280,
        dark: false,
    },
    Viewport {
        width: 1280,
        dark: true,
    },
    Viewport {
        width: 390,
        dark: false,
    },
    Viewport {
        width: 390,
        dark: true,
    },
];

/// A script that opens all details of a page and returns a list of errors in its figures.
pub(crate) const FIND_FAULTS: &str = r#"
(() => {
  document.querySelectorAll('details').forEach(it => it.open = true);
  const faults = [];
  const wide = document.documentElement;
  if (wide.scrollWidth > wide.clientWidth) faults.push(`the page is ${wide.scrollWidth} wide, the screen ${wide.clientWidth}`);
  // What is wider than the screen scrolls within a box of its own, which is on the screen.
  const boxes = [...document.querySelectorAll('.scroll, .wide')];
  for (const box of boxes) {
    const edges = box.getBoundingClientRect();
    const label = box.getAttribute('aria-label');
    if (edges.left < 0 || edges.right > wide.clientWidth + 0.5) faults.push(`${label}: the box is out of the screen`);
    if (box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX !== 'auto') faults.push(`${label}: the box does not scroll`);
  }
  for (const it of document.querySelectorAll('header *, main *:not(svg *)')) {
    const style = getComputedStyle(it);
    if (it.scrollWidth > it.clientWidth + 1 && ['hidden', 'clip'].includes(style.overflowX) && style.display !== 'inline') {
      faults.push(`${it.tagName} "${it.textContent.slice(0, 40)}" is cut at the side`);
    }
    const edges = it.getBoundingClientRect();
    if (edges.width && edges.right > wide.clientWidth + 0.5 && !it.closest('.scroll, .wide')) {
      faults.push(`${it.tagName} "${it.textContent.slice(0, 40)}" is out of the screen`);
    }
  }
  const covers = [...document.querySelectorAll('svg .hit')].filter(it => getComputedStyle(it).fill !== 'rgba(0, 0, 0, 0)');
  if (covers.length) faults.push(`${covers.length} rows are hidden`);
  for (const svg of document.querySelectorAll('svg')) {
    const name = svg.querySelector('title')?.textContent ?? 'a picture without a title';
    const box = svg.getBoundingClientRect();
    if (box.width < 100 || box.height < 12) faults.push(`${name}: ${box.width} x ${box.height}`);
    // A waterfall may be wider: it can be scrolled within its figure.
    if (!svg.closest('.wide') && (box.left < 0 || box.right > wide.clientWidth + 0.5)) faults.push(`${name}: out of the screen`);
    if (!svg.querySelector('path, rect, circle')) faults.push(`${name}: nothing drawn`);
    const view = svg.viewBox.baseVal;
    const texts = [...svg.querySelectorAll('text')].filter(it => it.textContent);
    const boxes = texts.map(it => {
      const to = svg.getScreenCTM().inverse().multiply(it.getScreenCTM());
      const own = it.getBBox();
      const corners = [[own.x, own.y], [own.x + own.width, own.y + own.height]].map(([x, y]) => new DOMPoint(x, y).matrixTransform(to));
      const [x, y] = [corners.map(it => it.x), corners.map(it => it.y)];
      return { text: it.textContent, left: Math.min(...x), right: Math.max(...x), top: Math.min(...y), bottom: Math.max(...y) };
    });
    for (const it of boxes) {
      if (it.left < -1 || it.right > view.width + 1) faults.push(`${name}: "${it.text}" is cut at the side`);
      if (it.top < -2 || it.bottom > view.height + 2) faults.push(`${name}: "${it.text}" is cut above or below`);
      const color = getComputedStyle(texts[boxes.indexOf(it)]).fill;
      if (color === getComputedStyle(document.body).backgroundColor) faults.push(`${name}: "${it.text}" has the colour of its background`);
    }
    if (!svg.classList.contains('waterfall')) {
      boxes.forEach((a, at) => boxes.slice(at + 1).forEach(b => {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 4) faults.push(`${name}: "${a.text}" and "${b.text}" overlap`);
      }));
    }
  }
  return faults;
})()
"#;

/// Regression: a page could download files to the folder of the user who ran the tests.
#[test]
fn a_page_in_chromium_cannot_download_files() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let folder = tempfile::tempdir().expect("create a folder");
    let page = folder.path().join("page.html");
    let text =
        "<!doctype html><title>t</title><a href='data:text/plain,left' download='left.txt'>it</a>";
    fs::write(&page, text).expect("write the file");
    let mut chromium = Chromium::start();
    chromium.open(&format!("file://{}", page.display()), LOOKS[0]);
    chromium.evaluate("document.querySelector('a').click()");
    let download_event = chromium.until(|event| {
        event["method"] == "Browser.downloadProgress" && event["params"]["state"] != "inProgress"
    });
    assert_eq!(
        download_event["params"]["state"], "canceled",
        "{download_event}"
    );
}

#[test]
fn every_chart_is_visible_on_wide_and_narrow_screens_in_light_and_dark() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let folder = tempfile::tempdir().expect("create a folder");
    let mut pages = Vec::new();
    for (name, text) in EXPERIMENTS {
        fs::write(folder.path().join("it.toml"), text).expect("write the file");
        let lab = |arguments: &[&str]| {
            let mut command = spdy(&["lab"]);
            command.args(arguments).current_dir(folder.path());
            run_expecting(0, &mut command);
        };
        lab(&["run", "it.toml"]);
        lab(&["report", &format!("{name}.db")]);
        lab(&["report", &format!("{name}.db"), "--svg", name]);
        pages.push((name, folder.path().join(format!("{name}.html"))));
    }
    let race = folder.path().join("race.html");
    let mut command = spdy(&[
        "race",
        "portal",
        "--network",
        "dsl",
        "--network",
        "3g",
        "--report",
    ]);
    run_expecting(0, command.arg(&race));
    pages.push(("race", race));
    let claims = folder.path().join("claims.html");
    let mut command = spdy(&["lab", "reproduce", "mineki", "--quick", "--report"]);
    run_expecting(0, command.arg(&claims));
    pages.push(("claims", claims));

    let mut chromium = Chromium::start();
    for (name, path) in &pages {
        let url = format!("file://{}", path.display());
        for look in LOOKS {
            chromium.open(&url, look);
            let faults = chromium.evaluate(FIND_FAULTS);
            let shade = if look.dark { "dark" } else { "light" };
            chromium.save_screenshot(&format!("{name}-{}-{shade}", look.width));
            assert_eq!(
                faults,
                Value::Array(Vec::new()),
                "{name}, {look:?}: {faults:#}"
            );
            assert_eq!(chromium.requests(), [&url[..]], "{name}, {look:?}");
            let messages = chromium.console_messages();
            assert!(messages.is_empty(), "{name}, {look:?}: {messages:?}");
        }
        let figures = chromium.evaluate(
            "[...document.querySelectorAll('[data-figure]')].map(it => it.dataset.figure)",
        );
        let Value::Array(mut figures) = figures else {
            panic!("no list: {figures}");
        };
        if ["race", "claims"].contains(name) {
            continue;
        }
        // The page has every figure of the report's files, each once.
        let files = fs::read_dir(folder.path().join(name)).expect("read the report");
        let files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        for file in &files {
            let faults = find_faults_of_file(&mut chromium, file);
            assert!(faults.is_empty(), "{}: {faults:?}", file.display());
        }
        let mut files: Vec<_> = files
            .iter()
            .map(|path| Value::from(path.file_stem().and_then(|stem| stem.to_str())))
            .collect();
        let by_name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        files.sort_by_key(by_name);
        figures.sort_by_key(by_name);
        assert_eq!(figures, files, "{name}");
    }
}

/// Errors in a figure that is a file of its own: texts that are cut, and conditions that it does not state.
fn find_faults_of_file(chromium: &mut Chromium, file: &Path) -> Vec<Value> {
    chromium.open(&format!("file://{}", file.display()), LOOKS[0]);
    let faults = chromium.evaluate(
        r#"
        (() => {
          const svg = document.documentElement;
          const size = svg.viewBox.baseVal;
          const texts = [...svg.querySelectorAll('text')];
          const is_cut = it => {
            const box = it.getBoundingClientRect();
            return box.left < -1 || box.top < -1 || box.right > size.width + 1 || box.bottom > size.height + 1;
          };
          const faults = texts.filter(is_cut).map(it => `"${it.textContent}" is cut`);
          const all = texts.map(it => it.textContent).join(' ');
          for (const name of ['pages', 'protocols', 'runs per cell', 'seed', 'clock', 'model', 'program']) {
            if (!all.includes(` ${name}: `)) faults.push(`no ${name}`);
          }
          return faults;
        })()
        "#,
    );
    faults.as_array().expect("a list").clone()
}
