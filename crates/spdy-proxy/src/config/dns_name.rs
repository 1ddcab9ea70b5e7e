//! Compares DNS names.

/// Whether `name`, in lower case, is that of the zone of `apex` or below it.
pub(crate) fn is_in_zone(name: &str, apex: &str) -> bool {
    let apex = apex.trim_end_matches('.').to_ascii_lowercase();
    let above = name.strip_suffix(&apex);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}
