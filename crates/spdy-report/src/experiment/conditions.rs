//! The conditions of an experiment: at the head of its page, and under each figure that is a separate file.

use spdy_lab::experiment::clock::Clock;
use spdy_lab::experiment::plan::Plan;
use spdy_lab::store::manifest::Manifest;
use spdy_sim::model;
use spdy_sim::options::RaceProtocol;

use super::data::ReportData;

/// Levels of a factor that are listed one by one; of more levels only the ends are.
const MAX_LISTED: usize = 8;
/// Characters of the plan's hash: enough to tell plans apart.
const HASH_CHARS: usize = 16;

/// Names and values.
pub(super) struct Conditions(Vec<(String, String)>);

impl Conditions {
    pub(super) fn of(contents: &Manifest, data: &ReportData) -> Self {
        let is_imported = contents.program.is_empty();
        let pair = |name: &str, value: String| (name.to_owned(), value);
        let mut all = vec![pair("pages", list(&data.pages))];
        all.extend(data.constant.iter().cloned());
        all.extend(data.factors.iter().map(|factor| {
            let levels: Vec<_> = factor.levels.iter().map(|(level, _)| level).collect();
            (factor.name.clone(), list(&levels))
        }));
        all.push(pair("protocols", list(&data.protocols)));
        if !is_imported {
            let protocols = data.protocols.iter();
            all.extend(protocols.filter_map(|name| {
                let protocol: RaceProtocol = name.parse().ok()?;
                Some(pair(name, protocol.limitation()?.to_owned()))
            }));
        }
        all.push(pair("runs per cell", contents.runs.to_string()));
        if let Ok(plan) = Plan::parse(&contents.plan) {
            all.push(pair("seed", plan.seed().to_string()));
        }
        if !is_imported && !all.iter().any(|(name, _)| name == "clock") {
            all.push(pair("clock", Clock::default().to_string()));
        }
        let version = contents.model.map(model::format);
        all.extend(version.map(|version| pair("model", version)));
        let program = match is_imported {
            true => "imported".to_owned(),
            false => format!("spdy {}", contents.program),
        };
        all.push(pair("program", program));
        all.push(pair(
            "plan",
            contents.hash.chars().take(HASH_CHARS).collect(),
        ));
        Self(all)
    }

    pub(super) fn notes(&self) -> &[(String, String)] {
        &self.0
    }

    /// All of them as text under a figure with this title.
    pub(super) fn under(&self, title: &str) -> String {
        let pairs = self
            .0
            .iter()
            .map(|(name, value)| format!("{name}: {value}"));
        format!("{title}\n{}", pairs.collect::<Vec<_>>().join("; "))
    }
}

fn list(values: &[impl AsRef<str>]) -> String {
    match values {
        [first, .., last] if values.len() > MAX_LISTED => {
            let (first, last) = (first.as_ref(), last.as_ref());
            format!("{first} to {last} ({} levels)", values.len())
        }
        values => {
            let values: Vec<_> = values.iter().map(AsRef::as_ref).collect();
            values.join(", ")
        }
    }
}
