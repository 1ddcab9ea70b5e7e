//! Networks as text: valid and invalid texts, and printing.

use std::time::Duration;

use proptest::prelude::*;
use spdy_netem::loss::{LossModel, Probability};
use spdy_netem::path::Topology;
use spdy_netem::profile::{Profile, named, names};
use spdy_netem::queue::{QueueConfig, QueueLimit};
use spdy_netem::trace::Trace;
use spdy_netem::wire::LinkRate;

fn parse(text: &str) -> Profile {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    match text.parse::<Profile>() {
        Ok(profile) => panic!("{text} was taken as {profile:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_name_is_a_network_with_a_source_and_prints_itself() {
    for name in names().iter().filter(|name| !name.contains(':')) {
        let profile = parse(name);
        assert_eq!(profile.to_string(), *name);
        assert!(profile.source.len() > 10, "{name}: no source");
        let by_hand = parse(&profile.settings());
        assert_eq!(
            by_hand.path,
            profile.path,
            "{name} as {}",
            profile.settings()
        );
        assert_eq!(by_hand.tcp(), profile.tcp());
    }
}

#[test]
fn webpagetests_dsl_has_its_published_values() {
    let dsl = named("dsl").expect("a name");
    assert_eq!(
        (dsl.path.down, dsl.path.up),
        (LinkRate::Bps(1_500_000), LinkRate::Bps(384_000))
    );
    assert_eq!(dsl.path.rtt, Duration::from_millis(50));
}

#[test]
fn lulics_labels_become_four_delays_and_one_shared_pipe() {
    let profile = parse("lulic:1024kbit:50ms");
    assert_eq!(profile.path.rtt, Duration::from_millis(200));
    assert_eq!(profile.path.down, LinkRate::Bps(1_024_000));
    assert_eq!(profile.path.topology, Topology::Shared { passes: 2 });
    assert_eq!(profile.path.queue, QueueConfig::packets(50));
    assert_eq!(
        profile.settings(),
        "rate=1024kbit,pipe=shared,passes=2,rtt=200ms,queue=50p,tick=10ms,tcp=2013"
    );
    assert_eq!(parse("mineki:512kbit").path.down, LinkRate::Bps(512_000));
}

#[test]
fn settings_by_hand_are_read_and_printed_in_one_order() {
    let profile = parse(
        "rtt=0.1s, up=384kbit,down=2mbit,loss=1%,burst=4,queue=64kb,jitter=1500us,iw=3,tcp=2009",
    );
    assert_eq!(
        profile.to_string(),
        "down=2mbit,up=384kbit,rtt=100ms,jitter=1500us,loss=1%,burst=4,queue=64kb,tcp=2009,iw=3"
    );
    assert_eq!(profile.tcp().initial_window_segments, 3);
    assert_eq!(profile.tcp().initial_rto, Duration::from_secs(3));
    assert_eq!(
        parse("rate=2mbit,rtt=100ms").path.up,
        LinkRate::Bps(2_000_000)
    );
}

#[test]
fn a_name_with_settings_is_changed_and_no_longer_that_name() {
    let profile = parse("cable,loss_down=0.5%,rtt=60ms");
    let half = Probability::from_ppb(5_000_000).expect("a probability");
    assert_eq!(profile.path.loss_down, LossModel::Bernoulli(half));
    assert_eq!(profile.path.loss_up, LossModel::None);
    assert_eq!(
        profile.to_string(),
        "down=5mbit,up=1mbit,rtt=60ms,loss_down=0.5%"
    );
}

#[test]
fn errors_name_the_valid_values() {
    let unknown = refusal("cabel");
    assert!(
        unknown.starts_with("unknown network \"cabel\""),
        "{unknown}"
    );
    assert!(
        unknown.contains("dsl, cable, 3g, lte, 4g, 5g, fibre, satellite"),
        "{unknown}"
    );
    assert!(refusal("satelite").contains("did you mean \"satellite\"?"));
    assert!(refusal("dsl,los=1%").contains("did you mean \"loss\"?"));
    assert!(refusal("lulic").contains("lulic:BANDWIDTH:DELAY"));
    for nothing in ["", " "] {
        let message = refusal(nothing);
        assert!(message.starts_with("no network: give a name"), "{message}");
        assert!(
            message.contains("dsl") && message.contains("rtt="),
            "{message}"
        );
    }
    assert_eq!(
        refusal("dsl,loss=1"),
        "invalid network setting loss=1: expected a percentage with its sign, such as 1% or 0.5%, or a fraction of at most 0.1, such as \
         0.01"
    );
    assert!(refusal("down=2,up=1mbit,rtt=1ms").contains("a rate above 0 with its unit"));
    assert!(refusal("down=2mbit,up=1mbit").contains("rtt is missing"));
    assert!(refusal("down=2mbit,rtt=1ms").contains("up is missing"));
    assert!(refusal("dsl,rtt=1ms,rtt=2ms").contains("rtt is given twice"));
    assert!(refusal("dsl,fast").contains("invalid network setting \"fast\""));
    assert!(refusal("dsl,pipe=shared").contains("one rate"));
    assert!(refusal("dsl,passes=2").contains("add pipe=shared"));
    assert!(refusal("rate=1mbit,rtt=1ms,pipe=shared,passes=17").contains("from 1 to 16"));
    assert!(refusal("dsl,tick=1ms,queue=codel").contains("add tick=0"));
    assert!(refusal("lulic:1024kbit:50ms,queue=fq_codel").contains("add tick=0"));
    assert!(refusal("dsl,queue=red").contains("or codel or fq_codel"));
    assert!(refusal("dsl,tick=1001ms").contains("at most 1 second"));
    assert!(refusal("dsl,iw=1001").contains("from 1 to 1000"));
    assert!(refusal("dsl,tcp=2010").contains("2009, 2013 or today"));
    assert!(refusal("dsl,burst=4").contains("add loss"));
    assert!(refusal("dsl,loss=100%,burst=4").contains("impossible with bursts"));
    assert!(
        refusal("dsl,loss=1%,loss_up=1%").contains("give either loss, or loss_up and loss_down")
    );
}

/// Reads two files: `good` and `bad`.
fn read_trace(file: &str) -> Result<Trace, String> {
    let text = match file {
        "good" => "5\n10\n",
        _ => "5\nx\n",
    };
    Trace::parse(file, text).map_err(|error| error.to_string())
}

#[test]
fn a_trace_is_read_from_its_file_and_prints_its_name() {
    let parse = |text| Profile::parse(text, &read_trace);
    let spec = "down=trace:good,up=1mbit,rtt=40ms,queue=fq_codel";
    let profile = parse(spec).expect("the trace is valid");
    assert_eq!(
        profile.path.down,
        LinkRate::Trace(read_trace("good").unwrap())
    );
    assert_eq!(profile.to_string(), spec);
    let both = parse("rate=trace:good,rtt=40ms").expect("the trace is valid");
    assert_eq!(both.path.up, both.path.down);

    let error = |text| parse(text).unwrap_err().to_string();
    assert_eq!(
        error("down=1mbit,up=trace:bad,rtt=1ms"),
        "network setting up=trace:bad: line 2: found \"x\", expected a time in milliseconds, such as 17"
    );
    assert!(error("dsl,down=trace:").contains("or trace:FILE"));
    assert!(error("dsl,down=trace:good,tick=10ms").contains("add tick=0"));
    assert!(refusal("dsl,down=trace:good").contains("down=trace:good: expected a rate"));
}

proptest! {
    /// A printed network parses to itself.
    #[test]
    fn a_printed_network_parses_to_itself(
        down in 1u64..3_000_000_000, up in 1u64..3_000_000_000, rtt_ns in 0u64..10_000_000_000,
        jitter_us in 0u64..100_000, loss_up in 0u32..500_000_000, loss_down in 0u32..500_000_000,
        queue in prop_oneof![
            (1u32..5_000).prop_map(QueueConfig::packets),
            (1u64..5_000_000).prop_map(|bytes| QueueConfig::DropTail(QueueLimit::Bytes(bytes))),
            Just(QueueConfig::CoDel), Just(QueueConfig::FqCoDel),
        ],
        shared in any::<bool>(), tick_us in prop_oneof![Just(0), 1u64..=1_000_000],
        iw in prop::option::of(1u32..100), tcp in 0usize..3,
    ) {
        let mut profile = parse(&format!("dsl,tcp={}", ["2009", "2013", "today"][tcp]));
        profile.initial_window = iw;
        profile.path.down = LinkRate::Bps(down);
        profile.path.up = LinkRate::Bps(if shared { down } else { up });
        profile.path.rtt = Duration::from_nanos(rtt_ns);
        profile.path.jitter = Duration::from_micros(jitter_us);
        profile.path.loss_up = LossModel::bernoulli(Probability::from_ppb(loss_up).expect("below one"));
        profile.path.loss_down = LossModel::bernoulli(Probability::from_ppb(loss_down).expect("below one"));
        profile.path.queue = queue;
        if matches!(queue, QueueConfig::DropTail(_)) {
            profile.path.tick = Duration::from_micros(tick_us);
        }
        if shared {
            profile.path.topology = Topology::Shared { passes: 2 };
        }
        let back = parse(&profile.to_string());
        prop_assert_eq!(&back.path, &profile.path, "{}", profile);
        prop_assert_eq!(back.tcp(), profile.tcp());
    }

    /// No text makes the parser panic.
    #[test]
    fn any_text_is_parsed_or_rejected(text in "[a-z0-9=,.%:]{0,40}") {
        let _ = text.parse::<Profile>();
    }
}
