//! Factors without an effect on a load, and the cells that therefore repeat others.
//!
//! ```text
//!   compression=masked  http  ·─┐ the same load without randomness,
//!   compression=0       http  ·─┘ else another sample of it
//!   compression=masked  spdy  ·
//!   compression=0       spdy  ·
//! ```
//!
//! Such cells are still loaded and stored, under their own keys. So a plan that gets more levels keeps its keys, and a comparison of
//! `spdy` with `http` finds an `http` cell for each. But reports mark them, and evidence is counted once.

use std::collections::BTreeMap;

use spdy_net::protocol::Protocol;
use spdy_net::tls::TlsVersion;
use spdy_sim::options::{Accelerator, Deployment, RaceProtocol};

use crate::experiment::cell;
use crate::experiment::conditions::Conditions;
use crate::experiment::factor::Factor;
use crate::experiment::plan::Plan;
use crate::experiment::server_program::ServerProgram;

impl Factor {
    /// True if its levels can change loads by `protocol` under `conditions`. They need not: hosts that a page does not have cannot be
    /// folded.
    #[must_use]
    pub fn has_effect_on(self, protocol: RaceProtocol, conditions: &Conditions) -> bool {
        self.no_effect_reason(protocol, conditions).is_none()
    }

    /// Why its levels cannot change loads by `protocol` under `conditions`; `None` if they can.
    #[must_use]
    pub fn no_effect_reason(
        self,
        protocol: RaceProtocol,
        conditions: &Conditions,
    ) -> Option<&'static str> {
        let options = &conditions.options;
        let spoken = protocol.wire_protocol();
        let is_spdy = matches!(spoken, Protocol::Spdy(_));
        // Behind the accelerator, connections use HTTP/1.1 and HTTP/2 over TCP, some of them with TLS.
        let is_direct = options.accelerator == Accelerator::Off;
        let is_ours = conditions.server == ServerProgram::Ours;
        let is_alone = is_direct && options.deployment == Deployment::All;
        let (is_idle, reason) = match self {
            Self::Reorder => (
                conditions.network.profile.path.jitter.is_zero(),
                "without jitter no packet is reordered",
            ),
            Self::Tls if spoken.is_over_quic() => (is_alone, "QUIC has TLS 1.3"),
            Self::MlKem if options.tls == TlsVersion::Tls12 && !spoken.is_over_quic() => {
                (is_direct, "TLS 1.2 has no ML-KEM")
            }
            Self::Tls | Self::Resumption | Self::MlKem => {
                (is_direct && !protocol.is_secure(), "no connection uses TLS")
            }
            Self::Connections => (
                spoken.is_multiplexed() && options.deployment == Deployment::All,
                "a host gets one session",
            ),
            Self::Streams | Self::Push if !is_ours => (
                true,
                "another server has its own limits, and pushes nothing",
            ),
            Self::Streams => (
                is_direct && !spoken.is_multiplexed(),
                "HTTP/1.1 has no streams",
            ),
            Self::Compression | Self::HeaderWindow => {
                (!is_spdy, "only SPDY has this header compression")
            }
            Self::IpPooling => (
                !spoken.is_multiplexed() || !protocol.is_secure(),
                "only sessions over TLS are shared",
            ),
            Self::Push => (!is_spdy, "only SPDY clients accept pushes"),
            Self::Deploy => (!spoken.is_multiplexed(), "all hosts use HTTP/1.1 anyway"),
            Self::Frame => (
                is_direct && !is_spdy && spoken != Protocol::Http2,
                "only SPDY and h2 have DATA frames",
            ),
            Self::Prefetch | Self::Urls => (is_direct, "there is no accelerator"),
            Self::Network
            | Self::Rate
            | Self::Down
            | Self::Up
            | Self::Rtt
            | Self::Delay
            | Self::Jitter
            | Self::Loss
            | Self::LossUp
            | Self::LossDown
            | Self::Burst
            | Self::Queue
            | Self::Pipe
            | Self::Passes
            | Self::Tick
            | Self::Preset
            | Self::Tcp
            | Self::InitialWindow
            | Self::Dns
            | Self::Fold
            | Self::Priorities
            | Self::Scheduler
            | Self::Hints
            | Self::Shard
            | Self::Cache
            | Self::Accelerator
            | Self::Backhaul
            | Self::Think
            | Self::Visit
            | Self::Clock
            | Self::Server => (false, ""),
        };
        is_idle.then_some(reason)
    }
}

/// A factor of a plan that has no effect on some of its cells.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IneffectiveFactor {
    /// The factor.
    pub factor: Factor,
    /// The protocols of those cells.
    pub protocols: Vec<RaceProtocol>,
    /// Number of those cells.
    pub cells: usize,
    /// The reason.
    pub reason: &'static str,
}

/// Every factor of `plan` without an effect on some cells that could be expected to have one: it has several levels, or no effect on
/// any cell.
#[must_use]
pub fn ineffective_factors(plan: &Plan) -> Vec<IneffectiveFactor> {
    let mut found: Vec<IneffectiveFactor> = Vec::new();
    for cell in plan.cells() {
        // A parsed plan has no contradicting levels.
        let Ok(conditions) = Conditions::of(&cell) else {
            continue;
        };
        for (factor, _) in cell.levels() {
            let Some(reason) = factor.no_effect_reason(cell.protocol(), &conditions) else {
                continue;
            };
            let same = |it: &&mut IneffectiveFactor| (it.factor, it.reason) == (*factor, reason);
            match found.iter_mut().find(same) {
                Some(idle) => {
                    idle.cells += 1;
                    if !idle.protocols.contains(&cell.protocol()) {
                        idle.protocols.push(cell.protocol());
                    }
                }
                None => found.push(IneffectiveFactor {
                    factor: *factor,
                    protocols: vec![cell.protocol()],
                    cells: 1,
                    reason,
                }),
            }
        }
    }
    found.sort_by_key(|idle| idle.factor);
    let of = |factor: Factor| found.iter().filter(move |it| it.factor == factor);
    let everywhere = |factor| of(factor).map(|it| it.cells).sum::<usize>() == plan.len();
    let is_reported =
        |idle: &IneffectiveFactor| plan.factors[&idle.factor].len() > 1 || everywhere(idle.factor);
    let reported: Vec<bool> = found.iter().map(is_reported).collect();
    let mut reported = reported.into_iter();
    found.retain(|_| reported.next().unwrap_or_default());
    found
}

/// Finds cells that repeat others. It reads the keys of a plan's cells in their order.
#[derive(Debug, Default)]
pub struct DuplicateCells {
    first: BTreeMap<String, usize>,
}

impl DuplicateCells {
    /// The number of the first cell with the same effect as the cell of this `key`, which may be itself. A cell with factors that
    /// this build does not have repeats no other.
    pub fn first(&mut self, key: &str) -> usize {
        let next = self.first.len();
        let essence = essence(key).unwrap_or_else(|| key.to_owned());
        *self.first.entry(essence).or_insert(next)
    }
}

/// Number of cells of `plan` that repeat others with other seeds.
#[must_use]
pub fn duplicate_cells(plan: &Plan) -> usize {
    let mut repeats = DuplicateCells::default();
    for cell in plan.cells() {
        repeats.first(&cell.key());
    }
    plan.len() - repeats.first.len()
}

/// A key without the levels that have no effect; `None` if it is invalid in this build.
fn essence(key: &str) -> Option<String> {
    let levels = cell::levels_of(key);
    let of = |name: &str| {
        let found = levels.iter().find(|(other, _)| other == name);
        found.map(|(_, level)| &level[..])
    };
    let (page, protocol) = (of("page")?, of("protocol")?.parse::<RaceProtocol>().ok()?);
    let mut chosen = Vec::with_capacity(levels.len());
    for (name, level) in &levels {
        if !matches!(&name[..], "page" | "protocol") {
            chosen.push((Factor::named(name)?, &level[..]));
        }
    }
    let conditions = Conditions::of_levels(&chosen).ok()?;
    let mut essence = String::new();
    cell::push(&mut essence, "page", page);
    cell::push(&mut essence, "protocol", protocol.name());
    for (factor, level) in chosen {
        if factor.has_effect_on(protocol, &conditions) {
            cell::push(&mut essence, factor.name(), level);
        }
    }
    Some(essence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        let head = "name = 'a'\npages = ['p', 'q']\n";
        Plan::parse(&format!("{head}{text}")).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_multi_level_factor_without_effect_somewhere_is_reported() {
        let plan = plan(
            "protocols = ['http', 'spdy', 'h2']\n[factors]\nnetwork = 'dsl'\ncompression = ['masked', 0, 9]\nloss = ['0', '1%']\n",
        );
        let idle = ineffective_factors(&plan);
        assert_eq!(idle.len(), 1, "{idle:?}");
        assert_eq!(idle[0].factor, Factor::Compression);
        assert_eq!(idle[0].protocols, [RaceProtocol::Http, RaceProtocol::H2]);
        // A third of the 36 cells is by SPDY; of each three cells by the other protocols one represents all.
        assert_eq!(
            (plan.len(), idle[0].cells, duplicate_cells(&plan)),
            (36, 24, 16)
        );
    }

    #[test]
    fn a_one_level_factor_is_reported_only_without_any_effect() {
        let of = |protocols: &str| {
            let text =
                format!("protocols = [{protocols}]\n[factors]\nnetwork = 'dsl'\ntls = 1.2\n");
            ineffective_factors(&plan(&text.replace("1.2", "'1.2'")))
        };
        assert_eq!(of("'http', 'https'"), []);
        assert_eq!(of("'https', 'h3'"), []);
        let everywhere = of("'http', 'spdy-plain', 'h3'");
        let reported = everywhere.iter().map(|idle| (idle.cells, idle.reason));
        assert_eq!(
            reported.collect::<Vec<_>>(),
            [(4, "no connection uses TLS"), (2, "QUIC has TLS 1.3")]
        );
    }

    #[test]
    fn limits_of_our_server_have_no_effect_on_another_one() {
        let plan = plan(
            "protocols = ['spdy']\n[factors]\nnetwork = 'dsl'\nclock = 'real'\nserver = ['ours', 'netty']\nstreams = [3, 100]\n\
             push = ['no', 'yes']\n",
        );
        let idle = ineffective_factors(&plan);
        let reported: Vec<_> = idle.iter().map(|it| (it.factor.name(), it.cells)).collect();
        assert_eq!(reported, [("streams", 8), ("push", 8)]);
    }

    #[test]
    fn an_effect_may_depend_on_another_level() {
        let plan = plan(
            "protocols = ['spdy']\n[factors]\nnetwork = 'dsl'\naccelerator = ['off', 'cold']\nprefetch = ['yes', 'no']\nconnections = \
             [2, 6]\ndeploy = ['all', 'first-party']\n",
        );
        let idle = ineffective_factors(&plan);
        let reported: Vec<_> = idle.iter().map(|it| (it.factor.name(), it.cells)).collect();
        assert_eq!(reported, [("connections", 16), ("prefetch", 16)]);
        let mut repeats = DuplicateCells::default();
        let mut first = |key: &str| {
            let key = format!("page=p,protocol=spdy,network=dsl,{key}");
            repeats.first(&key)
        };
        assert_eq!(first("connections=2,accelerator=off,prefetch=yes"), 0);
        assert_eq!(first("connections=6,accelerator=off,prefetch=no"), 0);
        assert_eq!(first("connections=6,accelerator=cold,prefetch=no"), 1);
        assert_eq!(first("connections=2,accelerator=cold,prefetch=yes"), 2);
        assert_eq!(first("connections=2,deploy=first-party"), 3);
        assert_eq!(first("connections=6,deploy=first-party"), 4);
        assert_eq!(first("a factor of tomorrow=1"), 5);
        assert_eq!(first("a factor of tomorrow=2"), 6);
    }
}
