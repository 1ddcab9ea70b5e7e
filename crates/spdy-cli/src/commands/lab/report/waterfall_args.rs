//! The waterfalls of a report: their loads are not in the store, so they are loaded again.

use std::path::{Path, PathBuf};

use spdy_lab::experiment::plan::Plan;
use spdy_lab::store::location::Location;
use spdy_lab::store::manifest::Manifest;
use spdy_lab::store::row::Row;
use spdy_report::experiment::{self, TrialWaterfalls};

use crate::commands::lab::experiment::Experiment;
use crate::outcome::Usage;
use crate::output::Printer;

/// The loads that waterfalls show. They are loaded again.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Waterfalls")]
pub(crate) struct WaterfallArgs {
    /// Show the waterfalls of the cell with this key [default: for each page the cell in the middle of all factors]
    #[arg(long, value_name = "KEY")]
    pub(crate) cell: Option<String>,

    /// Folder that relative paths of pages start from [default: the folder of the store, if it is a file]
    #[arg(long, value_name = "DIR")]
    pages: Option<PathBuf>,
}

impl WaterfallArgs {
    /// Finds fault with a cell that `plan` has not: it will never be there.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), Usage> {
        match &self.cell {
            Some(key) if !plan.cells().any(|cell| cell.key() == *key) => {
                let name = plan.name();
                Err(Usage(format!(
                    "the plan {name} has no cell {key:?}: `spdy lab cells` lists its {}",
                    plan.len()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Loads the cells for the waterfalls again. Only a missing cell is an error: a report without waterfalls is
    /// valid.
    pub(crate) fn again(
        &self,
        store: &Location,
        contents: &Manifest,
        rows: &[Row],
        printer: &Printer,
    ) -> anyhow::Result<Vec<TrialWaterfalls>> {
        if let Some(key) = &self.cell {
            let is_it = |row: &Row| row.value("cell").as_str() == Some(key);
            if !rows.iter().any(is_it) {
                let message = format!(
                    "{store} has no cell {key:?}: `spdy lab show {store} --json` lists the keys"
                );
                return Err(Usage(message).into());
            }
        }
        if contents.plan.is_empty() {
            return Ok(TrialWaterfalls::none(
                "Imported results have no times of single resources.",
            ));
        }
        let store_folder = store.file().and_then(Path::parent).unwrap_or(Path::new(""));
        let folder = self.pages.as_deref().unwrap_or(store_folder);
        let runner = Experiment::stored(&contents.plan, folder)
            .and_then(|experiment| experiment.into_runner(printer));
        Ok(match runner {
            Ok(runner) => experiment::again(&runner, rows, self.cell.as_deref()),
            Err(error) => {
                TrialWaterfalls::none(&format!("{error:#}; --pages sets the folder of the pages."))
            }
        })
    }
}
