//! Reports as a browser shows them: on a desk and on a phone, in light and dark, every chart, and nothing from elsewhere.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::support::chromium::{Chromium, Look};
use crate::support::peers::{is_installed, require, wanted};
use crate::support::program::{From, Running, ended_with, spdy};

/// Four protocols over two axes and a third factor, with chance in it; names of networks; nothing to compare with.
const EXPERIMENTS: [(&str, &str); 3] = [
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
        "name = 'alone'\npages = ['portal']\nprotocols = ['spdy']\n[factors]\nnetwork = 'dsl'\n",
    ),
];

const LOOKS: [Look; 4] = [
    Look {
        width: 1400,
        dark: false,
    },
    Look {
        width: 1400,
        dark: true,
    },
    Look {
        width: 390,
        dark: false,
    },
    Look {
        width: 390,
        dark: true,
    },
];

/// What is wrong with the pictures of a page, all of its details opened: a list of sentences.
const FAULTS: &str = r#"
(() => {
  document.querySelectorAll('details').forEach(it => it.open = true);
  const faults = [];
  const wide = document.documentElement;
  if (wide.scrollWidth > wide.clientWidth) faults.push(`the page is ${wide.scrollWidth} wide, the screen ${wide.clientWidth}`);
  const covers = [...document.querySelectorAll('svg .hit')].filter(it => getComputedStyle(it).fill !== 'rgba(0, 0, 0, 0)');
  if (covers.length) faults.push(`${covers.length} rows are covered`);
  for (const svg of document.querySelectorAll('svg')) {
    const name = svg.querySelector('title')?.textContent ?? 'a picture without a title';
    const box = svg.getBoundingClientRect();
    if (box.width < 100 || box.height < 12) faults.push(`${name}: ${box.width} x ${box.height}`);
    // A waterfall may be wider: it is moved to and fro within its figure.
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
      if (color === getComputedStyle(document.body).backgroundColor) faults.push(`${name}: "${it.text}" is as its ground`);
    }
    if (!svg.classList.contains('waterfall')) {
      boxes.forEach((a, at) => boxes.slice(at + 1).forEach(b => {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 4) faults.push(`${name}: "${a.text}" and "${b.text}" stand on one another`);
      }));
    }
  }
  return faults;
})()
"#;

#[test]
fn every_chart_is_seen_on_a_desk_and_a_phone_in_light_and_dark() {
    if !wanted() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut pages = Vec::new();
    for (name, text) in EXPERIMENTS {
        fs::write(folder.path().join("it.toml"), text).expect("the folder can be written to");
        let lab = |arguments: &[&str]| {
            let mut command = spdy(&["lab"]);
            command.args(arguments).current_dir(folder.path());
            ended_with(0, &mut command);
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
    ended_with(0, command.arg(&race));
    pages.push(("race", race));

    let mut chromium = Chromium::start();
    for (name, path) in &pages {
        let url = format!("file://{}", path.display());
        for look in LOOKS {
            chromium.open(&url, look);
            let faults = chromium.ask(FAULTS);
            let shade = if look.dark { "dark" } else { "light" };
            chromium.picture(&format!("{name}-{}-{shade}", look.width));
            assert_eq!(
                faults,
                Value::Array(Vec::new()),
                "{name}, {look:?}: {faults:#}"
            );
            assert_eq!(chromium.requests(), [&url[..]], "{name}, {look:?}");
            let said = chromium.complaints();
            assert!(said.is_empty(), "{name}, {look:?}: {said:?}");
        }
        let figures = chromium
            .ask("[...document.querySelectorAll('[data-figure]')].map(it => it.dataset.figure)");
        let Value::Array(mut figures) = figures else {
            panic!("no list: {figures}");
        };
        if *name == "race" {
            continue;
        }
        // The page has every figure that is written for papers, each once.
        let files = fs::read_dir(folder.path().join(name)).expect("it was made");
        let mut files: Vec<_> = files
            .map(|file| file.expect("a file").path())
            .map(|path| Value::from(path.file_stem().and_then(|stem| stem.to_str())))
            .collect();
        let by_name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        files.sort_by_key(by_name);
        figures.sort_by_key(by_name);
        assert_eq!(figures, files, "{name}");
    }
}

/// `spdy lab view` of `what` in `folder`, and where it is.
fn view(folder: &Path, what: &str) -> (Running, String) {
    let mut command = spdy(&["lab", "view", what]);
    command.current_dir(folder);
    Running::start(command, From::Stderr, |line| {
        let (_, rest) = line.split_once("http://")?;
        rest.split('/').next().map(str::to_owned)
    })
}

/// The whole answer to a request by hand.
fn asked(address: &str, head: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("{head}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

#[test]
fn a_view_answers_its_own_name_alone_and_tells_how_far_the_store_is() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let experiment = "name = 'one'\npages = ['lulic-bing']\n[factors]\nnetwork = 'dsl'\n";
    fs::write(folder.path().join("one.toml"), experiment).expect("the folder can be written to");
    let (_running, address) = view(folder.path(), "one.toml");
    let get =
        |path: &str, host: &str| asked(&address, &format!("GET {path} HTTP/1.1\r\nhost: {host}"));

    let early = get("/state", &address);
    assert!(
        early.starts_with("HTTP/1.1 200 ") && early.contains("there is no store one.db"),
        "{early}"
    );
    let mut run = spdy(&["lab", "run", "one.toml"]);
    ended_with(0, run.current_dir(folder.path()));
    let state = get("/state", &address);
    assert!(
        state.contains(r#"{"name":"one","done":4,"cells":4,"runs":1,"left_s":null}"#),
        "{state}"
    );
    let report = get("/report", &address);
    assert!(
        report.contains("Experiment: one") && report.contains("to the nanosecond"),
        "{report}"
    );
    for head in [
        "content-security-policy: default-src 'none'",
        "nosniff",
        "same-origin",
        "no-store",
    ] {
        assert!(report.contains(head), "no {head} in {report}");
    }

    let port = address.split(':').nth(1).expect("a port");
    assert!(get("/", &format!("localhost:{port}")).starts_with("HTTP/1.1 200 "));
    for foreign in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        "127.0.0.1:1".to_owned(),
    ] {
        let refused = get("/report", &foreign);
        assert!(
            refused.starts_with("HTTP/1.1 421 ") && !refused.contains("Experiment"),
            "{refused}"
        );
    }
    assert!(get("/elsewhere", &address).starts_with("HTTP/1.1 404 "));
    let posted = asked(
        &address,
        &format!("POST /report HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0"),
    );
    assert!(
        posted.starts_with("HTTP/1.1 405 ") && posted.contains("allow: GET, HEAD"),
        "{posted}"
    );
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_view() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut command = spdy(&["lab", "view", "lulic"]);
    let child = command
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("the program can be started");
    let mut told = [0; 1];
    let mut stderr = child.stderr.take().expect("it is piped");
    stderr
        .read_exact(&mut told)
        .expect("it says where it listens");
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("there is a kill").success());
    assert_eq!(child.wait().expect("it was ours").code(), Some(0));
}

#[test]
fn a_view_follows_a_run_and_the_reader_stays_where_he_was() {
    if !wanted() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let folder = tempfile::tempdir().expect("a folder can be made");
    let experiment = "name = 'live'\nruns = 2\npages = ['lulic-bing', 'portal']\n[factors]\nrate = ['1mbit', '4mbit']\n\
                      rtt = ['20ms', '50ms', '100ms']\n";
    fs::write(folder.path().join("live.toml"), experiment).expect("the folder can be written to");
    run_until(folder.path(), 4);
    let (_running, address) = view(folder.path(), "live.toml");
    let mut chromium = Chromium::start();
    chromium.open(
        &format!("http://{address}/"),
        Look {
            width: 1400,
            dark: false,
        },
    );
    let until = |chromium: &mut Chromium, what: &str| {
        let wait = format!(
            "new Promise(done => {{ const look = () => ({what}) ? done(true) : setTimeout(look, 20); look(); }})"
        );
        chromium.ask(&wait)
    };
    until(&mut chromium, "document.querySelector('main svg')");
    let told = chromium.ask("document.querySelector('#progress').textContent");
    let told = told.as_str().expect("text").to_owned();
    assert!(told.contains("of 48 cells of live"), "{told}");
    // Where the reader is, and what he has opened and closed, by name: there is more on the page later.
    let place = "(() => { \
        const open = name => [...document.querySelectorAll('details')].find(it => it.textContent.startsWith(name)).open; \
        const heading = [...document.querySelectorAll('h2')].find(it => it.textContent === 'Distribution'); \
        return [open('Distribution of load'), open('Distribution of the ratios'), Math.round(heading.getBoundingClientRect().top)]; \
        })()";
    chromium.ask(
        "for (const it of document.querySelectorAll('details')) if (it.textContent.startsWith('Distribution')) it.open = !it.open; \
         [...document.querySelectorAll('h2')].find(it => it.textContent === 'Distribution').scrollIntoView(); \
         scrollBy(0, -120); window.kept = document.querySelector('main'); 0",
    );
    let before = chromium.ask(place);
    assert_eq!(before, serde_json::json!([false, true, 120]));

    let mut run = spdy(&["lab", "run", "live.toml"]);
    ended_with(0, run.current_dir(folder.path()));
    until(
        &mut chromium,
        "document.querySelector('#progress').textContent.includes('all there') && document.querySelector('.waterfall')",
    );
    let replaced = chromium.ask("window.kept !== document.querySelector('main')");
    assert_eq!(replaced, true);
    let after = chromium.ask(place);
    assert_eq!(
        (&after[0], &after[1]),
        (&before[0], &before[1]),
        "what was open"
    );
    // Screens have whole pixels, and each swap may round.
    let moved = after[2].as_f64().expect("pixels") - 120.0;
    assert!(moved.abs() <= 3.0, "the reader was moved by {moved} pixels");
    let faults = chromium.ask(FAULTS);
    chromium.picture("view");
    assert_eq!(faults, Value::Array(Vec::new()), "{faults:#}");
    let ours = format!("http://{address}/");
    let elsewhere: Vec<_> = chromium
        .requests()
        .into_iter()
        .filter(|url| !url.starts_with(&ours) && *url != "data:,")
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    let said = chromium.complaints();
    assert!(said.is_empty(), "{said:?}");
}

/// Runs the experiment `live` until so many of its cells are in its store, and kills it then.
fn run_until(folder: &Path, cells: usize) {
    let mut command = spdy(&["lab", "run", "live.toml", "--jobs", "1"]);
    command
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("the program can be started");
    let (_never, tick) = mpsc::channel::<()>();
    while cells_of(folder) < cells && child.try_wait().expect("it was ours").is_none() {
        let _ = tick.recv_timeout(Duration::from_millis(5));
    }
    let _ = child.kill();
    child.wait().expect("it was ours");
}

/// Cells that are in the store of `live` by now.
fn cells_of(folder: &Path) -> usize {
    let Ok(connection) = rusqlite::Connection::open(folder.join("live.db")) else {
        return 0;
    };
    let count = "SELECT count(DISTINCT cell) FROM results";
    let count = connection.query_row(count, [], |row| row.get::<_, i64>(0));
    count.map_or(0, |count| count as usize)
}
