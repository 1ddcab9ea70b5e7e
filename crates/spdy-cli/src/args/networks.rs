//! Networks by name, or spelled out, as the command line has them.

use spdy_lab::network_spec::parse_network;
use spdy_sim::race::RaceNetwork;

use crate::outcome::Usage;

/// Default networks of `spdy race`: common access networks, from the slowest to the farthest.
const NETWORKS: [&str; 6] = ["dsl", "cable", "3g", "lte", "fibre", "satellite"];

/// Parses the networks of `requested`, without duplicates; if it is empty, the default networks.
pub(crate) fn networks(requested: &[String]) -> anyhow::Result<Vec<RaceNetwork>> {
    let mut specs: Vec<&str> = match requested {
        [] => NETWORKS.to_vec(),
        requested => requested
            .iter()
            .flat_map(|word| split_names(word))
            .collect(),
    };
    retain_first(&mut specs);
    let network = |spec: &str| {
        let profile = parse_network(spec);
        let profile = profile.map_err(|error| Usage(format!("--network {spec}: {error}")))?;
        Ok(RaceNetwork {
            name: spec.to_owned(),
            profile,
        })
    };
    specs.into_iter().map(network).collect()
}

/// Splits an argument into names at commas. A specification contains commas itself and is not split.
fn split_names(word: &str) -> Vec<&str> {
    if word.contains('=') {
        vec![word]
    } else {
        word.split(',').collect()
    }
}

/// Removes duplicates from `items`.
pub(crate) fn retain_first<T: PartialEq + Clone>(items: &mut Vec<T>) {
    let mut seen = Vec::with_capacity(items.len());
    items.retain(|item| {
        let new = !seen.contains(item);
        if new {
            seen.push(item.clone());
        }
        new
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_networks_may_share_an_argument_and_a_specification_may_not() {
        assert_eq!(split_names("dsl,3g"), ["dsl", "3g"]);
        assert_eq!(
            split_names("down=2mbit,up=1mbit,rtt=9ms"),
            ["down=2mbit,up=1mbit,rtt=9ms"]
        );
    }

    #[test]
    fn an_unknown_network_is_a_usage_error_that_lists_the_names() {
        let error = networks(&["dls".to_owned()]).unwrap_err();
        let usage = error
            .downcast_ref::<Usage>()
            .expect("the error is a usage error");
        for name in NETWORKS {
            assert!(usage.0.contains(name), "no {name} in {}", usage.0);
        }
    }
}
