//! A Dask cluster for one test. `scripts/setup-peers` installs Dask.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::support::lab::postgres::PASSWORD;
use crate::support::peers::require;
use crate::support::program::{ReadyOn, RunningProgram};

/// A scheduler that workers connect to.
pub(crate) struct Dask {
    pub(crate) bin: PathBuf,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) address: String,
    _scheduler: RunningProgram,
}

/// The folder of Dask's programs and their Python.
pub(crate) fn programs() -> PathBuf {
    let bin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/dask/bin");
    require("Dask", bin.join("dask").is_file());
    bin
}

impl Dask {
    /// Starts a scheduler without workers.
    pub(crate) fn start() -> Self {
        let bin = programs();
        let folder = tempfile::tempdir().expect("create a folder");
        let mut scheduler = Command::new(bin.join("dask"));
        scheduler
            .args([
                "scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--no-dashboard",
            ])
            .env("DASK_CONFIG", folder.path())
            .current_dir(folder.path());
        let (scheduler, address) = RunningProgram::start(scheduler, ReadyOn::Stderr, |line| {
            let (_, address) = line.split_once("Scheduler at:")?;
            Some(address.trim().to_owned())
        });
        Self {
            bin,
            folder,
            address,
            _scheduler: scheduler,
        }
    }

    /// Starts a worker that runs one task at a time, in its own process group.
    pub(crate) fn worker(&self) -> Worker {
        use std::os::unix::process::CommandExt;
        let mut worker = Command::new(self.bin.join("dask"));
        worker
            .args([
                "worker",
                &self.address,
                "--no-nanny",
                "--nthreads",
                "1",
                "--no-dashboard",
            ])
            .arg("--local-directory")
            .arg(self.folder.path())
            .env("DASK_CONFIG", self.folder.path())
            .env("PGPASSWORD", PASSWORD)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = worker.spawn().expect("start the worker");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let has_joined = lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.contains("Registered to"));
        assert!(has_joined, "the worker has not joined");
        thread::spawn(move || lines.for_each(drop));
        Worker { child }
    }
}

/// A worker. It is killed when dropped.
pub(crate) struct Worker {
    child: Child,
}

impl Worker {
    /// Kills the process, or its whole process group.
    pub(crate) fn kill(&mut self, with_children: bool) {
        use nix::sys::signal::{Signal, kill, killpg};
        let process = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        let killed = match with_children {
            true => killpg(process, Signal::SIGKILL),
            false => kill(process, Signal::SIGKILL),
        };
        killed.expect("signal the process");
        self.child.wait().expect("wait for the process");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
