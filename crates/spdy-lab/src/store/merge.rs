//! Stores that hold parts of one experiment, brought together; so also a store carried from one kind of database to the other.

use crate::store::error::StoreError;
use crate::store::insert::AddOutcome;
use crate::store::location::Location;
use crate::store::open::Store;
use crate::store::row::Row;

/// Rows that are added in one transaction, at least, until the part is at its end: each costs the disk a round.
const ROWS_AT_ONCE: usize = 2_000;

/// What a part brought.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MergeCounts {
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
/// A part of another plan, page, program or model; cells of both that are not the same; whatever keeps either from being read
/// or written. What was added until then is there.
pub fn merge(part: &Location, into: &Location) -> Result<MergeCounts, StoreError> {
    let mut part = Store::open(part)?;
    let mut into = Store::open_or_create(into, &part.contents()?)?;
    let (mut merged, mut fault) = (MergeCounts::default(), None);
    let (mut cells, mut held) = (Vec::<Vec<Row>>::new(), 0);
    let mut add = |cells: &mut Vec<Vec<Row>>| -> Result<(), StoreError> {
        for added in into.add_all(cells)? {
            match added {
                AddOutcome::Inserted => merged.new += 1,
                AddOutcome::AlreadyPresent => merged.before += 1,
            }
        }
        cells.clear();
        Ok(())
    };
    part.each_cell(|rows| {
        if fault.is_some() {
            return;
        }
        cells.push(rows.to_vec());
        held += rows.len();
        if held >= ROWS_AT_ONCE {
            held = 0;
            fault = add(&mut cells).err();
        }
    })?;
    if let Some(error) = fault {
        return Err(error);
    }
    add(&mut cells)?;
    into.finish()?;
    Ok(merged)
}
