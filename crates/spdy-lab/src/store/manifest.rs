//! Whose results a store holds: what must be the same for two loads to be of one experiment.

use std::collections::BTreeSet;

use spdy_sim::model::{self, MODEL_VERSION};

use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;

/// Whose results a store holds.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Manifest {
    /// Name of the experiment.
    pub name: String,
    /// Hash of its plan; of imported results, of the file they came from.
    pub hash: String,
    /// The version of the program that made them; empty if it was no version of this one.
    pub program: String,
    /// The model ([`spdy_sim::model`]) of its loads; nothing if it has none yet, or none of this program.
    pub model: Option<u64>,
    /// Loads of each cell.
    pub runs: u64,
    /// Cells when all are done.
    pub cells: u64,
    /// The plan in its canonical form; empty if it was none of this program.
    pub plan: String,
    /// Name and fingerprint of each page, in the plan's order.
    pub pages: Vec<(String, String)>,
}

impl Manifest {
    /// What `runner` loads with the version `program`.
    #[must_use]
    pub fn of(runner: &Runner, program: &str) -> Self {
        let plan = runner.plan();
        let pages = plan.pages().iter().zip(runner.fingerprints());
        Self {
            name: plan.name().to_owned(),
            hash: plan.hash(),
            program: program.to_owned(),
            model: Some(MODEL_VERSION),
            runs: plan.runs().into(),
            cells: plan.len() as u64,
            plan: plan.canonical(),
            pages: pages
                .map(|(name, fingerprint)| (name.clone(), fingerprint.as_str().to_owned()))
                .collect(),
        }
    }

    /// Keys of the cells of the plan that are not among `there`, in the plan's order; none if it is no plan that this program
    /// can read.
    #[must_use]
    pub fn missing(&self, there: &BTreeSet<&str>) -> Vec<String> {
        let Ok(plan) = Plan::parse(&self.plan) else {
            return Vec::new();
        };
        let keys = plan.cells().map(|cell| cell.key());
        keys.filter(|key| !there.contains(&key[..])).collect()
    }

    /// What differs between `self` and `expected`: its name, the value in `self` and the value in `expected`.
    pub(crate) fn difference_from(
        &self,
        expected: &Self,
    ) -> Option<(&'static str, String, String)> {
        let named = |name: &str, hash: &str| format!("{name} ({})", short(hash));
        if self.hash != expected.hash {
            let plan = |it: &Self| named(&it.name, &it.hash);
            return Some(("the plan", plan(self), plan(expected)));
        }
        let mut ours = self.pages.iter();
        for (name, fingerprint) in &expected.pages {
            let found = ours.next().map_or("", |(_, fingerprint)| fingerprint);
            if found != fingerprint {
                return Some(("the page", named(name, found), named(name, fingerprint)));
            }
        }
        let version = |it: &Self| it.program.clone();
        if self.program != expected.program {
            return Some(("the version", version(self), version(expected)));
        }
        match (self.model, expected.model) {
            (Some(found), Some(expected)) if found != expected => {
                Some(("the model", model::format(found), model::format(expected)))
            }
            _ => None,
        }
    }
}

/// As much of a hash as people compare.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
