//! A request as its URL describes it.

use crate::random::TestRandom;

/// A request as its URL describes it: both sides know what should come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) up: u64,
    pub(crate) down: u64,
    pub(crate) client_breaks: bool,
    pub(crate) server_breaks: bool,
    /// The server does not read the upload.
    pub(crate) ignores: bool,
    /// The answer begins before the upload has ended.
    pub(crate) responds_early: bool,
    /// The byte of the answer at which the client leaves.
    pub(crate) leaves: Option<u64>,
}

impl Plan {
    pub(crate) fn new(random: &mut TestRandom) -> Self {
        let down = random.length();
        Self {
            seed: random.below(1 << 20),
            up: if random.one_in(2) { 0 } else { random.length() },
            down,
            client_breaks: random.one_in(25),
            server_breaks: random.one_in(25),
            ignores: random.one_in(10),
            responds_early: random.one_in(2),
            leaves: random.one_in(8).then(|| random.below(down + 1)),
        }
    }

    pub(crate) fn url(&self) -> String {
        let bits = [self.server_breaks, self.ignores, self.responds_early].map(u8::from);
        let [breaks, ignores, responds_early] = bits;
        let (seed, up, down) = (self.seed, self.up, self.down);
        format!("http://a.example/{seed}/{up}/{down}/{breaks}/{ignores}/{responds_early}")
    }

    pub(crate) fn read(path: &str) -> Option<Self> {
        let parts: Vec<u64> = path
            .split('/')
            .skip(1)
            .map(|part| part.parse().ok())
            .collect::<Option<_>>()?;
        let [seed, up, down, breaks, ignores, responds_early] = parts[..] else {
            return None;
        };
        Some(Self {
            seed,
            up,
            down,
            client_breaks: false,
            server_breaks: breaks == 1,
            ignores: ignores == 1,
            responds_early: responds_early == 1,
            leaves: None,
        })
    }

    /// The answer is of other bytes than the question.
    pub(crate) fn response_seed(&self) -> u64 {
        self.seed + 77
    }
}
