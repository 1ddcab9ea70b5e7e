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
cable http: load 706.778 ms, DOMContentLoaded 99.085 ms, 44434 B up, 363472 B down
cable https: load 1032.640 ms, DOMContentLoaded 136.128 ms, 80941 B up, 538497 B down
cable spdy: load 779.298 ms, DOMContentLoaded 136.534 ms, 20059 B up, 367981 B down
cable h2: load 772.490 ms, DOMContentLoaded 136.179 ms, 18839 B up, 366615 B down
cable h3: load 733.474 ms, DOMContentLoaded 123.357 ms, 36837 B up, 366579 B down
rate=2mbit,rtt=60ms,loss=2% http: load 1792.924 ms, DOMContentLoaded 207.588 ms, 48484 B up, 377683 B down
rate=2mbit,rtt=60ms,loss=2% https: load 2631.560 ms, DOMContentLoaded 282.852 ms, 87154 B up, 563703 B down
rate=2mbit,rtt=60ms,loss=2% spdy: load 1975.480 ms, DOMContentLoaded 283.068 ms, 22655 B up, 366851 B down
rate=2mbit,rtt=60ms,loss=2% h2: load 2005.336 ms, DOMContentLoaded 282.960 ms, 21279 B up, 364224 B down
rate=2mbit,rtt=60ms,loss=2% h3: load 1794.536 ms, DOMContentLoaded 226.212 ms, 38504 B up, 367533 B down
lulic:1024kbit:50ms http: load 11070.300 ms, DOMContentLoaded 770.300 ms, 47751 B up, 352441 B down
lulic:1024kbit:50ms https: load 10390.300 ms, DOMContentLoaded 1050.300 ms, 75878 B up, 503677 B down
lulic:1024kbit:50ms spdy: load 7690.300 ms, DOMContentLoaded 1050.300 ms, 23079 B up, 363546 B down
lulic:1024kbit:50ms h2: load 9310.300 ms, DOMContentLoaded 1050.300 ms, 24235 B up, 363434 B down
lulic:1024kbit:50ms h3: load 7410.300 ms, DOMContentLoaded 790.300 ms, 36744 B up, 365404 B down
cable spdy browser: load 895.879 ms, DOMContentLoaded 175.005 ms, 52348 B up, 411911 B down
cable h2 browser: load 907.979 ms, DOMContentLoaded 148.327 ms, 50063 B up, 413824 B down
cable h3 browser: load 896.002 ms, DOMContentLoaded 142.685 ms, 57787 B up, 376792 B down
cable spdy chromium-49: load 796.432 ms, DOMContentLoaded 137.043 ms, 30503 B up, 385984 B down
cable h2 chromium-49: load 790.850 ms, DOMContentLoaded 136.083 ms, 28941 B up, 386564 B down
lulic:1024kbit:50ms spdy lulic: load 10680.300 ms, DOMContentLoaded 1040.300 ms, 21474 B up, 362686 B down
lulic:1024kbit:50ms h2 lulic: load 9320.300 ms, DOMContentLoaded 1040.300 ms, 21983 B up, 362232 B down
cable spdy accelerator: load 694.850 ms, DOMContentLoaded 138.291 ms, 11970 B up, 343361 B down
cable h2 accelerator: load 685.566 ms, DOMContentLoaded 138.009 ms, 9972 B up, 339050 B down
cable h3 accelerator: load 692.924 ms, DOMContentLoaded 124.979 ms, 17724 B up, 346288 B down
cable spdy warm accelerator: load 696.506 ms, DOMContentLoaded 136.814 ms, 11896 B up, 343347 B down
cable h2 warm accelerator: load 687.490 ms, DOMContentLoaded 136.339 ms, 9846 B up, 338998 B down
cable h3 warm accelerator: load 690.330 ms, DOMContentLoaded 123.451 ms, 17447 B up, 346197 B down
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
    write_race(
        &mut out,
        " browser",
        &networks[..1],
        &protocols[2..],
        browser,
    );
    for (what, networks, options) in [
        (" chromium-49", &networks[..1], Options::chromium_49()),
        (" lulic", &networks[2..], Options::lulic()),
    ] {
        write_race(&mut out, what, networks, &protocols[2..4], options);
    }
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
