//! Forms that hide parts of a page: checkboxes, and rules of the style sheet that react to them (`:has()`).
//!
//! There is no script: the keyboard works as in any form, and a browser without `:has()` shows everything.

use std::fmt::{self, Write};

use crate::text::Text;

/// A checkbox. Elements whose CSS class is its ID are hidden while it is not checked.
pub(crate) struct FilterOption {
    pub(crate) id: String,
    /// A name that stays the same if the report is made again with more results.
    pub(crate) value: String,
    pub(crate) label: String,
}

/// Checkboxes with a common name.
pub(crate) struct FilterGroup {
    pub(crate) name: String,
    pub(crate) options: Vec<FilterOption>,
}

/// The rule that hides the elements of a class unless the checkbox of that ID is checked.
pub(crate) fn hiding_rule(id: &str) -> String {
    format!("body:has(#{id}:not(:checked)) .{id}{{display:none}}")
}

/// Writes a form; `about` states what it hides.
pub(crate) fn write_form(out: &mut String, about: &str, groups: &[FilterGroup]) -> fmt::Result {
    // This method submits nothing outside a dialog.
    write!(
        out,
        "<form class=\"filter\" method=\"dialog\"><h2>Filter</h2><p>{}</p><div>",
        Text(about)
    )?;
    for FilterGroup { name, options } in groups {
        write!(out, "<fieldset><legend>{}</legend>", Text(name))?;
        for FilterOption { id, value, label } in options {
            let (value, label) = (Text(value), Text(label));
            write!(
                out,
                "<label><input type=\"checkbox\" id=\"{id}\" value=\"{value}\" checked>{label}</label>"
            )?;
        }
        write!(out, "</fieldset>")?;
    }
    write!(
        out,
        "</div><button type=\"reset\">Select all</button></form>"
    )
}
