//! Experiments and pages that are part of the program, by name.

use spdy_page::builtin;
use spdy_page::replica::Replica;

use crate::lulic;
use crate::pages::mineki;

/// Names of the experiments, for [`experiment`].
pub const EXPERIMENTS: [&str; 3] = ["lulic", "mineki", "mineki-loses"];

/// Names of the pages, for [`page`].
pub const PAGES: [&str; 8] = [
    "flags",
    "portal",
    "mineki",
    "mineki-fresh",
    "lulic-flags",
    "lulic-bing",
    "lulic-yahoo",
    "lulic-amazon",
];

/// The text of a shipped experiment; `None` if it does not exist.
#[must_use]
pub fn experiment(name: &str) -> Option<&'static str> {
    match name {
        "lulic" => Some(include_str!("../../experiments/lulic.toml")),
        "mineki" => Some(include_str!("../../experiments/mineki.toml")),
        "mineki-loses" => Some(include_str!("../../experiments/mineki-loses.toml")),
        _ => None,
    }
}

/// A shipped page, of the lab or of [`spdy_page::builtin`]; `None` if it does not exist.
#[must_use]
pub fn page(name: &str) -> Option<Replica> {
    match name {
        "flags" => Some(builtin::flags()),
        "portal" => Some(builtin::portal()),
        "mineki" => Some(mineki::page()),
        "mineki-fresh" => Some(mineki::fresh_page()),
        _ => lulic::pages::page(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::plan::Plan;

    #[test]
    fn every_shipped_experiment_is_one_of_its_name_and_its_pages_are_there() {
        for name in EXPERIMENTS {
            let plan = Plan::parse(experiment(name).unwrap()).unwrap();
            assert_eq!(plan.name(), name);
            for name in plan.pages() {
                assert!(page(name).is_some(), "{name}");
            }
        }
        for name in PAGES {
            assert!(page(name).is_some(), "{name}");
        }
        let of_others = builtin::NAMES.into_iter().chain(lulic::pages::NAMES);
        assert!(of_others.into_iter().all(|name| PAGES.contains(&name)));
    }

    #[test]
    fn lulics_experiment_is_3528_loads_over_the_labelled_links() {
        use crate::experiment::conditions::Conditions;
        let plan = Plan::parse(experiment("lulic").unwrap()).unwrap();
        assert_eq!((plan.len(), plan.runs()), (504, 7));
        for measured in lulic::cells() {
            let cell = plan.cells().find(|cell| {
                cell.protocol().name() == measured.protocol
                    && cell.levels()[0].1 == format!("{}kbit", measured.bandwidth_kbps)
                    && cell.levels()[1].1 == format!("{}ms", measured.delay_label_ms)
            });
            let conditions = Conditions::of(&cell.unwrap()).unwrap();
            let label = measured.network().unwrap();
            assert_eq!(conditions.network.profile.path, label.profile.path);
            assert_eq!(conditions.options, spdy_sim::options::Options::lulic());
        }
    }
}
