//! Figures of loads that were measured before.
//!
//! A load in virtual time depends only on its page, setup, network and seed. Many claims compare with the same loads, and a factor
//! often changes only one side of a setting. Each such load is measured once.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use spdy_netem::profile::Profile;
use spdy_page::replica::Replica;
use spdy_sim::options::{Options, RaceProtocol};

use crate::claims::setting::ClaimSetup;
use crate::claims::statistics::Figures;

/// Figures of a load without the browser's own time; `None` if the load is incomplete.
type Measured = Option<Figures>;

/// Figures of the loads that were measured before, for all claims of one [`ClaimRunner`](crate::claims::ClaimRunner).
#[derive(Debug, Default)]
pub struct LoadMemo(Mutex<MeasuredLoads>);

impl LoadMemo {
    pub(super) fn lock(&self) -> MutexGuard<'_, MeasuredLoads> {
        self.0.lock()
    }
}

/// Everything that a load depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadKey<'a> {
    /// The number of its page, from [`MeasuredLoads::page`].
    pub(super) page: usize,
    pub(super) depth: usize,
    /// The number of its run: its seed is derived from it.
    pub(super) run: usize,
    pub(super) setup: &'a ClaimSetup,
    pub(super) profile: &'a Profile,
}

/// The parts of a [`LoadKey`] that have an order: page, depth, run, protocol, and whether all is on one host.
type Group = (usize, usize, usize, RaceProtocol, bool);

/// The other parts, and the number of the load.
#[derive(Debug)]
struct Numbered {
    options: Options,
    profile: Profile,
    number: usize,
}

/// Loads by number.
#[derive(Debug, Default)]
pub(super) struct MeasuredLoads {
    pages: Vec<Replica>,
    numbers: BTreeMap<Group, Vec<Numbered>>,
    /// By number; `None` for a load that is not measured yet.
    measured: Vec<Option<Measured>>,
}

impl MeasuredLoads {
    /// The number of `replica`.
    pub(super) fn page(&mut self, replica: &Replica) -> usize {
        if let Some(known) = self.pages.iter().position(|page| page == replica) {
            return known;
        }
        self.pages.push(replica.clone());
        self.pages.len() - 1
    }

    /// The number of the load with this key.
    pub(super) fn number(&mut self, key: &LoadKey<'_>) -> usize {
        let ClaimSetup {
            protocol,
            folded,
            options,
        } = key.setup;
        let group = (key.page, key.depth, key.run, *protocol, *folded);
        let group = self.numbers.entry(group).or_default();
        let is_same = |load: &&Numbered| load.options == *options && load.profile == *key.profile;
        if let Some(known) = group.iter().find(is_same) {
            return known.number;
        }
        let number = self.measured.len();
        self.measured.push(None);
        group.push(Numbered {
            options: options.clone(),
            profile: key.profile.clone(),
            number,
        });
        number
    }

    /// The figures of a load; the outer `None` if it is not measured yet.
    pub(super) fn figures(&self, number: usize) -> Option<Measured> {
        self.measured[number]
    }

    pub(super) fn insert(&mut self, number: usize, figures: Measured) {
        self.measured[number] = Some(figures);
    }
}
