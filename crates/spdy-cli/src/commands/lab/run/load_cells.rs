//! Loads cells of both clocks: in virtual time on all cores, then in real time one after the other.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use spdy_lab::experiment::clock::Clock;
use spdy_lab::experiment::plan::Plan;
use spdy_lab::experiment::runner::{CellLoads, Runner};

use crate::outcome::Outcome;

/// Enters the namespaces that cells in real time need, if `plan` has any. Call it before any thread starts. What it gives is the outcome of
/// all that was done inside, seen from outside; inside it gives nothing.
#[cfg(target_os = "linux")]
pub(crate) fn enter(plan: &Plan) -> anyhow::Result<Option<Outcome>> {
    use spdy_tun::namespaces::{self, CtrlCPolicy, ProcessRole};
    if !plan.has_real_time() {
        return Ok(None);
    }
    match namespaces::enter(CtrlCPolicy::HandleInside)? {
        ProcessRole::Outer(status) => Ok(Some(Outcome::Code(namespaces::exit_code(status)))),
        ProcessRole::Command(_) => anyhow::bail!("unexpected process role: expected no command"),
        ProcessRole::Inner(_) => Ok(None),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn enter(plan: &Plan) -> anyhow::Result<Option<Outcome>> {
    let name = plan.name();
    anyhow::ensure!(
        !plan.has_real_time(),
        "{name} has cells in real time (clock=real), which needs Linux"
    );
    Ok(None)
}

/// What loads the cells in real time.
#[cfg(target_os = "linux")]
pub(crate) struct RealTimeLoader(Option<spdy_lab::live::runner::RealTimeRunner>);

#[cfg(not(target_os = "linux"))]
pub(crate) struct RealTimeLoader;

impl RealTimeLoader {
    /// Creates the link, if there are cells for it: a machine without support fails before anything is loaded.
    #[cfg(target_os = "linux")]
    pub(crate) fn start(plan: &Plan) -> anyhow::Result<Self> {
        let cells = plan.has_real_time();
        let cells = cells.then(|| spdy_lab::live::runner::RealTimeRunner::start(plan));
        Ok(Self(cells.transpose()?))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn start(_: &Plan) -> anyhow::Result<Self> {
        Ok(Self)
    }

    #[cfg(target_os = "linux")]
    fn load<'a>(
        &mut self,
        runner: &'a Runner,
        number: usize,
        stops: impl Fn() -> bool,
    ) -> anyhow::Result<Option<CellLoads<'a>>> {
        let cells = self.0.as_mut().expect("the plan has cells in real time");
        let cell = runner.plan().cell(&number.to_string());
        Ok(cells.load(
            runner,
            cell.expect("the number is of a cell of the plan"),
            stops,
        )?)
    }

    #[cfg(not(target_os = "linux"))]
    fn load<'a>(
        &mut self,
        _: &'a Runner,
        _: usize,
        _: impl Fn() -> bool,
    ) -> anyhow::Result<Option<CellLoads<'a>>> {
        unreachable!("`enter` refuses a plan with cells in real time")
    }
}

/// Loads the cells of these numbers, and passes each complete one to `on_cell`, until that fails or `stops` returns true.
pub(crate) fn load<'a>(
    runner: &'a Runner,
    mut real: RealTimeLoader,
    numbers: &[usize],
    jobs: Option<NonZeroUsize>,
    stops: impl Fn() -> bool + Sync,
    mut on_cell: impl FnMut(CellLoads<'a>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let clock = |number: &usize| {
        let cell = runner.plan().cell(&number.to_string());
        cell.expect("the number is of a cell of the plan").clock()
    };
    let (in_virtual_time, in_real_time): (Vec<usize>, Vec<usize>) = numbers
        .iter()
        .copied()
        .partition(|number| clock(number) == Clock::Virtual);
    let mut done = Ok(());
    runner.run(&in_virtual_time, jobs, &stops, |cell| {
        done = cell.map_err(anyhow::Error::new).and_then(&mut on_cell);
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    done?;
    // Loads on all cores would make a link late.
    for number in in_real_time {
        match real.load(runner, number, &stops)? {
            Some(cell) => on_cell(cell)?,
            None => break,
        }
    }
    Ok(())
}
