//! The findings of an examination in words, and their relevance.

use super::examination::{Examination, RemedyResult, SavedTime};
use super::remedy::{Degradation, Remedy};

/// A finding is relevant if it changes one of the times by at least this part.
const MIN_SAVING: f64 = 0.01;

/// Maximum number of shown characters of a URL.
const URL_CHARS: usize = 70;

impl Examination {
    /// True if `finding` changes the page, and not how or over which network it is loaded.
    #[must_use]
    pub const fn is_of_page(finding: &RemedyResult) -> bool {
        !matches!(
            finding.remedy,
            Remedy::Protocol { .. } | Remedy::Network { .. }
        )
    }

    /// The changes to the page that save at least 1 % of load or of DOMContentLoaded, the best first. Changes that break the page,
    /// and changes whose difference may be random, are excluded.
    #[must_use]
    pub fn helpful(&self) -> Vec<&RemedyResult> {
        let helps = |finding: &&RemedyResult| {
            Self::is_of_page(finding) && self.part(finding).is_some_and(|part| part >= MIN_SAVING)
        };
        let mut helping: Vec<&RemedyResult> = self.findings.iter().filter(helps).collect();
        helping.sort_by(|a, b| {
            let key = |finding: &RemedyResult| {
                let [load, parsed] = [finding.load, finding.dom_content_loaded];
                let ms = |saved: SavedTime| saved.certain_ms().unwrap_or_default();
                (ms(load), ms(parsed))
            };
            let ((a, more_a), (b, more_b)) = (key(a), key(b));
            b.total_cmp(&a).then(more_b.total_cmp(&more_a))
        });
        helping
    }

    /// Number of changes to the page whose median saves as much, but whose interval includes 0. More runs would show whether they
    /// help.
    #[must_use]
    pub fn undecided(&self) -> usize {
        let is_undecided = |finding: &&RemedyResult| {
            let parts = self.parts(finding);
            Self::is_of_page(finding)
                && finding.is_whole
                && parts
                    .iter()
                    .any(|(saved, part)| !saved.is_certain && *part >= MIN_SAVING)
                && self.part(finding).is_none_or(|part| part < MIN_SAVING)
        };
        self.findings.iter().filter(is_undecided).count()
    }

    /// The certain saving of load or DOMContentLoaded as a part of the load time, whichever is larger. `None` if the page broke or
    /// one of them is later.
    fn part(&self, finding: &RemedyResult) -> Option<f64> {
        let parts = self.parts(finding);
        // A change that delays the load event is no remedy, even if DOMContentLoaded is earlier.
        let delays = parts[0].1 <= -MIN_SAVING;
        let certain = parts.iter().filter(|(saved, _)| saved.is_certain);
        let most = certain.map(|(_, part)| *part).fold(0.0, f64::max);
        (finding.is_whole && !delays).then_some(most)
    }

    /// The time saved of load and of DOMContentLoaded, each with its part of the load time without the change.
    fn parts(&self, finding: &RemedyResult) -> [(SavedTime, f64); 2] {
        let (load, parsed) = (finding.load, finding.dom_content_loaded);
        [
            (load, load.median_ms / self.now.load_ms),
            (parsed, parsed.median_ms / self.now.dom_content_loaded_ms),
        ]
    }

    /// Describes the change of `finding`.
    #[must_use]
    pub fn describe(&self, finding: &RemedyResult) -> String {
        let own = &self.host;
        match &finding.remedy {
            Remedy::Fold { hosts, resources } => match hosts.as_slice() {
                [host] => format!("fold {host} ({resources}) into {own}"),
                hosts => format!(
                    "fold all {} other hosts ({resources}) into {own}",
                    hosts.len()
                ),
            },
            Remedy::Push => format!("push the page's resources on {own}"),
            Remedy::Hint { urls, .. } => match urls.as_slice() {
                [url] => format!("hint at {}", short(url)),
                urls => format!(
                    "hint at all {} resources that the document does not name",
                    urls.len()
                ),
            },
            Remedy::Later { url, .. } => format!("remove all waits for {}", short(url)),
            Remedy::Without { host, resources } => format!("remove {host} ({resources})"),
            Remedy::Protocol { protocol } => format!("by {protocol}"),
            Remedy::Network { change } => match change {
                Degradation::DoubleRtt => "twice the round-trip time",
                Degradation::HalfRate => "half the rate",
                Degradation::Loss => "1 % of packets lost",
            }
            .to_owned(),
        }
    }
}

impl SavedTime {
    /// The interval, such as `12 to 34`; `None` without randomness.
    #[must_use]
    pub fn interval(&self) -> Option<String> {
        let ends = [self.low_ms, self.high_ms].map(whole);
        (!self.is_exact).then(|| format!("{:.0} to {:.0}", ends[0], ends[1]))
    }
}

/// Returns `ms`, or 0 if it would be shown as -0.
fn whole(ms: f64) -> f64 {
    if ms.abs() < 0.5 { 0.0 } else { ms }
}

/// A URL without its scheme; the middle of a long one is omitted.
#[must_use]
pub fn short(url: &str) -> String {
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    let chars: Vec<char> = url.chars().collect();
    if chars.len() <= URL_CHARS {
        return url.to_owned();
    }
    let half = (URL_CHARS - 1) / 2;
    let (begin, end) = (&chars[..half], &chars[chars.len() - half..]);
    begin.iter().chain(&['…']).chain(end).collect()
}
