//! Evaluation times of modules from a browser's trace. It names a module when it is compiled, but not when it is evaluated:
//!
//! ```text
//! v8.compileModule    fileName: the URL of the module, or of the document of an inline one
//! v8.evaluateModule   a module with all its static imports, which are compiled before
//! ```
//!
//! An evaluation counts for the module that was compiled last before it and has none yet. It is of the same tree of imports if the tree
//! was evaluated when its last module had arrived.

use std::collections::BTreeMap;

/// A process and a thread.
pub(crate) type Thread = (i64, i64);

/// An event of a thread. Times are seconds.
#[derive(Clone, Debug)]
struct ModuleEvent {
    thread: Thread,
    at: f64,
    took: f64,
    /// `None` for an evaluation.
    compiled: Option<String>,
}

/// The compilations and evaluations of modules in a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModuleTimes {
    events: Vec<ModuleEvent>,
}

impl ModuleTimes {
    /// Number of events.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Notes that the module at `url` was compiled from the time `at` on.
    pub(crate) fn compiled(&mut self, thread: Thread, at: f64, took: f64, url: String) {
        self.note(thread, at, took, Some(url));
    }

    /// Notes that a tree of modules was evaluated from the time `at` on.
    pub(crate) fn evaluated(&mut self, thread: Thread, at: f64, took: f64) {
        self.note(thread, at, took, None);
    }

    fn note(&mut self, thread: Thread, at: f64, took: f64, compiled: Option<String>) {
        if at.is_finite() && took.is_finite() {
            let took = took.max(0.0);
            self.events.push(ModuleEvent {
                thread,
                at,
                took,
                compiled,
            });
        }
    }

    /// Seconds of compilation and evaluation by URL.
    pub(crate) fn by_url(&self) -> BTreeMap<&str, f64> {
        let mut events: Vec<&ModuleEvent> = self.events.iter().collect();
        events.sort_by(|one, other| one.at.total_cmp(&other.at));
        let mut times = BTreeMap::new();
        let mut not_evaluated: BTreeMap<Thread, Vec<&str>> = BTreeMap::new();
        for event in events {
            let modules = not_evaluated.entry(event.thread).or_default();
            let counts_for = match &event.compiled {
                Some(url) => {
                    modules.push(url);
                    Some(&url[..])
                }
                None => modules.pop(),
            };
            if let Some(url) = counts_for {
                *times.entry(url).or_default() += event.took;
            }
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluation_counts_for_the_last_compiled_module_of_its_thread() {
        let mut times = ModuleTimes::default();
        let (page, frame) = ((1, 1), (2, 2));
        times.evaluated(page, 5.0, 2.0); // its message can come first
        times.compiled(page, 1.0, 0.25, "app.js".to_owned());
        times.compiled(page, 3.0, 0.5, "vue.js".to_owned());
        times.compiled(frame, 4.0, 0.125, "frame.js".to_owned());
        times.evaluated(page, 9.0, 4.0);
        times.evaluated(page, 20.0, 1.0); // of a module that the trace does not have
        let expected = [("app.js", 4.25), ("frame.js", 0.125), ("vue.js", 2.5)];
        assert_eq!(times.by_url(), expected.into());
    }

    #[test]
    fn times_that_are_no_numbers_do_not_count() {
        let mut times = ModuleTimes::default();
        times.compiled((1, 1), 0.0, f64::NAN, "a.js".to_owned());
        times.compiled((1, 1), f64::INFINITY, 0.0, "a.js".to_owned());
        times.compiled((1, 1), 0.0, -1.0, "b.js".to_owned());
        assert_eq!(times.by_url(), [("b.js", 0.0)].into());
    }
}
