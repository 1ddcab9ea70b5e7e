//! Merges stores with parts of one experiment. It can also copy a store from one kind of database to the other.

use crate::store::error::StoreError;
use crate::store::insert::AddOutcome;
use crate::store::location::Location;
use crate::store::open::Store;
use crate::store::row::Row;

/// Minimum rows that are added in one transaction, until the end of the part: each transaction needs a disk flush.
const ROWS_AT_ONCE: usize = 2_000;

/// The result of a merge.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MergeCounts {
    /// Number of new cells.
    pub new: usize,
    /// Number of cells that existed already and are equal.
    pub before: usize,
}

/// Adds the cells of the store at `part` to the one at `into`, which is created if it does not exist. A cell is added as a whole, and
/// `into` is finished with the last cell.
///
/// # Errors
///
/// A part of another plan, page, program or model; a cell that differs; an error of either database. Cells that were added before the
/// error stay.
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
