//! Finds the recording of a request that differs from it only in its query.
//!
//! Scripts put the time or a random number into a query, so that a page requests another URL at each load. The rule is that of Web Page
//! Replay: of all recorded targets with the same path, the one with the most equal parameters is served. The path counts as one more
//! equal parameter of both, so that a target without a query is not preferred.
//!
//! ```text
//! similarity = 2 (equal + 1) / (parameters of one + parameters of the other + 2)
//! ```

use std::collections::BTreeMap;

/// Returns the target of `recorded` that is most similar to `target`: the first in their order if several are. `None` if no target has
/// its path. Only contents that `select` accepts count.
pub(crate) fn most_similar<'a, T, S>(
    recorded: &'a BTreeMap<String, T>,
    target: &str,
    select: impl Fn(&'a T) -> Option<S>,
) -> Option<(&'a str, S)> {
    let (path, query) = split(target);
    let requested = parameters(query);
    let with_path = recorded
        .range(path.to_owned()..)
        .take_while(|(other, _)| other.starts_with(path))
        .filter(|(other, _)| split(other).0 == path);
    let mut best: Option<(f64, &str, S)> = None;
    for (other, content) in with_path {
        let Some(selected) = select(content) else {
            continue;
        };
        let similarity = similarity(&requested, &parameters(split(other).1));
        if best.as_ref().is_none_or(|(most, ..)| similarity > *most) {
            best = Some((similarity, other.as_str(), selected));
        }
    }
    best.map(|(_, other, selected)| (other, selected))
}

/// The values of each parameter, in their order.
type Parameters = BTreeMap<String, Vec<String>>;

fn split(target: &str) -> (&str, &str) {
    target.split_once('?').unwrap_or((target, ""))
}

fn parameters(query: &str) -> Parameters {
    let mut parameters = Parameters::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let values = parameters.entry(name.into_owned()).or_default();
        values.push(value.into_owned());
    }
    parameters
}

fn similarity(one: &Parameters, other: &Parameters) -> f64 {
    let equal = one
        .iter()
        .filter(|(name, values)| other.get(*name) == Some(values));
    2.0 * (equal.count() + 1) as f64 / (one.len() + other.len() + 2) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(recorded: &[&str], target: &str) -> Option<String> {
        let recorded: BTreeMap<String, ()> = recorded
            .iter()
            .map(|target| ((*target).to_owned(), ()))
            .collect();
        most_similar(&recorded, target, Some).map(|(target, _)| target.to_owned())
    }

    #[test]
    fn the_target_with_the_most_equal_parameters_is_found() {
        let recorded = [
            "/ad?size=1&_=7",
            "/ad?size=2&_=8",
            "/ad",
            "/adverts?size=2",
            "/ad/x",
        ];
        for (target, expected) in [
            ("/ad?size=2&_=99", Some("/ad?size=2&_=8")),
            ("/ad?size=1&_=99", Some("/ad?size=1&_=7")),
            ("/ad?_=8&size=9", Some("/ad?size=2&_=8")),
            ("/adverts?size=2&rnd=0.37", Some("/adverts?size=2")),
            ("/ad/x?1700000000", Some("/ad/x")),
            ("/other?size=2", None),
        ] {
            assert_eq!(found(&recorded, target).as_deref(), expected, "{target}");
        }
    }

    #[test]
    fn a_target_without_a_query_is_not_preferred() {
        assert_eq!(
            found(&["/ad", "/ad?a=1&b=2"], "/ad?a=1&b=3").as_deref(),
            Some("/ad?a=1&b=2")
        );
        assert_eq!(
            found(&["/ad", "/ad?a=1"], "/ad?b=2").as_deref(),
            Some("/ad")
        );
    }

    #[test]
    fn contents_that_are_not_selected_do_not_count() {
        let recorded = BTreeMap::from([("/x?a=1".to_owned(), 'p'), ("/x?b=1".to_owned(), 'g')]);
        let select = |content: &char| (*content == 'g').then_some(());
        let found = most_similar(&recorded, "/x?a=1&t=2", select);
        assert_eq!(found, Some(("/x?b=1", ())));
    }

    #[test]
    fn parameters_are_compared_decoded_and_with_all_their_values() {
        let recorded = ["/?a=1&a=2&t=1", "/?a=1&t=2"];
        assert_eq!(
            found(&recorded, "/?t=3&a=1&a=2").as_deref(),
            Some(recorded[0])
        );
        assert_eq!(
            found(&recorded, "/?t=3&%61=%31").as_deref(),
            Some(recorded[1])
        );
    }

    #[test]
    fn a_target_without_a_query_finds_one_with_a_query() {
        assert_eq!(found(&["/p?x=1"], "/p").as_deref(), Some("/p?x=1"));
        assert_eq!(found(&["/p"], "/p?x=1").as_deref(), Some("/p"));
    }
}
