//! The runs of a cell: those that cannot differ are loaded once, and equal loads of each run alone.

use std::cell::Cell;

use spdy_lab::experiment::plan::Plan;
use spdy_lab::experiment::runner::Runner;
use spdy_page::builtin;
use spdy_sim::load::Load;

fn runner(network: &str) -> Runner {
    let text = format!(
        "name = 'runs'\npages = ['portal']\nprotocols = ['http', 'https', 'spdy', 'h2', 'h3']\nruns = 3\n\
         [factors]\nnetwork = '{network}'\ndeploy = ['all', 'first-party']\n"
    );
    Runner::new(Plan::parse(&text).unwrap(), vec![builtin::portal()])
}

#[test]
fn each_run_of_a_cell_equals_the_load_of_that_run_alone() {
    for network in ["cable", "down=5mbit,up=1mbit,rtt=100ms,loss=2%"] {
        let runner = runner(network);
        for cell in runner.plan().cells() {
            let key = cell.key();
            let alone = (1..=3).map(|run| Load {
                waterfall: Vec::new(),
                ..runner.load_run(&cell, run).unwrap()
            });
            let alone: Vec<_> = alone.collect();
            let loads = runner.load(cell, || false).unwrap().unwrap().loads;
            assert_eq!(loads, alone, "{key}");
        }
    }
}

#[test]
fn a_stop_between_the_runs_of_a_cell_drops_the_cell() {
    let runner = runner("cable");
    let cell = runner.plan().cells().next().unwrap();
    let left = Cell::new(2);
    let stops = || left.replace(left.get() - 1) == 0;
    assert!(runner.load(cell, stops).unwrap().is_none());
}
