//! The loads of a race, grouped by page, network and protocol.

use crate::load::Load;
use crate::race::typical_run;

/// The loads of a race by page, network and protocol, each in the order in which it first appears.
#[derive(Clone, Debug)]
pub struct RaceResults<'a> {
    /// A race for each page.
    pub pages: Vec<PageRace<'a>>,
}

/// The race of one page.
#[derive(Clone, Debug)]
pub struct PageRace<'a> {
    /// Name of the replica.
    pub replica: &'a str,
    /// Its races, one for each network.
    pub networks: Vec<NetworkRace<'a>>,
}

/// The race of one page over one network.
#[derive(Clone, Debug)]
pub struct NetworkRace<'a> {
    /// Name of the network.
    pub network: &'a str,
    /// The protocols of the race.
    pub protocols: Vec<ProtocolLoads<'a>>,
}

/// One protocol in one race, with all its runs.
#[derive(Clone, Debug)]
pub struct ProtocolLoads<'a> {
    /// `http`, `https`, `spdy`, `h2`.
    pub protocol: &'a str,
    /// Its loads, fastest first; never empty.
    pub loads: Vec<&'a Load>,
}

impl<'a> RaceResults<'a> {
    /// Sorts `loads`.
    #[must_use]
    pub fn of(loads: &'a [Load]) -> Self {
        let mut pages: Vec<PageRace<'a>> = Vec::new();
        for load in loads {
            let page = entry(
                &mut pages,
                |page| page.replica == load.replica,
                || PageRace {
                    replica: &load.replica,
                    networks: Vec::new(),
                },
            );
            let over = entry(
                &mut page.networks,
                |over| over.network == load.network,
                || NetworkRace {
                    network: &load.network,
                    protocols: Vec::new(),
                },
            );
            let entrant = entry(
                &mut over.protocols,
                |entrant| entrant.protocol == load.protocol,
                || ProtocolLoads {
                    protocol: &load.protocol,
                    loads: Vec::new(),
                },
            );
            let place = entrant
                .loads
                .partition_point(|other| other.load_ms <= load.load_ms);
            entrant.loads.insert(place, load);
        }
        Self { pages }
    }

    /// Every protocol of the race, in the order in which they first appear.
    #[must_use]
    pub fn protocols(&self) -> Vec<&'a str> {
        let mut found = Vec::new();
        let entrants = self
            .pages
            .iter()
            .flat_map(|page| &page.networks)
            .flat_map(|over| &over.protocols);
        for entrant in entrants {
            if !found.contains(&entrant.protocol) {
                found.push(entrant.protocol);
            }
        }
        found
    }
}

/// The item for which `is` returns true, else a new one at the end.
fn entry<T>(items: &mut Vec<T>, is: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let at = items.iter().position(is).unwrap_or_else(|| {
        items.push(new());
        items.len() - 1
    });
    &mut items[at]
}

impl<'a> NetworkRace<'a> {
    /// The protocol that the others are compared with: `http`, or the first if `http` is missing.
    #[must_use]
    pub fn reference(&self) -> &ProtocolLoads<'a> {
        let http = self
            .protocols
            .iter()
            .find(|entrant| entrant.protocol == "http");
        http.unwrap_or(&self.protocols[0])
    }

    /// Load time of `entrant` over that of the [`reference`](Self::reference); below 1 is faster. `None` if the reference took no
    /// time, because it failed at once.
    #[must_use]
    pub fn ratio(&self, entrant: &ProtocolLoads<'_>) -> Option<f64> {
        let reference = self.reference().typical().load_ms;
        (reference > 0.0).then(|| entrant.typical().load_ms / reference)
    }

    /// The entrant of `protocol`, if there is one.
    #[must_use]
    pub fn protocol(&self, protocol: &str) -> Option<&ProtocolLoads<'a>> {
        self.protocols
            .iter()
            .find(|entrant| entrant.protocol == protocol)
    }

    /// The longest load of all runs, in milliseconds: the length of an axis.
    #[must_use]
    pub fn slowest_ms(&self) -> f64 {
        self.protocols
            .iter()
            .map(|entrant| entrant.slowest().load_ms)
            .fold(0.0, f64::max)
    }

    /// The shortest typical load in milliseconds, of protocols whose runs are all complete.
    #[must_use]
    pub fn best_ms(&self) -> f64 {
        self.protocols
            .iter()
            .filter(|entrant| entrant.is_whole())
            .map(|entrant| entrant.typical().load_ms)
            .fold(f64::INFINITY, f64::min)
    }
}

impl<'a> ProtocolLoads<'a> {
    /// The run in the middle (the faster of two): an actual load.
    #[must_use]
    pub fn typical(&self) -> &'a Load {
        self.loads[typical_run(self.loads.len())]
    }

    /// True if no exchange failed in any run: a load with failures is a load of another page.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.loads.iter().all(|load| load.failures.is_empty())
    }

    /// The fastest run.
    #[must_use]
    pub fn fastest(&self) -> &'a Load {
        self.loads[0]
    }

    /// The slowest run.
    #[must_use]
    pub fn slowest(&self) -> &'a Load {
        self.loads[self.loads.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(replica: &str, network: &str, protocol: &str, load_ms: f64) -> Load {
        Load {
            replica: replica.to_owned(),
            network: network.to_owned(),
            protocol: protocol.to_owned(),
            load_ms,
            ..Load::default()
        }
    }

    #[test]
    fn loads_are_sorted_by_page_network_and_protocol_in_order_of_appearance() {
        let loads = [
            load("b", "dsl", "spdy", 9.0),
            load("b", "dsl", "http", 18.0),
            load("a", "lte", "http", 1.0),
        ];
        let standings = RaceResults::of(&loads);
        let names: Vec<_> = standings.pages.iter().map(|page| page.replica).collect();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(standings.protocols(), ["spdy", "http"]);
        let over = &standings.pages[0].networks[0];
        assert_eq!(over.reference().protocol, "http");
        assert_eq!(
            over.ratio(over.protocol("spdy").expect("it ran")),
            Some(0.5)
        );
    }

    #[test]
    fn the_typical_run_is_the_one_in_the_middle() {
        let loads = [3.0, 1.0, 2.0, 9.0].map(|ms| load("a", "dsl", "http", ms));
        let standings = RaceResults::of(&loads);
        let entrant = &standings.pages[0].networks[0].protocols[0];
        let found =
            [entrant.fastest(), entrant.typical(), entrant.slowest()].map(|load| load.load_ms);
        assert_eq!(found, [1.0, 2.0, 9.0]);
    }

    #[test]
    fn without_http_the_first_protocol_is_the_reference() {
        let loads = [load("a", "dsl", "h2", 4.0), load("a", "dsl", "spdy", 6.0)];
        let standings = RaceResults::of(&loads);
        let over = &standings.pages[0].networks[0];
        assert_eq!(over.ratio(&over.protocols[1]), Some(1.5));
    }
}
