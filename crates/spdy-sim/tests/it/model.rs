//! Results of the current model, load by load: a change that changes one must increment `MODEL_VERSION`.

use std::fmt::Write as _;

use spdy_page::builtin;
use spdy_sim::model::MODEL_VERSION;
use spdy_sim::options::Accelerator;
use spdy_sim::options::Scheduler;
use spdy_sim::options::{Options, Push, RaceProtocol};
use spdy_sim::race::{Race, RaceNetwork};

/// Loads of the portal, as `loads` prints them, of model 6.
const FIGURES: &str = "\
cable http: load 705.547 ms, DOMContentLoaded 97.968 ms, 44860 B up, 364584 B down
cable https: load 1031.158 ms, DOMContentLoaded 134.411 ms, 81320 B up, 538231 B down
cable spdy: load 773.949 ms, DOMContentLoaded 134.142 ms, 19645 B up, 367617 B down
cable h2: load 770.488 ms, DOMContentLoaded 134.024 ms, 18385 B up, 367870 B down
cable h3: load 741.770 ms, DOMContentLoaded 120.670 ms, 41574 B up, 370182 B down
rate=2mbit,rtt=60ms,loss=2% http: load 1803.788 ms, DOMContentLoaded 206.504 ms, 49260 B up, 380112 B down
rate=2mbit,rtt=60ms,loss=2% https: load 2633.276 ms, DOMContentLoaded 281.168 ms, 88652 B up, 565627 B down
rate=2mbit,rtt=60ms,loss=2% spdy: load 1904.260 ms, DOMContentLoaded 281.176 ms, 22823 B up, 365076 B down
rate=2mbit,rtt=60ms,loss=2% h2: load 2544.226 ms, DOMContentLoaded 281.276 ms, 21470 B up, 368078 B down
rate=2mbit,rtt=60ms,loss=2% h3: load 5679.228 ms, DOMContentLoaded 224.604 ms, 49090 B up, 376119 B down
lulic:1024kbit:50ms http: load 12010.000 ms, DOMContentLoaded 770.000 ms, 47230 B up, 352584 B down
lulic:1024kbit:50ms https: load 10600.000 ms, DOMContentLoaded 1050.000 ms, 82917 B up, 509685 B down
lulic:1024kbit:50ms spdy: load 8620.000 ms, DOMContentLoaded 1050.000 ms, 22513 B up, 363672 B down
lulic:1024kbit:50ms h2: load 8030.000 ms, DOMContentLoaded 1050.000 ms, 21753 B up, 364200 B down
lulic:1024kbit:50ms h3: load 7670.000 ms, DOMContentLoaded 790.000 ms, 42022 B up, 372597 B down
cable spdy browser: load 819.643 ms, DOMContentLoaded 173.464 ms, 34051 B up, 377040 B down
cable h3 browser: load 880.517 ms, DOMContentLoaded 140.318 ms, 58484 B up, 378620 B down
cable spdy accelerator: load 688.638 ms, DOMContentLoaded 134.840 ms, 11970 B up, 343721 B down
cable h2 accelerator: load 681.988 ms, DOMContentLoaded 151.467 ms, 10024 B up, 339692 B down
cable h3 accelerator: load 743.100 ms, DOMContentLoaded 121.143 ms, 22388 B up, 349997 B down
cable spdy warm accelerator: load 694.054 ms, DOMContentLoaded 134.515 ms, 11926 B up, 343633 B down
cable h2 warm accelerator: load 685.563 ms, DOMContentLoaded 134.184 ms, 9772 B up, 339328 B down
cable h3 warm accelerator: load 740.730 ms, DOMContentLoaded 120.746 ms, 22221 B up, 349861 B down
";

/// The portal over three networks (without loss, with loss, and with the timer of a gateway) by every protocol, then with the options
/// of browsers and accelerators.
fn loads() -> String {
    let mut out = String::new();
    let networks = [
        "cable",
        "rate=2mbit,rtt=60ms,loss=2%",
        "lulic:1024kbit:50ms",
    ];
    let protocols = [
        RaceProtocol::Http,
        RaceProtocol::Https,
        RaceProtocol::Spdy,
        RaceProtocol::H2,
        RaceProtocol::H3,
    ];
    write_race(&mut out, "", &networks, &protocols, Options::default());
    let browser = Options {
        scheduler: Scheduler::Chromium,
        ml_kem: true,
        push: Push::ByGraph,
        ..Options::default()
    };
    let ours = [RaceProtocol::Spdy, RaceProtocol::H3];
    write_race(&mut out, " browser", &networks[..1], &ours, browser);
    for (what, accelerator) in [
        (" accelerator", Accelerator::Cold),
        (" warm accelerator", Accelerator::Warm),
    ] {
        let accelerated = Options {
            accelerator,
            ..Options::default()
        };
        write_race(&mut out, what, &networks[..1], &protocols[2..], accelerated);
    }
    out
}

fn write_race(
    out: &mut String,
    what: &str,
    networks: &[&str],
    protocols: &[RaceProtocol],
    options: Options,
) {
    let networks = networks.iter().map(|name| RaceNetwork::parse(name));
    let networks = networks.map(|network| network.expect("a network"));
    let mut race = Race::new(vec![builtin::portal()], networks.collect());
    race.protocols = protocols.to_vec();
    race.options = options;
    for load in race.run(|_| ()) {
        assert_eq!(load.failures, [""; 0], "{} {}", load.network, load.protocol);
        writeln!(
            out,
            "{} {}{what}: load {:.3} ms, DOMContentLoaded {:.3} ms, {} B up, {} B down",
            load.network,
            load.protocol,
            load.load_ms,
            load.dom_content_loaded_ms,
            load.bytes_up,
            load.bytes_down,
        )
        .expect("a String takes every write");
    }
}

#[test]
fn a_change_of_figures_requires_a_new_model_version() {
    let came = loads();
    assert!(
        came == FIGURES,
        "figures of model {MODEL_VERSION} moved: count it on, and keep here what came:\n{came}\nwant:\n{FIGURES}"
    );
}
