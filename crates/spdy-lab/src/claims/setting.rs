//! What a claim is measured on: pages, and two setups to compare.

use spdy_netem::loss::{LossModel, Probability};
use spdy_netem::profile::Profile;
use spdy_page::replica::Replica;
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;

/// Pages that ship or are made.
pub(crate) type Pages = fn() -> Vec<Replica>;

/// Whose loads are measured.
pub(crate) enum PageSet {
    /// Pages of ours.
    Pages(Pages),
    /// Those of a corpus that the user names.
    Corpus,
}

/// How a page is loaded.
#[derive(Clone, Debug)]
pub(crate) struct ClaimSetup {
    pub(crate) protocol: RaceProtocol,
    /// Everything on the page's own host.
    pub(crate) folded: bool,
    pub(crate) options: Options,
}

/// Two ways, and what both have in common.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) profile: Profile,
    /// What is compared with.
    pub(crate) base: ClaimSetup,
    /// What is compared.
    pub(crate) other: ClaimSetup,
    /// Resources that wait for one another: above 1, the page's resources come in so many generations, each found when
    /// the first of the one before is there.
    pub(crate) depth: usize,
    /// Of several pages only the smaller half, by the bytes of their bodies.
    pub(crate) small_pages: bool,
    /// Time of the browser itself, added to each load.
    pub(crate) browser_ms: f64,
    /// Only the first and the last level of a row: enough to see what a factor does.
    pub(crate) ends_only: bool,
}

impl Setting {
    /// `network` (as `spdy race --network` reads it), one protocol against another, `options` for both.
    ///
    /// # Panics
    ///
    /// If there is no such network: claims name their own.
    pub(crate) fn new(
        network: &str,
        (base, other): (RaceProtocol, RaceProtocol),
        options: &Options,
    ) -> Self {
        let way = |protocol| ClaimSetup {
            protocol,
            folded: false,
            options: options.clone(),
        };
        Self {
            profile: profile(network),
            base: way(base),
            other: way(other),
            depth: 1,
            small_pages: false,
            browser_ms: 0.0,
            ends_only: false,
        }
    }

    /// Changes the choices of both ways.
    pub(crate) fn both(&mut self, change: impl Fn(&mut Options)) {
        change(&mut self.base.options);
        change(&mut self.other.options);
    }

    /// Whether anything is left to chance.
    pub(crate) fn has_chance(&self) -> bool {
        let path = &self.profile.path;
        let lossless =
            path.loss_up == LossModel::default() && path.loss_down == LossModel::default();
        !lossless || !path.jitter.is_zero()
    }

    /// This setting once for each of `levels`, or for the first and the last of them; and their names.
    pub(crate) fn levels<T: Copy>(
        &self,
        levels: &[T],
        name: impl Fn(T) -> String,
        change: impl Fn(&mut Self, T),
    ) -> (Vec<String>, Vec<Self>) {
        let ends = [levels[0], levels[levels.len() - 1]];
        let levels = if self.ends_only { &ends[..] } else { levels };
        let at = |&level: &T| {
            let mut setting = self.clone();
            change(&mut setting, level);
            (name(level), setting)
        };
        levels.iter().map(at).unzip()
    }

    /// Levels of loss, both ways, in parts of a thousand.
    pub(crate) fn losses(&self, permille: &[u32]) -> (Vec<String>, Vec<Self>) {
        self.levels(
            permille,
            |permille| format!("{} %", f64::from(permille) / 10.0),
            |it, permille| {
                let loss = Probability::from_ppb(permille * 1_000_000);
                let loss = LossModel::bernoulli(loss.expect("a part of one"));
                it.profile.path.loss_up = loss;
                it.profile.path.loss_down = loss;
            },
        )
    }
}

/// The network called `spec`.
pub(crate) fn profile(spec: &str) -> Profile {
    let parsed = RaceNetwork::parse(spec);
    let network = parsed.unwrap_or_else(|error| panic!("network {spec:?} of a claim: {error}"));
    network.profile
}
