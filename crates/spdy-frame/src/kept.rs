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

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the secrets `numbers` for the host at hand; `Some` for those that were there.
    fn keep(kept: &mut Kept, numbers: std::ops::Range<usize>) -> Vec<Option<usize>> {
        let keep = |number| kept.replace(0, format!("secret {number}").as_bytes(), number);
        numbers.map(keep).collect()
    }

    #[test]
    fn one_secret_more_than_are_kept_drops_the_one_longest_unused() {
        let mut kept = Kept::default();
        kept.begin_block(b"a");
        assert!(keep(&mut kept, 0..MOST).iter().all(Option::is_none));
        // The first is used again, so the second is the oldest when one more comes.
        assert_eq!(keep(&mut kept, 0..1), [Some(0)]);
        assert_eq!(keep(&mut kept, MOST..MOST + 1), [None]);
        assert_eq!(keep(&mut kept, 0..3), [Some(0), None, None]);
        assert_eq!(kept.secrets.len(), MOST);
    }

    #[test]
    fn one_host_more_than_are_told_apart_drops_everything() {
        let mut kept = Kept::default();
        for host in 0..HOSTS {
            kept.begin_block(format!("{host}").as_bytes());
            assert_eq!(keep(&mut kept, 0..1), [None], "another host's");
        }
        kept.begin_block(b"0");
        assert_eq!(keep(&mut kept, 0..1), [Some(0)]);
        kept.begin_block(b"one more");
        assert!(kept.secrets.is_empty());
        assert_eq!(kept.hosts.len(), 1);
        kept.begin_block(b"0");
        assert_eq!(keep(&mut kept, 0..1), [None]);
    }

    #[test]
    fn what_leaves_the_text_is_not_there_any_more() {
        let mut kept = Kept::default();
        kept.begin_block(b"a");
        keep(&mut kept, 0..5);
        kept.forget(3);
        assert_eq!(keep(&mut kept, 3..5), [Some(0), Some(1)]);
        assert_eq!(kept.secrets.len(), 2);
    }
}
