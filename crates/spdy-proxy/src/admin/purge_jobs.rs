//! Accepted purges and their progress.
//!
//! Once a purge is accepted, nothing that it matches is served any more. Two things may take longer: removing files, so that a crash cannot
//! undo it, and reaching the other machines that share a tier.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;

/// The number of jobs that are remembered. The oldest complete job is evicted for a new one; if none is complete, no purge is accepted.
const MAX_JOBS: usize = 1024;

/// The result of a purge.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct PurgeResult {
    /// Objects in memory that it matched.
    pub(crate) purged: usize,
    /// They became stale instead of being removed.
    pub(crate) soft: bool,
    /// Whether its files are removed from the disk for good. If not, the system failed to remove one, and a crash may bring it back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) removed_from_disk: Option<bool>,
    /// Whether the other machines that share a tier can see it; if not, they get it when the tier is reachable again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<bool>,
}

/// The progress of a purge.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(crate) enum PurgeState {
    /// Nothing that it matches is served. Files may still exist, and other machines may not have applied it.
    Running,
    /// It is complete.
    Done(PurgeResult),
}

/// A purge, as the operator sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct PurgeJob {
    /// The ID of the job.
    pub(crate) id: u64,
    #[serde(flatten)]
    pub(crate) state: PurgeState,
}

/// All purges that are remembered.
#[derive(Debug, Default)]
pub(crate) struct PurgeJobs(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    last: u64,
    states: BTreeMap<u64, PurgeState>,
}

impl PurgeJobs {
    /// Accepts a purge; `None` if too many are in progress.
    pub(crate) fn begin(&self) -> Option<u64> {
        let mut table = self.lock();
        if table.states.len() >= MAX_JOBS {
            let mut done = table.states.iter();
            let first = done.find(|(_, state)| **state != PurgeState::Running);
            let first = *first?.0;
            table.states.remove(&first);
        }
        table.last += 1;
        let id = table.last;
        table.states.insert(id, PurgeState::Running);
        Some(id)
    }

    /// Records that it is complete.
    pub(crate) fn end(&self, id: u64, done: PurgeResult) {
        self.lock().states.insert(id, PurgeState::Done(done));
    }

    /// Removes a job that was rejected.
    pub(crate) fn forget(&self, id: u64) {
        self.lock().states.remove(&id);
    }

    /// The job with this ID, if it is remembered.
    pub(crate) fn of(&self, id: &str) -> Option<PurgeJob> {
        let id = id.parse().ok()?;
        let state = *self.lock().states.get(&id)?;
        Some(PurgeJob { id, state })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: PurgeResult = PurgeResult {
        purged: 1,
        soft: false,
        removed_from_disk: None,
        published: None,
    };

    #[test]
    fn job_count_is_limited_and_running_jobs_are_kept() {
        let jobs = PurgeJobs::default();
        let ids: Vec<u64> = (0..MAX_JOBS).filter_map(|_| jobs.begin()).collect();
        assert_eq!(ids.len(), MAX_JOBS);
        assert_eq!(jobs.begin(), None, "all are under way");
        jobs.end(ids[7], DONE);
        jobs.end(ids[3], DONE);
        assert!(jobs.begin().is_some());
        assert_eq!(jobs.of(&ids[3].to_string()), None, "it was the first");
        assert!(jobs.of(&ids[7].to_string()).is_some());
    }

    #[test]
    fn job_reports_progress_and_unknown_id_is_none() {
        let jobs = PurgeJobs::default();
        let id = jobs.begin().expect("the limit is not reached");
        let state_json =
            |jobs: &PurgeJobs| serde_json::to_string(&jobs.of("1")).expect("a job is JSON");
        assert_eq!(state_json(&jobs), r#"{"id":1,"state":"running"}"#);
        jobs.end(id, DONE);
        let done = r#"{"id":1,"state":"done","purged":1,"soft":false}"#;
        assert_eq!(state_json(&jobs), done);
        for other in ["2", "", "one", "-1", "1/"] {
            assert_eq!(jobs.of(other), None, "{other:?}");
        }
    }
}
