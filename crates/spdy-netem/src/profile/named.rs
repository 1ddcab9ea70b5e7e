//! The named networks with their sources.

use std::time::Duration;

use super::network_profile::Profile;
use super::value::{Era, rate_bps, time};
use crate::path::{PathConfig, Topology};
use crate::queue::{QueueConfig, QueueLimit};
use crate::wire::LinkRate;

/// dummynet's default queue, packets.
const DUMMYNET_SLOTS: QueueConfig = QueueConfig::packets(50);
/// 250 ms at the rate from the client of `bufferbloat`.
const BLOATED: QueueConfig = QueueConfig::DropTail(QueueLimit::Bytes(31_250));
/// Passes of Lulic's packets through the pipe.
const LULIC_PASSES: u32 = 2;
/// The timer of a FreeBSD virtual machine, like Lulic's gateway: `kern.hz` is 100 there unless set (hz(9)), and the
/// paper does not mention a setting.
const LULIC_TICK: Duration = Duration::from_millis(10);

struct NamedNetwork {
    name: &'static str,
    source: &'static str,
    down_bps: u64,
    up_bps: u64,
    rtt_ms: u64,
}

const WEBPAGETEST: &str = "WebPageTest's sample connectivity profiles";
const WHITEPAPER: &str = "rates of \"SPDY: An experimental protocol for a faster web\" (2009), \
     which states no round-trip time for this table: 60 ms is an assumption, and its 1 % loss \
     is not set";

const FIXED: [NamedNetwork; 13] = [
    NamedNetwork {
        name: "dsl",
        source: WEBPAGETEST,
        down_bps: 1_500_000,
        up_bps: 384_000,
        rtt_ms: 50,
    },
    NamedNetwork {
        name: "cable",
        source: WEBPAGETEST,
        down_bps: 5_000_000,
        up_bps: 1_000_000,
        rtt_ms: 28,
    },
    NamedNetwork {
        name: "3g",
        source: WEBPAGETEST,
        down_bps: 1_600_000,
        up_bps: 768_000,
        rtt_ms: 300,
    },
    NamedNetwork {
        name: "lte",
        source: WEBPAGETEST,
        down_bps: 12_000_000,
        up_bps: 12_000_000,
        rtt_ms: 70,
    },
    NamedNetwork {
        name: "4g",
        source: WEBPAGETEST,
        down_bps: 9_000_000,
        up_bps: 9_000_000,
        rtt_ms: 170,
    },
    NamedNetwork {
        name: "5g",
        source: OFCOM,
        down_bps: 129_900_000,
        up_bps: 14_700_000,
        rtt_ms: 19,
    },
    NamedNetwork {
        name: "fibre",
        source: FIBRE,
        down_bps: 20_000_000,
        up_bps: 5_000_000,
        rtt_ms: 4,
    },
    NamedNetwork {
        name: "satellite",
        source: SATELLITE,
        down_bps: 10_000_000,
        up_bps: 1_000_000,
        rtt_ms: 600,
    },
    NamedNetwork {
        name: "bufferbloat",
        source: BUFFERBLOAT,
        down_bps: 5_000_000,
        up_bps: 1_000_000,
        rtt_ms: 28,
    },
    NamedNetwork {
        name: "whitepaper-dsl",
        source: WHITEPAPER,
        down_bps: 2_000_000,
        up_bps: 375_000,
        rtt_ms: 60,
    },
    NamedNetwork {
        name: "whitepaper-cable",
        source: WHITEPAPER,
        down_bps: 4_000_000,
        up_bps: 1_000_000,
        rtt_ms: 60,
    },
    NamedNetwork {
        name: "belshe-2011",
        source: BELSHE,
        down_bps: 2_000_000,
        up_bps: 386_000,
        rtt_ms: 100,
    },
    NamedNetwork {
        name: "mineki",
        source: MINEKI,
        down_bps: 1_024_000,
        up_bps: 1_024_000,
        rtt_ms: 150,
    },
];

const OFCOM: &str = "Ofcom's Mobile Matters: mean rates of 5G in the United Kingdom (2023); the middle of its operators' \
     mean response times (2024), 16.3 to 21.4 ms";
const BUFFERBLOAT: &str = "cable, with a queue of 250 ms at the rate from the client: the mean latency under load of cable \
     modems without active queue management (Livingood 2021, arXiv:2107.13968)";
const FIBRE: &str = "WebPageTest's sample connectivity profiles, named FIOS there";
const SATELLITE: &str = "assumed: four times 35,786 km at the speed of light take 477 ms, the \
     rest is processing; rates as sold to homes about 2012";
const BELSHE: &str = "the network of Belshe's \"visualising SPDY vs HTTP\": 2 Mbps down, 386 kbps up, 100 ms, \
     no loss";
const MINEKI: &str = "Mineki et al.'s dummynet: 1024 kbps up, 150 ms, and 128 to 4096 kbps down (1024 unless \
     given, as mineki:512kbit)";
const LULIC: &str = "Lulic (2013): one dummynet pipe of 50 slots that each packet of both \
     directions passes twice, so the true round-trip time is four times the delay label; \
     driven by the 100 Hz timer of FreeBSD in a virtual machine";

/// The names that take arguments.
pub const TEMPLATES: [&str; 2] = ["mineki:DOWN", "lulic:BANDWIDTH:DELAY"];

const NAMES: [&str; FIXED.len() + 1] = {
    let mut names = ["lulic:BANDWIDTH:DELAY"; FIXED.len() + 1];
    let mut at = 0;
    while at < FIXED.len() {
        names[at] = FIXED[at].name;
        at += 1;
    }
    names
};

/// All names, in the order of display; parameters are in capitals.
#[must_use]
pub const fn names() -> &'static [&'static str] {
    &NAMES
}

/// The network called `name`; also `mineki:512kbit` and `lulic:1024kbit:50ms`, whose arguments are the
/// labels that the papers print.
#[must_use]
pub fn named(name: &str) -> Option<Profile> {
    let mut parts = name.split(':');
    let (head, arguments) = (parts.next()?, parts.collect::<Vec<_>>());
    match (head, arguments.as_slice()) {
        ("lulic", [bandwidth, delay]) => {
            let (bps, label) = (rate_bps(bandwidth)?, time(delay)?);
            let rtt = label * 2 * LULIC_PASSES;
            let path = PathConfig {
                queue: DUMMYNET_SLOTS,
                topology: Topology::Shared {
                    passes: LULIC_PASSES,
                },
                tick: LULIC_TICK,
                ..PathConfig::new(bps, bps, rtt)
            };
            Some(Profile {
                name: Some(name.to_owned()),
                source: LULIC,
                path,
                era: Era::Y2013,
                initial_window: None,
            })
        }
        ("mineki", [down]) => {
            let mut profile = named("mineki")?;
            profile.name = Some(name.to_owned());
            profile.path.down = LinkRate::Bps(rate_bps(down)?);
            Some(profile)
        }
        (head, []) => {
            let fixed = FIXED.iter().find(|fixed| fixed.name == head)?;
            let rtt = Duration::from_millis(fixed.rtt_ms);
            let mut path = PathConfig::new(fixed.up_bps, fixed.down_bps, rtt);
            path.queue = match head {
                "mineki" => DUMMYNET_SLOTS,
                "bufferbloat" => BLOATED,
                _ => path.queue,
            };
            Some(Profile {
                name: Some(head.to_owned()),
                source: fixed.source,
                path,
                era: Era::Today,
                initial_window: None,
            })
        }
        _ => None,
    }
}
