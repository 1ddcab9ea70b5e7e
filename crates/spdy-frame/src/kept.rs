//! Secrets that stand in the peer's window, so that one may be repeated whole.
//!
//! They are kept apart from the window, which the search sees, and are never compared but whole, under
//! their own name and for their own host.

use std::collections::VecDeque;

/// Secrets that are kept; the oldest makes room.
const MOST: usize = 64;

/// Hosts that are told apart; one more and everything kept is dropped.
const HOSTS: usize = 32;

/// The secrets of a direction, the one longest unused first.
#[derive(Default)]
pub(crate) struct Kept {
    secrets: VecDeque<Secret>,
    hosts: Vec<Box<[u8]>>,
    /// Which of `hosts` the block at hand is for.
    host: usize,
}

struct Secret {
    name: u32,
    host: usize,
    /// Where in the text it last stood.
    source: usize,
    bytes: Box<[u8]>,
}

impl Kept {
    /// The secrets that follow are those of a block for `host`; empty where no host is said.
    pub(crate) fn begin_block(&mut self, host: &[u8]) {
        if self
            .hosts
            .get(self.host)
            .is_some_and(|known| **known == *host)
        {
            return;
        }
        self.host = match self.hosts.iter().position(|known| **known == *host) {
            Some(known) => known,
            None => {
                if self.hosts.len() == HOSTS {
                    self.hosts.clear();
                    self.secrets.clear();
                }
                self.hosts.push(host.into());
                self.hosts.len() - 1
            }
        };
    }

    /// Keeps a secret that stands at `at` from now on; returns where an equal one stood last.
    pub(crate) fn replace(&mut self, name: u32, bytes: &[u8], at: usize) -> Option<usize> {
        let equal =
            |kept: &Secret| kept.name == name && kept.host == self.host && *kept.bytes == *bytes;
        if let Some(mut kept) = self
            .secrets
            .iter()
            .position(equal)
            .and_then(|known| self.secrets.remove(known))
        {
            let source = std::mem::replace(&mut kept.source, at);
            self.secrets.push_back(kept);
            return Some(source);
        }
        if self.secrets.len() == MOST {
            self.secrets.pop_front();
        }
        self.secrets.push_back(Secret {
            name,
            host: self.host,
            source: at,
            bytes: bytes.into(),
        });
        None
    }

    /// The first `gone` bytes of the text are there no more.
    pub(crate) fn forget(&mut self, gone: usize) {
        self.secrets.retain_mut(|kept| {
            let there = kept.source >= gone;
            kept.source = kept.source.saturating_sub(gone);
            there
        });
    }
}
