//! The votes about one page, one for each source network, and their joint result.

use std::net::IpAddr;

use spdy_clock::Instant;
use spdy_page::replica::Kind;

use crate::learned_resources::limits::LearningLimits;
use crate::learned_resources::resource_load::ResourceLoad;

/// The kinds that a request can state (`resource_load.rs`).
pub(super) const KINDS: [Kind; 5] = [
    Kind::Stylesheet,
    Kind::Script,
    Kind::Font,
    Kind::Image,
    Kind::Media,
];

/// The vote of one network about a page.
#[derive(Debug)]
pub(super) struct Vote {
    pub(super) network: Option<IpAddr>,
    pub(super) since: Instant,
    /// What it requested.
    pub(super) requested: Requested,
    /// Resources that were pushed to it or hinted.
    pub(super) prompted: u64,
    /// What it requested in an earlier view without being prompted: its vote for the resources that it was prompted for now.
    earlier: Requested,
    /// The resources that it was not prompted for in such a view.
    free_earlier: u64,
    /// The oldest of these views.
    earlier_since: Instant,
}

/// Resources that a network requested after a page, one bit each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requested {
    pub(super) all: u64,
    /// As each of [`KINDS`].
    pub(super) kinds: [u64; KINDS.len()],
    pub(super) by_cors: u64,
}

impl Vote {
    /// The vote of a view that begins now, after `before` of the same network.
    pub(super) fn new(network: Option<IpAddr>, since: Instant, before: Option<&Self>) -> Self {
        let (mut earlier, mut free_earlier, mut earlier_since) = (Requested::default(), 0, since);
        if let Some(before) = before {
            earlier = before.requested.except(before.prompted);
            earlier.add(&before.earlier.except(!before.prompted));
            free_earlier = !before.prompted | before.free_earlier;
            earlier_since = match before.prompted & before.free_earlier {
                0 => before.since,
                _ => before.earlier_since,
            };
        }
        Self {
            network,
            since,
            requested: Requested::default(),
            prompted: 0,
            earlier,
            free_earlier,
            earlier_since,
        }
    }

    /// Names a resource, with its kind and mode if the request states them.
    pub(super) fn name(&mut self, bit: u64, loaded: &ResourceLoad<'_>) {
        self.requested.name(bit, loaded);
    }

    /// The free requests of the network that are about `resource`, and when they were made; `None` if it was always prompted for it.
    pub(super) fn free(&self, resource: u64) -> Option<(Instant, &Requested)> {
        match self.prompted & resource == 0 {
            true => Some((self.since, &self.requested)),
            false => {
                let is_free = self.free_earlier & resource != 0;
                is_free.then_some((self.earlier_since, &self.earlier))
            }
        }
    }

    /// Clears these resources from the vote.
    pub(super) fn clear(&mut self, resources: u64) {
        self.requested = self.requested.except(resources);
        self.earlier = self.earlier.except(resources);
        self.prompted &= !resources;
        self.free_earlier &= !resources;
    }
}

impl Requested {
    fn name(&mut self, bit: u64, loaded: &ResourceLoad<'_>) {
        self.all |= bit;
        if let Some(kind) = loaded.kind {
            for (bits, of) in self.kinds.iter_mut().zip(KINDS) {
                *bits = if of == kind {
                    *bits | bit
                } else {
                    *bits & !bit
                };
            }
        }
        match loaded.by_cors {
            Some(true) => self.by_cors |= bit,
            Some(false) => self.by_cors &= !bit,
            None => {}
        }
    }

    /// Without these resources.
    fn except(mut self, resources: u64) -> Self {
        let kinds = self.kinds.iter_mut();
        for bits in kinds.chain([&mut self.all, &mut self.by_cors]) {
            *bits &= !resources;
        }
        self
    }

    fn add(&mut self, other: &Self) {
        self.all |= other.all;
        self.by_cors |= other.by_cors;
        for (bits, more) in self.kinds.iter_mut().zip(other.kinds) {
            *bits |= more;
        }
    }
}

/// The free votes for a resource, and what they state about it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Support {
    pub(super) free: u64,
    pub(super) named: u64,
    pub(super) kinds: [u64; KINDS.len()],
    pub(super) by_cors: u64,
}

impl Support {
    pub(super) fn is_sufficient(&self, min_networks: u32, limits: &LearningLimits) -> bool {
        self.free >= min_networks.max(1).into()
            && agree(self.named, self.free, limits.share_percent)
    }

    /// True if it may be removed for another resource: only one network names it, or fewer than half of the free votes.
    pub(super) fn is_weak(&self) -> bool {
        self.named <= 1 || self.named * 2 < self.free
    }

    /// The kind on which the votes that name it agree.
    pub(super) fn kind(&self, limits: &LearningLimits) -> Option<Kind> {
        let mut kinds = self.kinds.iter().zip(KINDS);
        let agreed = kinds.find(|(votes, _)| agree(**votes, self.named, limits.share_percent))?;
        Some(agreed.1)
    }

    /// True or false if the votes agree that it is loaded by CORS, or that it is not; `None` if they do not agree.
    pub(super) fn by_cors(&self, limits: &LearningLimits) -> Option<bool> {
        let share = limits.share_percent;
        match agree(self.by_cors, self.named, share) {
            true => Some(true),
            false => agree(self.named - self.by_cors, self.named, share).then_some(false),
        }
    }
}

fn agree(votes: u64, of: u64, share_percent: u32) -> bool {
    votes > 0 && votes * 100 >= of * u64::from(share_percent)
}
