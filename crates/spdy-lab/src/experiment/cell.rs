//! A cell: one level of each factor, its key, and its seeds.

use std::fmt::Write as _;

use spdy_sim::options::RaceProtocol;
use spdy_sim::seed;

use crate::experiment::clock::Clock;
use crate::experiment::factor::Factor;
use crate::experiment::plan::{MAX_SEED, Plan};

/// One page over one protocol with one level of each factor; it is loaded for each run of the plan.
#[derive(Clone, Debug)]
pub struct Cell<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) number: usize,
    pub(crate) page: usize,
    pub(crate) protocol: RaceProtocol,
    pub(crate) levels: Vec<(Factor, &'a str)>,
}

impl<'a> Cell<'a> {
    /// Its number in the plan, from 1.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.number + 1
    }

    /// Its plan.
    #[must_use]
    pub const fn plan(&self) -> &'a Plan {
        self.plan
    }

    /// The page, as the plan names it.
    #[must_use]
    pub fn page(&self) -> &'a str {
        &self.plan.pages[self.page]
    }

    /// The protocol.
    #[must_use]
    pub const fn protocol(&self) -> RaceProtocol {
        self.protocol
    }

    /// The level of each factor of the plan, in their order.
    #[must_use]
    pub fn levels(&self) -> &[(Factor, &'a str)] {
        &self.levels
    }

    /// Its clock.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let level = self.levels.iter().find(|(it, _)| *it == Factor::Clock);
        level
            .and_then(|(_, level)| level.parse().ok())
            .unwrap_or_default()
    }

    /// Its levels in full: `page=flags,protocol=spdy,rate=100kbit,delay=10ms`.
    ///
    /// It contains every factor of the plan, including those with one level: if a plan gets more levels, existing cells keep their
    /// keys.
    #[must_use]
    pub fn key(&self) -> String {
        self.spell(Some(self.protocol))
    }

    /// The seed of its run `run`, counted from 1. It depends only on the plan's seed, on the key without protocol, clock and server,
    /// and on the run. So protocols, clocks and servers have the same random numbers, and any load can be repeated alone.
    #[must_use]
    pub fn seed(&self, run: u32) -> u64 {
        let name = format!("{}/{run}", self.spell(None));
        seed::derive(self.plan.seed, &name) & MAX_SEED
    }

    fn spell(&self, protocol: Option<RaceProtocol>) -> String {
        let mut key = String::new();
        push(&mut key, "page", self.page());
        if let Some(protocol) = protocol {
            push(&mut key, "protocol", protocol.name());
        }
        for (factor, level) in &self.levels {
            if protocol.is_none() && matches!(factor, Factor::Clock | Factor::Server) {
                continue;
            }
            push(&mut key, factor.name(), level);
        }
        key
    }
}

impl Plan {
    /// Every cell: first by page, then by the factors in their order, last by protocol.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        (0..self.len()).map(|number| self.cell_at(number))
    }

    /// The cell with this key or number (from 1).
    #[must_use]
    pub fn cell(&self, text: &str) -> Option<Cell<'_>> {
        match text.parse::<usize>() {
            Ok(number) => (1..=self.len())
                .contains(&number)
                .then(|| self.cell_at(number - 1)),
            Err(_) => self.cells().find(|cell| cell.key() == text),
        }
    }

    /// The cell with this number from 0, which must be below [`len`](Self::len).
    pub(crate) fn cell_at(&self, number: usize) -> Cell<'_> {
        let mut rest = number;
        let mut take = |count: usize| {
            let at = rest % count;
            rest /= count;
            at
        };
        let protocol = self.protocols[take(self.protocols.len())];
        let mut levels: Vec<_> = self
            .factors
            .iter()
            .rev()
            .map(|(factor, levels)| (*factor, &levels[take(levels.len())][..]))
            .collect();
        levels.reverse();
        let page = take(self.pages.len());
        assert_eq!(rest, 0, "no cell {number} of {}", self.len());
        Cell {
            plan: self,
            number,
            page,
            protocol,
            levels,
        }
    }
}

/// Adds `name=level` to a key. Levels are separated by commas and keys by spaces, so both are escaped as in URLs.
pub(crate) fn push(key: &mut String, name: &str, level: &str) {
    if !key.is_empty() {
        key.push(',');
    }
    key.push_str(name);
    key.push('=');
    for char in level.chars() {
        if matches!(char, ',' | '%') || char.is_whitespace() {
            let mut bytes = [0; 4];
            for byte in char.encode_utf8(&mut bytes).bytes() {
                let _ = write!(key, "%{byte:02X}"); // a String takes all
            }
        } else {
            key.push(char);
        }
    }
}

/// The names and levels of a key, in its order.
#[must_use]
pub fn levels_of(key: &str) -> Vec<(String, String)> {
    let part = |part: &str| {
        let (name, level) = part.split_once('=').unwrap_or((part, ""));
        (name.to_owned(), unescaped(level))
    };
    key.split(',').map(part).collect()
}

/// Undoes the escaping of `level`.
pub(crate) fn unescaped(level: &str) -> String {
    let mut bytes = Vec::with_capacity(level.len());
    let mut rest = level.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() {
            &after[2..]
        } else {
            after
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_any_levels_parses() {
        let levels = [
            ("page", "my pages/100%,é .har"),
            ("network", "down=2mbit,up=1mbit,rtt=9ms"),
            ("loss", "1%"),
        ];
        let mut key = String::new();
        for (name, level) in levels {
            push(&mut key, name, level);
        }
        assert_eq!(
            key,
            "page=my%20pages/100%25%2Cé%20.har,network=down=2mbit%2Cup=1mbit%2Crtt=9ms,loss=1%25"
        );
        let back = levels_of(&key);
        let back: Vec<_> = back
            .iter()
            .map(|(name, level)| (&name[..], &level[..]))
            .collect();
        assert_eq!(back, levels);
    }
}
