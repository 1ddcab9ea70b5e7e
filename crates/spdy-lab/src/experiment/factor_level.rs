//! The levels of factors: their syntax, and the options that they set.

use std::num::{NonZeroU32, NonZeroUsize};
use std::str::FromStr;
use std::time::Duration;

use spdy_frame::compress::Compression;
use spdy_net::tls::TlsVersion;
use spdy_netem::profile::{Era, Profile};
use spdy_sim::load::{MAX_PAUSE, MAX_SHARDS};
use spdy_sim::network::dns::NameLookups;
use spdy_sim::options::{
    Deployment, MAX_FRAME_BYTES, MAX_THINK_TIME_SCALE, MIN_FRAME_BYTES, Options, Scheduler,
    UnknownAccelerator, UnknownCache,
};

use crate::experiment::clock::Clock;
use crate::experiment::factor::{Factor, FactorKind};
use crate::experiment::server_program::{ServerProgram, UnknownServer};

impl Factor {
    /// Checks that `level` is a valid level of it by itself.
    ///
    /// # Errors
    ///
    /// The invalid level, and what was expected.
    pub(crate) fn check(self, level: &str) -> Result<(), String> {
        let refused = |error: spdy_netem::profile::ProfileError| error.to_string();
        match self.kind() {
            FactorKind::Base => level.parse::<Profile>().map(|_| ()).map_err(refused),
            FactorKind::Delay => probe("rtt", level).map(|_| ()).map_err(|_| {
                format!("invalid level delay={level}: expected a time with its unit, such as 50ms")
            }),
            FactorKind::Setting(name) => probe(name, level).map(|_| ()).map_err(refused),
            FactorKind::Choice => self.apply(level, &mut Options::default()),
        }
    }

    /// Sets the option of this factor to `level` in `options`; other factors change nothing.
    ///
    /// # Errors
    ///
    /// The invalid level, and what was expected.
    pub(crate) fn apply(self, level: &str, options: &mut Options) -> Result<(), String> {
        let invalid = |what: &str| format!("invalid level {self}={level}: expected {what}");
        match self {
            Self::Preset => {
                let names = Options::PRESETS.join(" or ");
                *options = Options::preset(level).ok_or_else(|| invalid(&names))?;
            }
            Self::Tcp => {
                let eras = [Era::Y2009, Era::Y2013, Era::Today];
                let era = eras.into_iter().find(|era| era.to_string() == level);
                options.tcp_era = Some(era.ok_or_else(|| invalid("2009, 2013 or today"))?);
            }
            Self::InitialWindow => {
                let segments = count(level, 1_000)
                    .ok_or_else(|| invalid("a number of segments from 1 to 1000"))?;
                options.initial_window = Some(segments);
            }
            Self::Tls => {
                let version = level.parse::<TlsVersion>();
                options.tls = version.map_err(|_| invalid("1.2 or 1.3"))?;
            }
            Self::MlKem => options.ml_kem = yes_or_no(level).ok_or_else(|| invalid(SWITCH))?,
            Self::Resumption => {
                options.tls_resumption = yes_or_no(level).ok_or_else(|| invalid(SWITCH))?;
            }
            Self::Dns => {
                options.name_lookups = match level {
                    "round-trip" => NameLookups::RoundTrip,
                    "hosts-file" => NameLookups::HostsFile,
                    _ => return Err(invalid("round-trip or hosts-file")),
                }
            }
            Self::Connections => {
                let connections =
                    count(level, u32::MAX).and_then(|count| usize::try_from(count).ok());
                let connections = connections.and_then(NonZeroUsize::new);
                options.http1_connections =
                    connections.ok_or_else(|| invalid("a number from 1"))?.get();
            }
            Self::Streams => {
                options.max_concurrent_streams =
                    count(level, u32::MAX).ok_or_else(|| invalid("a number from 1"))?;
            }
            Self::Compression => {
                options.spdy_compression = match (level, level.parse()) {
                    ("masked", _) => Compression::CrimeSafe,
                    (_, Ok(depth @ 0..=9)) => Compression::Zlib(depth),
                    _ => return Err(invalid("masked, or a zlib level from 0 to 9")),
                }
            }
            Self::HeaderWindow => {
                let bits = level.parse().ok().filter(|bits| (11..=15).contains(bits));
                options.spdy_window_bits =
                    Some(bits.ok_or_else(|| invalid("a power of two from 11 to 15"))?);
            }
            Self::IpPooling => {
                options.ip_pooling = yes_or_no(level).ok_or_else(|| invalid(SWITCH))?;
            }
            Self::Push => options.push = level.parse().map_err(|_| invalid("no, yes or all"))?,
            Self::Deploy => {
                let names = Deployment::ALL.map(Deployment::name).join(" or ");
                options.deployment = level.parse().map_err(|_| invalid(&names))?;
            }
            Self::Priorities => {
                options.priorities = yes_or_no(level).ok_or_else(|| invalid(SWITCH))?;
            }
            Self::Scheduler => {
                let names = Scheduler::ALL.map(Scheduler::name).join(" or ");
                options.scheduler = level.parse().map_err(|_| invalid(&names))?;
            }
            Self::Hints => options.hints = yes_or_no(level).ok_or_else(|| invalid(SWITCH))?,
            Self::Cache => {
                let cache = level.parse();
                options.cache = cache.map_err(|unknown: UnknownCache| unknown.to_string())?;
            }
            Self::Frame => {
                let bytes = count(level, MAX_FRAME_BYTES).filter(|bytes| *bytes >= MIN_FRAME_BYTES);
                let range =
                    format!("a number of bytes from {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES}");
                options.data_frame_bytes = bytes.ok_or_else(|| invalid(&range))?;
            }
            Self::Accelerator => {
                let accelerator = level.parse();
                options.accelerator =
                    accelerator.map_err(|unknown: UnknownAccelerator| unknown.to_string())?;
            }
            Self::Backhaul => {
                let time = probe("rtt", level);
                let profile = time.map_err(|_| invalid("a time with its unit, such as 20ms"))?;
                options.backhaul = profile.path.rtt;
            }
            Self::Prefetch => options.prefetch = yes_or_no(level).ok_or_else(|| invalid(SWITCH))?,
            Self::Urls => {
                options.paper_urls = match level {
                    "ours" => false,
                    "paper" => true,
                    _ => return Err(invalid("ours or paper")),
                }
            }
            Self::Think => {
                let scale = think_time_scale(level);
                let range = format!("a number from 0 to {MAX_THINK_TIME_SCALE}, such as 0.5");
                options.think_time_scale = scale.ok_or_else(|| invalid(&range))?;
            }
            // Properties of the page or of the cell, and no options of a load: `Conditions` has them.
            Self::Shard => shards(level)
                .map(|_| ())
                .ok_or_else(|| invalid(&format!("a number of hosts from 1 to {MAX_SHARDS}")))?,
            Self::Fold => yes_or_no(level)
                .map(|_| ())
                .ok_or_else(|| invalid(SWITCH))?,
            Self::Visit => {
                let most = MAX_PAUSE.as_secs();
                let range = format!("no, or a pause with its unit of at most {most}s, such as 10s");
                visit(level).map(|_| ()).ok_or_else(|| invalid(&range))?;
            }
            Self::Clock => {
                let clock = level.parse::<Clock>().map(|_| ());
                clock.map_err(|_| invalid("virtual or real"))?;
            }
            Self::Server => {
                let server = level.parse::<ServerProgram>().map(|_| ());
                server.map_err(|unknown: UnknownServer| unknown.to_string())?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// An option of a load by itself, such as `tls=1.2`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LoadChoice {
    /// The factor.
    pub factor: Factor,
    /// Its level.
    pub level: String,
}

impl LoadChoice {
    /// `level` of `factor`.
    ///
    /// # Errors
    ///
    /// The invalid level, and what was expected.
    pub fn new(factor: Factor, level: &str) -> Result<Self, String> {
        factor.check(level)?;
        let level = level.to_owned();
        Ok(Self { factor, level })
    }
}

impl FromStr for LoadChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, level) = text
            .split_once('=')
            .ok_or("expected FACTOR=LEVEL, such as tls=1.2")?;
        match Factor::named(name) {
            Some(factor) if factor.is_load_option() => Self::new(factor, level),
            Some(factor @ (Factor::Clock | Factor::Server)) => Err(format!(
                "{factor} is a factor of experiments: use spdy lab run"
            )),
            Some(_) => Err(format!("{name} is a setting of the network: use --network")),
            None => {
                let names = Factor::ALL.into_iter();
                let names = names.filter(|factor| factor.is_load_option());
                let names: Vec<_> = names.map(Factor::name).collect();
                Err(format!(
                    "unknown factor {name}: expected one of {}",
                    names.join(", ")
                ))
            }
        }
    }
}

const SWITCH: &str = "yes or no";

fn yes_or_no(level: &str) -> Option<bool> {
    match level {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Number of hosts for a page's own resources.
pub(super) fn shards(level: &str) -> Option<NonZeroU32> {
    count(level, MAX_SHARDS).and_then(NonZeroU32::new)
}

/// The pause between two pages of a visit; `Some(None)` without a visit.
pub(super) fn visit(level: &str) -> Option<Option<Duration>> {
    if level == "no" {
        return Some(None);
    }
    // A comma would begin another setting.
    let level = Some(level).filter(|level| !level.contains(','))?;
    let pause = probe("rtt", level).ok()?.path.rtt;
    (pause <= MAX_PAUSE).then_some(Some(pause))
}

/// A factor for think times: a decimal number from 0 to [`MAX_THINK_TIME_SCALE`].
fn think_time_scale(level: &str) -> Option<f64> {
    let is_decimal = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let scale = level
        .parse()
        .ok()
        .filter(|_| level.bytes().all(is_decimal))?;
    (0.0..=MAX_THINK_TIME_SCALE)
        .contains(&scale)
        .then_some(scale)
}

/// A whole number from 1 to `most`, of digits only.
fn count(level: &str, most: u32) -> Option<u32> {
    let digits = level.bytes().all(|byte| byte.is_ascii_digit());
    let number = level.parse().ok().filter(|_| digits)?;
    (1..=most).contains(&number).then_some(number)
}

/// Parses one setting in a network that is valid with it.
fn probe(name: &str, level: &str) -> Result<Profile, spdy_netem::profile::ProfileError> {
    // The first error is reported, so a setting follows those that it depends on.
    let base = match name {
        "rate" | "down" | "up" => "rtt=1ms",
        "rtt" => "rate=1mbit",
        "passes" => "rate=1mbit,rtt=1ms,pipe=shared",
        "burst" => "rate=1mbit,rtt=1ms,loss=1%",
        _ => "rate=1mbit,rtt=1ms",
    };
    let other = match name {
        "down" => ",up=1mbit",
        "up" => ",down=1mbit",
        _ => "",
    };
    format!("{base}{other},{name}={level}").parse::<Profile>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_choice_is_a_factor_of_loads_with_a_valid_level() {
        let choice: LoadChoice = "cache=warm:1h".parse().unwrap();
        assert_eq!(
            (choice.factor, &choice.level[..]),
            (Factor::Cache, "warm:1h")
        );
        for (wrong, expected) in [
            ("tls", "expected FACTOR=LEVEL"),
            ("tsl=1.2", "unknown factor tsl: expected one of preset, tcp"),
            ("tls=1.1", "expected 1.2 or 1.3"),
            ("rtt=9ms", "rtt is a setting of the network"),
            ("clock=real", "spdy lab run"),
            ("server=nginx", "spdy lab run"),
            ("header_window=16", "from 11 to 15"),
        ] {
            let message = wrong.parse::<LoadChoice>().expect_err(wrong);
            assert!(message.contains(expected), "{wrong}: {message}");
        }
    }

    #[test]
    fn every_factor_accepts_valid_levels_and_rejects_others() {
        let right = [
            ("network", "dsl"),
            ("network", "down=2mbit,up=1mbit,rtt=9ms"),
            ("rate", "2mbit"),
            ("down", "2mbit"),
            ("up", "384kbit"),
            ("rtt", "100ms"),
            ("delay", "0"),
            ("jitter", "1ms"),
            ("reorder", "yes"),
            ("loss", "1%"),
            ("loss_up", "0.01"),
            ("loss_down", "0"),
            ("burst", "4"),
            ("queue", "50p"),
            ("pipe", "shared"),
            ("passes", "2"),
            ("tick", "10ms"),
            ("preset", "lulic"),
            ("tcp", "2009"),
            ("initial_window", "3"),
            ("tls", "1.2"),
            ("resumption", "no"),
            ("ml_kem", "yes"),
            ("dns", "hosts-file"),
            ("connections", "6"),
            ("streams", "100"),
            ("compression", "masked"),
            ("header_window", "11"),
            ("ip_pooling", "yes"),
            ("push", "no"),
            ("fold", "yes"),
            ("deploy", "first-party"),
            ("priorities", "no"),
            ("scheduler", "chromium"),
            ("hints", "yes"),
            ("shard", "4"),
            ("cache", "warm:1h"),
            ("frame", "4096"),
            ("accelerator", "warm"),
            ("backhaul", "20ms"),
            ("prefetch", "no"),
            ("urls", "paper"),
            ("think", "0.5"),
            ("visit", "10s"),
            ("clock", "real"),
            ("server", "nginx"),
        ];
        let mut seen: Vec<_> = right.iter().map(|(name, _)| *name).collect();
        seen.dedup();
        assert_eq!(seen, Factor::ALL.map(Factor::name));
        for (name, level) in right {
            let factor = Factor::named(name).unwrap();
            assert_eq!(factor.check(level), Ok(()), "{name}={level}");
            for wrong in ["wrong", "-1", "1001000x", ""] {
                let message = factor.check(wrong).expect_err(name);
                assert!(
                    !message.is_empty() && !message.contains("1mbit,"),
                    "{name}={wrong}: {message}"
                );
            }
        }
    }
}
