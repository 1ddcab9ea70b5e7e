//! Parses experiments in TOML. Every error has a line.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use spdy_sim::options::RaceProtocol;
use toml::Spanned;

use crate::experiment::conditions::Conditions;
use crate::experiment::error::{PlanError, TextPosition};
use crate::experiment::factor::Factor;
use crate::experiment::plan::{MAX_LOADS, MAX_RUNS, MAX_SEED, Plan};

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Spanned<String>,
    #[serde(default)]
    seed: Option<Spanned<u64>>,
    #[serde(default)]
    runs: Option<Spanned<u32>>,
    pages: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    protocols: Option<Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    factors: BTreeMap<Spanned<String>, Spanned<Levels>>,
}

/// One level; numbers and booleans are used as text.
struct Level(String);

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelVisitor)
    }
}

struct LevelVisitor;

impl Visitor<'_> for LevelVisitor {
    type Value = Level;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a level: text such as \"0.5%\", a whole number, true or false")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Level, E> {
        Ok(Level(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Level, E> {
        Ok(Level(number.to_string()))
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Level, E> {
        Ok(Level(if truth { "yes" } else { "no" }.to_owned()))
    }
}

/// One level, or a list of them with their positions.
struct Levels(Vec<(Option<Range<usize>>, String)>);

impl Levels {
    fn one(level: Level) -> Self {
        Self(vec![(None, level.0)])
    }
}

impl<'de> Deserialize<'de> for Levels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelsVisitor)
    }
}

struct LevelsVisitor;

impl<'de> Visitor<'de> for LevelsVisitor {
    type Value = Levels;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a level (text such as \"0.5%\", a whole number, true or false), or a list of levels such as [\"0\", \"0.5%\"]")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Levels, E> {
        LevelVisitor.visit_str(text).map(Levels::one)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Levels, E> {
        LevelVisitor.visit_i64(number).map(Levels::one)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Levels, E> {
        LevelVisitor.visit_bool(truth).map(Levels::one)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Levels, A::Error> {
        let mut levels = Vec::new();
        while let Some(level) = list.next_element::<Spanned<Level>>()? {
            levels.push((Some(level.span()), level.into_inner().0));
        }
        Ok(Levels(levels))
    }
}

/// Creates errors of one text.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn fault<T>(&self, span: &Range<usize>, what: impl Into<String>) -> Result<T, PlanError> {
        Err(PlanError::Text {
            place: TextPosition::of(self.0, span.start),
            what: what.into(),
        })
    }

    /// Returns `values` if there are any, and each is non-empty, valid and unique; `list` is their position.
    fn each_once(
        &self,
        what: &str,
        list: &Range<usize>,
        values: Vec<(Range<usize>, String)>,
    ) -> Result<Vec<(Range<usize>, String)>, PlanError> {
        if values.is_empty() {
            return self.fault(list, format!("{what} is empty: expected at least one"));
        }
        let mut seen = HashSet::new();
        for (span, value) in &values {
            if value.is_empty() || value.chars().any(char::is_control) {
                let expected = "expected text without control characters";
                return self.fault(span, format!("{what} has {value:?}: {expected}"));
            }
            if !seen.insert(value) {
                return self.fault(span, format!("{what} has {value:?} twice"));
            }
        }
        Ok(values)
    }

    fn texts(
        &self,
        what: &str,
        list: Spanned<Vec<Spanned<String>>>,
    ) -> Result<Vec<(Range<usize>, String)>, PlanError> {
        let span = list.span();
        let values = list
            .into_inner()
            .into_iter()
            .map(|value| (value.span(), value.into_inner()))
            .collect();
        self.each_once(what, &span, values)
    }

    fn protocols(
        &self,
        list: Option<Spanned<Vec<Spanned<String>>>>,
    ) -> Result<Vec<RaceProtocol>, PlanError> {
        let Some(list) = list else {
            return Ok(RaceProtocol::DEFAULTS.to_vec());
        };
        let read = |(span, name): (Range<usize>, String)| match name.parse() {
            Ok(protocol) => Ok(protocol),
            Err(unknown) => self.fault(&span, format!("{unknown}")),
        };
        self.texts("protocols", list)?
            .into_iter()
            .map(read)
            .collect()
    }

    fn factors(
        &self,
        written: BTreeMap<Spanned<String>, Spanned<Levels>>,
    ) -> Result<BTreeMap<Factor, Vec<String>>, PlanError> {
        let mut factors = BTreeMap::new();
        for (name, levels) in written {
            let Some(factor) = Factor::named(name.get_ref()) else {
                let names = Factor::ALL.map(Factor::name).join(", ");
                let what = format!(
                    "unknown factor {:?}: expected one of {names}",
                    name.get_ref()
                );
                return self.fault(&name.span(), what);
            };
            let list = levels.span();
            let mut values = Vec::new();
            for (span, level) in levels.into_inner().0 {
                let span = span.unwrap_or_else(|| list.clone());
                if let Err(what) = factor.check(&level) {
                    return self.fault(&span, what);
                }
                values.push((span, level));
            }
            let levels = self.each_once(factor.name(), &list, values)?;
            factors.insert(factor, levels.into_iter().map(|(_, level)| level).collect());
        }
        Ok(factors)
    }
}

/// The error of serde for a text that is TOML but no experiment, with an example of a whole experiment.
fn with_example(error: &toml::de::Error) -> String {
    let what = error.message();
    format!(
        "{what}; the shortest experiment is: name = \"loss\", pages = [\"portal\"], and under [factors] network = \"dsl\""
    )
}

impl Plan {
    /// Parses a plan, and checks every combination of levels.
    ///
    /// # Errors
    ///
    /// The line of the error and the expected content, or the cell whose levels contradict each other.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let plan = plan(text)?;
        // Pages do not matter for contradictions, and protocols only for servers.
        let step = match plan.factors.contains_key(&Factor::Server) {
            true => 1,
            false => plan.protocols.len(),
        };
        for number in (0..plan.len() / plan.pages.len()).step_by(step) {
            Conditions::of(&plan.cell_at(number))?;
        }
        Ok(plan)
    }
}

/// Parses a plan without checking combinations of levels.
///
/// # Errors
///
/// The first error, with its line.
fn plan(text: &str) -> Result<Plan, PlanError> {
    let reader = Reader(text);
    toml::from_str::<toml::Table>(text)
        .or_else(|error| reader.fault(&error.span().unwrap_or(0..0), error.message().to_owned()))?;
    let document: Document = toml::from_str(text)
        .or_else(|error| reader.fault(&error.span().unwrap_or(0..0), with_example(&error)))?;
    let name = document.name.get_ref();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
        let what = format!(
            "invalid name {name:?}: expected letters, digits, -, _ and . (not at its start)"
        );
        return reader.fault(&document.name.span(), what);
    }
    let seed = match document.seed {
        Some(seed) if *seed.get_ref() > MAX_SEED => {
            return reader.fault(
                &seed.span(),
                format!("seed is {}, expected 0 to {MAX_SEED}", seed.get_ref()),
            );
        }
        seed => seed.map_or(1, Spanned::into_inner),
    };
    let runs = match document.runs {
        Some(runs) if !(1..=MAX_RUNS).contains(runs.get_ref()) => {
            return reader.fault(
                &runs.span(),
                format!("runs is {}, expected 1 to {MAX_RUNS}", runs.get_ref()),
            );
        }
        runs => runs.map_or(1, Spanned::into_inner),
    };
    let pages = reader.texts("pages", document.pages)?;
    let pages: Vec<_> = pages.into_iter().map(|(_, page)| page).collect();
    let protocols = reader.protocols(document.protocols)?;
    let factors = reader.factors(document.factors)?;
    let loads = factors
        .values()
        .map(Vec::len)
        .chain([pages.len(), protocols.len(), runs as usize])
        .try_fold(1_u64, |loads, count| loads.checked_mul(count as u64));
    if loads.is_none_or(|loads| loads > MAX_LOADS) {
        return reader.fault(
            &(0..0),
            format!("more than {MAX_LOADS} loads: use fewer levels or runs"),
        );
    }
    Ok(Plan {
        name: document.name.into_inner(),
        seed,
        runs,
        pages,
        protocols,
        factors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "name = \"small\"\npages = [\"flags\"]\n[factors]\nnetwork = \"dsl\"\n";

    fn error_text(text: &str) -> String {
        Plan::parse(text).expect_err(text).to_string()
    }

    #[test]
    fn a_missing_key_error_shows_a_complete_experiment() {
        for text in ["", "name = \"a\"\n", "factor = 1\n"] {
            let message = error_text(text);
            for word in [
                "name = \"loss\"",
                "pages = [\"portal\"]",
                "network = \"dsl\"",
            ] {
                assert!(message.contains(word), "{text:?}: {message}");
            }
        }
    }

    #[test]
    fn omitted_keys_have_the_defaults_of_a_race() {
        let plan = Plan::parse(SMALL).unwrap();
        assert_eq!((plan.seed(), plan.runs(), plan.len()), (1, 1, 4));
        let keys: Vec<_> = plan.cells().map(|cell| cell.key()).collect();
        assert_eq!(keys[2], "page=flags,protocol=spdy,network=dsl");
    }

    #[test]
    fn an_error_has_its_line_and_the_expected_value() {
        let cases = [
            ("name = \"a\"\npages = [\"flags\"\n", "line 2", "]"),
            (
                "name = \"a\"\npages = [\"flags\"]\nrun = 7\n",
                "line 3, column 1",
                "runs",
            ),
            (
                "name = \"a\"\npages = [\"flags\"]\nruns = 0\n",
                "line 3, column 8",
                "1 to 100000",
            ),
            (
                "name = \"a\"\npages = [\"flags\"]\nruns = \"7\"\n",
                "line 3, column 8",
                "u32",
            ),
            (
                "name = \"a/b\"\npages = [\"flags\"]\n",
                "line 1, column 8",
                "letters",
            ),
            (
                "name = \"a\"\npages = []\n",
                "line 2, column 9",
                "at least one",
            ),
            (
                "name = \"a\"\npages = [\"p\", \"p\"]\n",
                "line 2, column 15",
                "twice",
            ),
            ("name = \"a\"\n", "line 1", "pages"),
            (
                "name = \"a\"\npages = [\"p\"]\nprotocols = [\"spdi\"]\n",
                "line 3, column 14",
                "http, https, spdy, spdy-plain, spdy3, spdy2, h2",
            ),
            (
                "name = \"a\"\npages = [\"p\"]\nseed = 9007199254740992\n",
                "line 3, column 8",
                "0 to 9007199254740991",
            ),
            (
                "name = \"a\"\npages = [\"p\"]\n[factors]\nbandwith = \"1mbit\"\n",
                "line 4, column 1",
                "rate, down",
            ),
            (
                "name = \"a\"\npages = [\"p\"]\n[factors]\nloss = [\n  \"0\",\n  \"1\",\n]\n",
                "line 6, column 3",
                "percentage",
            ),
            (
                "name = \"a\"\npages = [\"p\"]\n[factors]\nloss = [\"0\", 0.5]\n",
                "line 4, column 14",
                "a level: text such as \"0.5%\", a whole number",
            ),
            (
                "name = \"a\"\npages = [\"p\"]\n[factors]\nstreams = -1\n",
                "line 4, column 11",
                "a number from 1",
            ),
            (
                "name = \"a\"\npages = [\"p\"]\n[factors]\nrtt = 0.5\n",
                "line 4, column 7",
                "a level",
            ),
        ];
        for (text, place, expected) in cases {
            let message = error_text(text);
            assert!(
                message.starts_with(place) && message.contains(expected),
                "{text}: {message}"
            );
        }
    }

    #[test]
    fn conflicting_levels_are_reported_with_their_cell() {
        let head = "name = \"a\"\npages = [\"flags\"]\nprotocols = [\"spdy\"]\n[factors]\n";
        let cases = [
            ("rtt = \"9ms\"\n", "down is missing"),
            ("network = \"dsl\"\npasses = 2\n", "add pipe=shared"),
            (
                "network = \"dsl\"\ndelay = \"1ms\"\nrtt = \"4ms\"\n",
                "give either delay or rtt",
            ),
            (
                "network = \"dsl\"\nserver = \"netty\"\n",
                "server=netty serves through the kernel: expected clock=real",
            ),
            (
                "network = \"dsl\"\nclock = \"real\"\nserver = [\"ours\", \"nginx\"]\n",
                "server=nginx does not speak spdy: expected http, https or h2",
            ),
            (
                "network = \"dsl\"\nclock = \"real\"\nserver = \"netty\"\ndeploy = \"first-party\"\n",
                "expected deploy=all, found deploy=first-party",
            ),
            (
                "network = \"dsl\"\npipe = [\"two\", \"shared\"]\n",
                "pipe=shared: a shared pipe has one rate",
            ),
        ];
        for (factors, expected) in cases {
            let message = error_text(&format!("{head}{factors}"));
            assert!(
                message.starts_with("cell page=flags,protocol=spdy") && message.contains(expected),
                "{message}"
            );
        }
    }

    #[test]
    fn more_loads_than_the_limit_are_refused() {
        let text = |pages: u64, streams: u64| {
            let pages: Vec<_> = (0..pages).map(|page| format!("\"{page}\"")).collect();
            let streams: Vec<_> = (1..=streams).map(|count| count.to_string()).collect();
            format!(
                "name = \"a\"\nruns = {MAX_RUNS}\npages = [{}]\nprotocols = [\"spdy\"]\n[factors]\nnetwork = \"dsl\"\nstreams = [{}]\n",
                pages.join(", "),
                streams.join(", ")
            )
        };
        let most = MAX_LOADS / u64::from(MAX_RUNS);
        assert_eq!(Plan::parse(&text(most / 5, 5)).unwrap().len() as u64, most);
        for past in [text(1, most + 1), text(most + 1, 1)] {
            assert!(
                error_text(&past).contains("more than 1000000 loads"),
                "one past the limit"
            );
        }
    }

    #[test]
    fn the_canonical_text_parses_and_comments_do_not_change_it() {
        let text = "# what and why\nname = 'q'\nseed = 3\nruns = 2\npages = ['a \"page\" \\ here.har']\n[factors]\npush = true\nnetwork \
                    = ['dsl', \"3g\"]\nconnections = [2, '6']\n";
        let plan = Plan::parse(text).unwrap();
        let again = Plan::parse(&plan.canonical()).unwrap();
        assert_eq!(plan, again);
        assert_eq!(plan.hash(), again.hash());
        assert_ne!(
            plan.hash(),
            Plan::parse(&text.replace("seed = 3", "seed = 4"))
                .unwrap()
                .hash()
        );
    }
}
