//! Stores that hold parts of one experiment, brought together; so also a store carried from one kind of database to the other.

use crate::store::error::StoreError;
use crate::store::location::Location;
use crate::store::results::{Added, Store};

/// What a part brought.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Merged {
    /// Cells that were not there.
    pub new: usize,
    /// Cells that were there, and the same.
    pub before: usize,
}

/// Adds the cells of the store at `part` to the one at `into`, which is made if there is none. A cell is added whole, and
/// `into` gets its last form with the last of them.
///
/// # Errors
///
/// A part of another plan, page or program; cells of both that are not the same; whatever keeps either from being read
/// or written. What was added until then is there.
pub fn merge(part: &Location, into: &Location) -> Result<Merged, StoreError> {
    let mut part = Store::open(part)?;
    let mut into = Store::open_or_create(into, &part.contents()?)?;
    let (mut merged, mut fault) = (Merged::default(), None);
    part.each_cell(|rows| {
        if fault.is_some() {
            return;
        }
        match into.add(rows) {
            Ok(Added::New) => merged.new += 1,
            Ok(Added::Before) => merged.before += 1,
            Err(error) => fault = Some(error),
        }
    })?;
    if let Some(error) = fault {
        return Err(error);
    }
    into.finish()?;
    Ok(merged)
}
