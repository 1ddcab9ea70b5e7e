//! Results of the current model, load by load: a change that changes one must increment `MODEL_VERSION`.

use std::fmt::Write as _;

use spdy_page::builtin;
use spdy_sim::model::MODEL_VERSION;
use spdy_sim::options::Accelerator;
use spdy_sim::options::Scheduler;
use spdy_sim::options::{Options, Push, RaceProtocol};
use spdy_sim::race::{Race, RaceNetwork};

/// Loads of the portal, as `loads` prints them.
const FIGURES: &str = "\
cable http: load 705.547 ms, DOMContentLoaded 97.968 ms, 44860 B up, 364584 B down
cable https: load 1031.158 ms, DOMContentLoaded 134.411 ms, 81320 B up, 538231 B down
cable spdy: load 775.715 ms, DOMContentLoaded 134.818 ms, 20163 B up, 367981 B down
cable h2: load 771.365 ms, DOMContentLoaded 134.462 ms, 18903 B up, 367870 B down
cable h3: load 730.416 ms, DOMContentLoaded 121.309 ms, 37557 B up, 366698 B down
rate=2mbit,rtt=60ms,loss=2% http: load 1803.788 ms, DOMContentLoaded 206.504 ms, 49260 B up, 380268 B down
rate=2mbit,rtt=60ms,loss=2% https: load 2633.276 ms, DOMContentLoaded 281.168 ms, 88696 B up, 564639 B down
rate=2mbit,rtt=60ms,loss=2% spdy: load 1970.316 ms, DOMContentLoaded 281.384 ms, 22975 B up, 366851 B down
rate=2mbit,rtt=60ms,loss=2% h2: load 2001.444 ms, DOMContentLoaded 281.276 ms, 21279 B up, 364224 B down
rate=2mbit,rtt=60ms,loss=2% h3: load 1796.313 ms, DOMContentLoaded 224.628 ms, 39287 B up, 369771 B down
lulic:1024kbit:50ms http: load 11470.000 ms, DOMContentLoaded 770.000 ms, 48601 B up, 354161 B down
lulic:1024kbit:50ms https: load 12320.000 ms, DOMContentLoaded 1050.000 ms, 77048 B up, 504573 B down
lulic:1024kbit:50ms spdy: load 8450.000 ms, DOMContentLoaded 1050.000 ms, 23171 B up, 363546 B down
lulic:1024kbit:50ms h2: load 9440.000 ms, DOMContentLoaded 1050.000 ms, 24235 B up, 363434 B down
lulic:1024kbit:50ms h3: load 7220.000 ms, DOMContentLoaded 790.000 ms, 37783 B up, 365707 B down
cable spdy browser: load 882.859 ms, DOMContentLoaded 173.464 ms, 45949 B up, 404160 B down
cable h3 browser: load 894.934 ms, DOMContentLoaded 140.885 ms, 58055 B up, 376800 B down
cable spdy accelerator: load 689.019 ms, DOMContentLoaded 135.432 ms, 12044 B up, 343641 B down
cable h2 accelerator: load 682.369 ms, DOMContentLoaded 151.467 ms, 10098 B up, 339560 B down
cable h3 accelerator: load 688.189 ms, DOMContentLoaded 121.678 ms, 18382 B up, 346381 B down
cable spdy warm accelerator: load 694.800 ms, DOMContentLoaded 135.190 ms, 12000 B up, 343729 B down
cable h2 warm accelerator: load 685.966 ms, DOMContentLoaded 134.622 ms, 9846 B up, 339306 B down
cable h3 warm accelerator: load 687.085 ms, DOMContentLoaded 121.387 ms, 17990 B up, 346199 B down
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
