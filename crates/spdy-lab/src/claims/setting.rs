//! Settings for the measurement of a claim: pages, and two sides to compare.

use spdy_netem::loss::{LossModel, Probability};
use spdy_netem::profile::Profile;
use spdy_page::replica::Replica;
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;

/// Shipped or generated pages.
pub(crate) type Pages = fn() -> Vec<Replica>;

/// The pages whose loads are measured.
pub(crate) enum PageSet {
    /// Our own pages, from what the claim states of its pages.
    Pages(Pages),
    /// Our own pages and options, with parameters that were fitted to the data that the claim is about.
    Fitted(Pages),
    /// Invented pages in place of lost ones.
    StandIn(Pages),
    /// The pages of the user's corpus.
    Corpus,
}

/// One side of a setting.
#[derive(Clone, Debug)]
pub(crate) struct ClaimSetup {
    pub(crate) protocol: RaceProtocol,
    /// Whether everything is on the page's own host.
    pub(crate) folded: bool,
    pub(crate) options: Options,
}

/// Two sides, and their common conditions.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) profile: Profile,
    /// The side that the other is compared with.
    pub(crate) base: ClaimSetup,
    /// The side that is compared.
    pub(crate) other: ClaimSetup,
    /// Length of chains of resources: above 1, the page's resources have so many generations, each discovered when the first of the
    /// previous one has arrived.
    pub(crate) depth: usize,
    /// Whether only the smaller half of the pages is used, by the bytes of their bodies.
    pub(crate) small_pages: bool,
    /// Time of the browser itself, which is added to each load.
    pub(crate) browser_ms: f64,
    /// Whether only the first and the last level of a series are measured: enough to see the effect of a factor.
    pub(crate) ends_only: bool,
}

impl Setting {
    /// `network` (as in `spdy race --network`), one protocol against another, `options` for both. Frames of other sites share connections
    /// with their page, as in all browsers of the papers.
    ///
    /// # Panics
    ///
    /// If the network does not exist: claims have their own networks.
    pub(crate) fn new(
        network: &str,
        (base, other): (RaceProtocol, RaceProtocol),
        options: &Options,
    ) -> Self {
        let way = |protocol| ClaimSetup {
            protocol,
            folded: false,
            options: Options {
                site_partitions: false,
                ..options.clone()
            },
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

    /// Changes the options of both sides.
    pub(crate) fn both(&mut self, change: impl Fn(&mut Options)) {
        change(&mut self.base.options);
        change(&mut self.other.options);
    }

    /// True if there is any randomness.
    pub(crate) fn has_chance(&self) -> bool {
        let path = &self.profile.path;
        let lossless =
            path.loss_up == LossModel::default() && path.loss_down == LossModel::default();
        !lossless || !path.jitter.is_zero()
    }

    /// This setting for each of `levels`, or for the first and the last of them; and their names.
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

    /// Levels of loss in both directions, in parts per thousand.
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
