//! Runs the link's thread: it reads packets from both devices, passes them to the emulator, and writes them when they are due.
//!
//! It sleeps in ppoll(2) with a deadline in nanoseconds and a timer slack of 1 ns: tokio's timers, and plain
//! sleeping, round to a millisecond or add 50 µs.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use rustix::process::setpriority_process;
use spdy_clock::{Instant, MonotonicClock};
use spdy_netem::path::{Direction, PathConfig};
use tun_rs::SyncDevice;

use crate::capture::Capture;
use crate::cpu::CpuTime;
use crate::emulator::Emulator;
use crate::stats::LinkStats;

/// Packets that are read from one device before the other device and due packets have their turn.
const BATCH: usize = 64;
/// How long before a packet is due the thread wakes an extra time. After a long sleep a core runs slowly at first, which would delay the
/// packet.
const EARLY: Duration = Duration::from_micros(200);
/// Largest IP packet that a device returns, bytes.
const LARGEST: usize = 65_536;

/// Nice value that the thread sets if the system allows it: a browser at one end has more threads than there are cores.
const NICE_VALUE: i32 = -15;

/// Commands for the link's thread.
pub(crate) enum LinkCommand {
    /// Begin a run: an idle link, with all counts at zero.
    Begin { config: PathConfig, seed: u64 },
    /// Set all counts to zero, and change nothing else.
    RestartCounts,
    /// Report the statistics since the last `Begin` or `RestartCounts`.
    Measure(mpsc::Sender<LinkStats>),
    /// Capture the packets of this run, up to this many bytes.
    StartCapture(usize),
    /// Return the capture, and the wall-clock time at the origin of its instants.
    EndCapture(mpsc::Sender<(Capture, SystemTime)>),
    /// Report as soon as no packet is in flight and none has been read or written for this long.
    Quiet(Duration, mpsc::Sender<()>),
    /// End the thread.
    Stop,
}

/// The state of the thread.
pub(crate) struct LinkThread {
    client: SyncDevice,
    server: SyncDevice,
    commands: mpsc::Receiver<LinkCommand>,
    /// Written after each command, to end the thread's sleep.
    wake_fd: Arc<EventFd>,
    clock: MonotonicClock,
    emulator: Emulator,
    cpu_at_begin: Option<CpuTime>,
    /// When a packet was last read or written.
    last_packet: Instant,
    /// The pending `Quiet` command.
    quiet: Option<(Duration, mpsc::Sender<()>)>,
    buffer: Vec<u8>,
}

impl LinkThread {
    pub(crate) fn new(
        client: SyncDevice,
        server: SyncDevice,
        commands: mpsc::Receiver<LinkCommand>,
        wake_fd: Arc<EventFd>,
        config: &PathConfig,
        seed: u64,
    ) -> Self {
        let clock = MonotonicClock::start();
        let now = clock.now();
        Self {
            client,
            server,
            commands,
            wake_fd,
            clock,
            emulator: Emulator::new(config, seed, now),
            cpu_at_begin: None,
            last_packet: now,
            quiet: None,
            buffer: vec![0; LARGEST],
        }
    }

    /// Runs until stopped.
    ///
    /// # Errors
    ///
    /// A device or the poll failed.
    pub(crate) fn run(mut self) -> io::Result<()> {
        set_timerslack(1)?;
        // Only a privileged user may do this. A failure matters only if other threads need the same core.
        let _ = setpriority_process(None, NICE_VALUE);
        self.cpu_at_begin = CpuTime::of_this_thread();
        loop {
            let has_commands = self.wait()?;
            if has_commands && self.handle_commands()? {
                return Ok(());
            }
            for way in [Direction::Down, Direction::Up] {
                self.receive(way)?;
            }
            self.deliver();
            self.notify_if_quiet();
        }
    }

    /// Sleeps until a packet arrives or is due, the link has been quiet for long enough, or `wake_fd` was written.
    /// Returns `true` in the last case.
    fn wait(&self) -> io::Result<bool> {
        let now = self.clock.now();
        let quiet_at = self
            .quiet
            .as_ref()
            .filter(|_| self.emulator.is_empty())
            .map(|(silence, _)| self.last_packet + *silence);
        let due = [self.emulator.poll_timeout(), quiet_at]
            .into_iter()
            .flatten()
            .min();
        let timeout = due.map(|due| {
            let remaining = due - now;
            // Twice, because about `EARLY` remains after the extra wake-up, which must not cause another one.
            let early = if remaining > 2 * EARLY {
                EARLY
            } else {
                Duration::ZERO
            };
            TimeSpec::from(remaining - early)
        });
        let poll_in = PollFlags::POLLIN;
        let mut watched = [
            PollFd::new(self.wake_fd.as_fd(), poll_in),
            PollFd::new(self.client.as_fd(), poll_in),
            PollFd::new(self.server.as_fd(), poll_in),
        ];
        match ppoll(&mut watched, timeout, None) {
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(watched[0].any().unwrap_or(false))
    }

    /// Handles the commands that have arrived. Returns whether the thread must end.
    fn handle_commands(&mut self) -> io::Result<bool> {
        self.wake_fd.read()?;
        while let Ok(command) = self.commands.try_recv() {
            let now = self.clock.now();
            match command {
                LinkCommand::Begin { config, seed } => {
                    self.emulator = Emulator::new(&config, seed, now);
                    self.cpu_at_begin = CpuTime::of_this_thread();
                }
                LinkCommand::RestartCounts => {
                    self.emulator.restart_counts(now);
                    self.cpu_at_begin = CpuTime::of_this_thread();
                }
                LinkCommand::Measure(reply) => {
                    let mut measured = self.emulator.stats(now);
                    let cpu = CpuTime::of_this_thread().zip(self.cpu_at_begin);
                    measured.waited_for_cpu_ms =
                        cpu.map(|(now, begin)| (now - begin).waited.as_secs_f64() * 1e3);
                    let _ = reply.send(measured);
                }
                LinkCommand::StartCapture(limit) => self.emulator.start_capture(limit),
                LinkCommand::EndCapture(reply) => {
                    let origin = SystemTime::now() - (now - Instant::ZERO);
                    let _ = reply.send((self.emulator.end_capture(), origin));
                }
                LinkCommand::Quiet(silence, reply) => self.quiet = Some((silence, reply)),
                LinkCommand::Stop => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Reads packets from the device at which `way` begins, at most [`BATCH`], and passes them to the emulator.
    fn receive(&mut self, way: Direction) -> io::Result<()> {
        for _ in 0..BATCH {
            let from = match way {
                Direction::Up => &self.client,
                Direction::Down => &self.server,
            };
            let len = match from.recv(&mut self.buffer) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let now = self.clock.now();
            self.last_packet = now;
            match self.buffer[..len].first() {
                Some(first) if first >> 4 == 4 => {
                    self.emulator.offer(now, way, &self.buffer[..len]);
                }
                _ => self.emulator.handle_non_ipv4(way),
            }
        }
        Ok(())
    }

    /// Writes the packets that are due.
    fn deliver(&mut self) {
        while let Some(delivery) = self.emulator.poll_delivery(self.clock.now()) {
            let to = match delivery.way {
                Direction::Up => &self.server,
                Direction::Down => &self.client,
            };
            // A device accepts a whole packet or nothing of it.
            let accepted = to.send(&delivery.packet).is_ok();
            let now = self.clock.now();
            self.last_packet = now;
            self.emulator.handle_written(&delivery, now, accepted);
        }
    }

    /// Replies to a `Quiet` command when its condition is met.
    fn notify_if_quiet(&mut self) {
        let now = self.clock.now();
        let (empty, last) = (self.emulator.is_empty(), self.last_packet);
        let quiet = self
            .quiet
            .take_if(|(silence, _)| empty && now - last >= *silence);
        if let Some((_, reply)) = quiet {
            let _ = reply.send(());
        }
    }
}
