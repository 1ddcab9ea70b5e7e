//! The description of a store's results. It must be equal for loads of one experiment.

use std::collections::BTreeSet;

use spdy_sim::model::{self, MODEL_VERSION};

use crate::experiment::plan::Plan;
use crate::experiment::runner::Runner;

/// The description of a store's results.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Manifest {
    /// Name of the experiment.
    pub name: String,
    /// Hash of its plan; for imported results, of the file.
    pub hash: String,
    /// The version of the program that created them; empty for another program.
    pub program: String,
    /// The model ([`spdy_sim::model`]) of its loads; `None` without loads, or for another program.
    pub model: Option<u64>,
    /// Loads of each cell.
    pub runs: u64,
    /// Number of cells of the whole plan.
    pub cells: u64,
    /// The plan in its canonical form; empty for another program.
    pub plan: String,
    /// Name and fingerprint of each page, in the plan's order.
    pub pages: Vec<(String, String)>,
}

impl Manifest {
    /// The description of the loads of `runner` with the version `program`.
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

    /// Keys of the plan's cells that are not in `there`, in the plan's order; empty if this program cannot parse the plan.
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

/// A short form of a hash for people.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
