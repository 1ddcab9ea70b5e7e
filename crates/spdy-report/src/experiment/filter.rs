//! A filter by levels for reports of many factors: checkboxes that hide panels, dots and rows of other levels.
//!
//! Means and distributions are computed over all levels, so the filter cannot change them.

use std::fmt;

use super::data::{PAGE, Trial, VariedFactor};
use crate::filter_form::{FilterGroup, FilterOption, hiding_rule, write_form};

/// Varied factors from which a report has a filter.
const MIN_FACTORS: usize = 4;

/// What the filter does, for readers.
const ABOUT: &str = "Panels, dots and rows of other levels are hidden. Means, main effects and distributions remain those of all levels.";

/// What can be filtered: a group for the page and for each varied factor. Without groups there is no filter.
#[derive(Debug, Default)]
pub(super) struct LevelFilter {
    groups: Vec<(String, Vec<String>)>,
}

impl LevelFilter {
    pub(super) fn of(pages: &[String], factors: &[VariedFactor]) -> Self {
        if factors.len() < MIN_FACTORS {
            return Self::default();
        }
        let page = (pages.len() > 1).then(|| (PAGE.to_owned(), pages.to_vec()));
        let of_factor = |factor: &VariedFactor| {
            let levels = factor.levels.iter().map(|(level, _)| level.clone());
            (factor.name.clone(), levels.collect())
        };
        Self {
            groups: page
                .into_iter()
                .chain(factors.iter().map(of_factor))
                .collect(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The CSS classes of an element that shows `trial`, except for its levels of `apart`.
    pub(super) fn classes(&self, trial: &Trial, apart: &[&str]) -> String {
        self.classes_by(|name| match name {
            name if apart.contains(&name) => None,
            PAGE => Some(&trial.page),
            name => trial.level(name),
        })
    }

    /// The CSS class of an element that shows results of `page` alone.
    pub(super) fn page_class(&self, page: &str) -> String {
        self.classes_by(|name| (name == PAGE).then_some(page))
    }

    /// The CSS classes of an element that shows a cell with these levels.
    pub(super) fn classes_of_levels(&self, levels: &[(String, String)]) -> String {
        self.classes_by(|name| {
            let found = levels.iter().find(|(other, _)| other == name);
            found.map(|(_, level)| &level[..])
        })
    }

    fn classes_by<'a>(&'a self, level: impl Fn(&'a str) -> Option<&'a str>) -> String {
        let class = |(group, (name, levels)): (usize, &'a (String, Vec<String>))| {
            let shown = level(name)?;
            let number = levels.iter().position(|level| level == shown)?;
            Some(class(group, number))
        };
        let classes: Vec<_> = self.groups.iter().enumerate().filter_map(class).collect();
        classes.join(" ")
    }

    /// The rules that hide what is not selected.
    pub(super) fn rules(&self) -> String {
        let groups = self.groups.iter().enumerate();
        let classes = groups.flat_map(|(group, (_, levels))| {
            (0..levels.len()).map(move |number| class(group, number))
        });
        classes.map(|class| hiding_rule(&class)).collect()
    }

    /// Writes the form.
    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        if self.is_empty() {
            return Ok(());
        }
        let group = |(group, (name, levels)): (usize, &(String, Vec<String>))| {
            let option = |(number, level): (usize, &String)| FilterOption {
                id: class(group, number),
                value: format!("{name}={level}"),
                label: level.clone(),
            };
            FilterGroup {
                name: name.clone(),
                options: levels.iter().enumerate().map(option).collect(),
            }
        };
        let groups: Vec<_> = self.groups.iter().enumerate().map(group).collect();
        write_form(out, ABOUT, &groups)
    }
}

/// The CSS class of a level, which is also the ID of its checkbox.
fn class(group: usize, level: usize) -> String {
    format!("lv{group}-{level}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(count: usize) -> Vec<VariedFactor> {
        let factor = |number| VariedFactor {
            name: format!("factor-{number}"),
            levels: vec![("low".to_owned(), 0.0), ("high".to_owned(), 1.0)],
            is_numeric: false,
        };
        (0..count).map(factor).collect()
    }

    #[test]
    fn four_factors_have_a_filter_and_three_have_none() {
        let pages = ["portal".to_owned()];
        let few = LevelFilter::of(&pages, &factors(3));
        assert!(few.is_empty() && few.rules().is_empty());
        let mut form = String::new();
        few.write(&mut form).expect("a String takes every write");
        assert!(form.is_empty());
        let many = LevelFilter::of(&pages, &factors(4));
        many.write(&mut form).expect("a String takes every write");
        assert_eq!(form.matches("type=\"checkbox\"").count(), 8);
        assert_eq!(many.rules().matches("display:none").count(), 8);
    }

    #[test]
    fn a_cell_has_the_classes_of_its_own_levels() {
        let pages = ["portal".to_owned(), "flags".to_owned()];
        let filter = LevelFilter::of(&pages, &factors(4));
        let level = |name: &str, level: &str| (name.to_owned(), level.to_owned());
        let levels = [
            level("page", "flags"),
            level("protocol", "spdy"),
            level("factor-0", "low"),
            level("factor-3", "high"),
        ];
        assert_eq!(filter.classes_of_levels(&levels), "lv0-1 lv1-0 lv4-1");
    }
}
