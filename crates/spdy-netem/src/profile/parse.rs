//! Parses a network.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::error::{ProfileError, nearest};
use super::named::{named, names};
use super::network_profile::Profile;
use super::value::{self, Era};
use crate::loss::{LossModel, Probability};
use crate::path::{PathConfig, Topology};
use crate::queue::QueueConfig;
use crate::trace::Trace;
use crate::wire::LinkRate;

/// Largest number of passes.
const MAX_PASSES: u32 = 16;
/// Largest initial window, segments.
const MAX_INITIAL_WINDOW: u32 = 1_000;

const KEYS: [&str; 16] = [
    "down",
    "up",
    "rate",
    "rtt",
    "jitter",
    "reorder",
    "loss",
    "loss_up",
    "loss_down",
    "burst",
    "queue",
    "pipe",
    "passes",
    "tick",
    "tcp",
    "iw",
];

/// The settings as written, each once.
struct Settings<'a>(BTreeMap<&'static str, &'a str>);

impl<'a> Settings<'a> {
    fn read(parts: impl Iterator<Item = &'a str>) -> Result<Self, ProfileError> {
        let mut settings = BTreeMap::new();
        for part in parts {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| ProfileError::NotASetting {
                    found: part.to_owned(),
                })?;
            let (key, value) = (key.trim(), value.trim());
            let Some(key) = KEYS.iter().find(|candidate| **candidate == key) else {
                let found = key.to_owned();
                return Err(ProfileError::UnknownKey {
                    nearest: nearest(&found, &KEYS),
                    found,
                    keys: &KEYS,
                });
            };
            if settings.insert(*key, value).is_some() {
                return Err(ProfileError::Twice { key });
            }
        }
        Ok(Self(settings))
    }

    fn has(&self, key: &'static str) -> bool {
        self.0.contains_key(key)
    }

    /// The capacity that `key` sets.
    fn take_rate(
        &self,
        key: &'static str,
        read_trace: ReadTrace<'_>,
    ) -> Result<Option<LinkRate>, ProfileError> {
        let text = self.0.get(key).copied().unwrap_or_default();
        let file = text.strip_prefix("trace:").map(str::trim_start);
        if let Some(file) = file.filter(|file| !file.is_empty()) {
            let unusable = |reason| ProfileError::Trace {
                key,
                file: file.to_owned(),
                reason,
            };
            let trace = read_trace(file).map_err(unusable)?;
            return Ok(Some(LinkRate::Trace(trace)));
        }
        let bps = self.take(key, value::EXPECTED_RATE, value::rate_bps)?;
        Ok(bps.map(LinkRate::Bps))
    }

    /// The value of `key`, parsed by `read`.
    fn take<T>(
        &self,
        key: &'static str,
        expected: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ProfileError> {
        let Some(text) = self.0.get(key) else {
            return Ok(None);
        };
        let bad = || ProfileError::BadValue {
            key,
            found: (*text).to_owned(),
            expected,
        };
        read(text).map(Some).ok_or_else(bad)
    }
}

/// Reads the trace in the file with this name, or returns why it is unusable.
type ReadTrace<'a> = &'a dyn Fn(&str) -> Result<Trace, String>;

impl FromStr for Profile {
    type Err = ProfileError;

    /// Parses a name, settings, or a name followed by settings; see the [module](crate::profile). A network with a trace is an error: see
    /// [`Profile::parse`].
    fn from_str(text: &str) -> Result<Self, ProfileError> {
        Self::parse(text, &|_| {
            Err("expected a rate: no file is read here".to_owned())
        })
    }
}

impl Profile {
    /// Parses a network. `read_trace` reads the trace in the file with a name that it contains, or returns why that is unusable.
    ///
    /// # Errors
    ///
    /// The name, the setting or the trace that is invalid, and what was expected.
    pub fn parse(
        text: &str,
        read_trace: &dyn Fn(&str) -> Result<Trace, String>,
    ) -> Result<Self, ProfileError> {
        let mut parts = text.split(',').map(str::trim).peekable();
        let first = parts.peek().copied().unwrap_or_default();
        if first.contains('=') {
            return from_settings(&Settings::read(parts)?, read_trace);
        }
        if text.trim().is_empty() {
            return Err(ProfileError::Empty {
                names: names().to_vec(),
            });
        }
        parts.next();
        let base = named(first).ok_or_else(|| unknown_name(first))?;
        change(base, &Settings::read(parts)?, read_trace)
    }
}

fn unknown_name(found: &str) -> ProfileError {
    let head = found.split(':').next().unwrap_or_default();
    let heads: Vec<_> = names()
        .iter()
        .map(|name| name.split(':').next().unwrap_or(name))
        .collect();
    let nearest = nearest(head, &heads).map(|head| {
        names()
            .iter()
            .rfind(|name| name.split(':').next() == Some(&head))
            .map_or(head, |name| (*name).to_owned())
    });
    ProfileError::UnknownName {
        found: found.to_owned(),
        nearest,
        names: names().to_vec(),
    }
}

fn from_settings(
    settings: &Settings<'_>,
    read_trace: ReadTrace<'_>,
) -> Result<Profile, ProfileError> {
    for key in ["down", "up"] {
        if !settings.has(key) && !settings.has("rate") {
            return Err(ProfileError::Missing { key });
        }
    }
    if !settings.has("rtt") {
        return Err(ProfileError::Missing { key: "rtt" });
    }
    let base = Profile {
        name: None,
        source: "custom settings",
        path: PathConfig::new(1, 1, std::time::Duration::ZERO),
        era: Era::Today,
        initial_window: None,
    };
    change(base, settings, read_trace)
}

/// `base`, changed by `settings`.
fn change(
    base: Profile,
    settings: &Settings<'_>,
    read_trace: ReadTrace<'_>,
) -> Result<Profile, ProfileError> {
    let Profile {
        mut name,
        source,
        mut path,
        mut era,
        mut initial_window,
    } = base;
    if !settings.0.is_empty() {
        name = None;
    }
    let conflict = |what: &str| {
        Err(ProfileError::Conflict {
            what: what.to_owned(),
        })
    };
    if settings.has("rate") && (settings.has("up") || settings.has("down")) {
        return conflict("rate sets both down and up: give either rate, or down and up");
    }
    if let Some(rate) = settings.take_rate("rate", read_trace)? {
        (path.down, path.up) = (rate.clone(), rate);
    }
    set(&mut path.down, settings.take_rate("down", read_trace)?);
    set(&mut path.up, settings.take_rate("up", read_trace)?);
    set(
        &mut path.rtt,
        settings.take("rtt", value::EXPECTED_TIME, value::time)?,
    );
    set(
        &mut path.jitter,
        settings.take("jitter", value::EXPECTED_TIME, value::time)?,
    );
    set(
        &mut path.reorder,
        settings.take("reorder", "yes or no", yes_or_no)?,
    );
    set(
        &mut path.queue,
        settings.take("queue", value::EXPECTED_QUEUE, value::queue)?,
    );
    set(
        &mut path.tick,
        settings.take("tick", value::EXPECTED_TICK, value::tick)?,
    );
    set_losses(&mut path, settings)?;
    let is_traced = [&path.up, &path.down]
        .into_iter()
        .any(|rate| matches!(rate, LinkRate::Trace(_)));
    let is_drop_tail = matches!(path.queue, QueueConfig::DropTail(_));
    if !path.tick.is_zero() && (is_traced || !is_drop_tail) {
        return conflict(
            "tick is a timer of links with a rate and a drop-tail queue: add tick=0, or give no trace, codel or fq_codel",
        );
    }

    let shared = settings.take("pipe", "two or shared", |text| match text {
        "two" => Some(false),
        "shared" => Some(true),
        _ => None,
    })?;
    let passes = settings.take("passes", "a number from 1 to 16", |text| {
        value::count(text, 1..=MAX_PASSES)
    })?;
    path.topology = match (shared, path.topology, passes) {
        (Some(false), _, Some(_)) | (None, Topology::TwoPipes, Some(_)) => {
            return conflict("passes needs a shared pipe: add pipe=shared");
        }
        (Some(false), ..) | (None, Topology::TwoPipes, None) => Topology::TwoPipes,
        (_, topology, passes) => Topology::Shared {
            passes: passes.unwrap_or(topology.passes()),
        },
    };
    if path.topology != Topology::TwoPipes && path.up != path.down {
        return conflict("a shared pipe has one rate: give rate instead of down and up");
    }
    set(
        &mut era,
        settings.take("tcp", "2009, 2013 or today", era_of)?,
    );
    let initial = settings.take("iw", "a number of segments from 1 to 1000", |text| {
        value::count(text, 1..=MAX_INITIAL_WINDOW)
    })?;
    initial_window = initial.or(initial_window);
    Ok(Profile {
        name,
        source,
        path,
        era,
        initial_window,
    })
}

fn set_losses(path: &mut PathConfig, settings: &Settings<'_>) -> Result<(), ProfileError> {
    let each = settings.has("loss_up") || settings.has("loss_down");
    if settings.has("loss") && each {
        let what =
            "loss sets both loss_up and loss_down: give either loss, or loss_up and loss_down"
                .to_owned();
        return Err(ProfileError::Conflict { what });
    }
    let both = settings.take("loss", value::EXPECTED_LOSS, value::probability)?;
    let up = settings
        .take("loss_up", value::EXPECTED_LOSS, value::probability)?
        .or(both);
    let down = settings
        .take("loss_down", value::EXPECTED_LOSS, value::probability)?
        .or(both);
    let burst = settings.take("burst", "a number of packets from 1 to 1000", |text| {
        value::count(text, 1..=1_000)
    })?;
    let model = |loss: Probability| match burst {
        None | Some(1) => Ok(LossModel::bernoulli(loss)),
        Some(packets) => LossModel::bursts(loss, packets).ok_or_else(|| ProfileError::Conflict {
            what: format!("a loss of {loss} is impossible with bursts of {packets} packets"),
        }),
    };
    if burst.is_some() && up.is_none() && down.is_none() {
        let what = "burst groups losses and needs a loss: add loss".to_owned();
        return Err(ProfileError::Conflict { what });
    }
    if let Some(loss) = up {
        path.loss_up = model(loss)?;
    }
    if let Some(loss) = down {
        path.loss_down = model(loss)?;
    }
    Ok(())
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

fn era_of(text: &str) -> Option<Era> {
    [Era::Y2009, Era::Y2013, Era::Today]
        .into_iter()
        .find(|era| era.to_string() == text)
}
