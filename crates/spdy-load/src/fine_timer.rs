//! A timer with a higher resolution than tokio's millisecond, for the open loop: a request that begins a millisecond late because of
//! a timer would count as the server's latency. On Linux it is a timerfd; elsewhere tokio's own timer.

#[cfg(target_os = "linux")]
pub(crate) use linux::FineTimer;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::FineTimer;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll, ready};
    use std::time::{Duration, Instant};

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// Fires once for each deadline.
    pub(crate) struct FineTimer {
        fd: AsyncFd<OwnedFd>,
        set: Option<Instant>,
    }

    impl FineTimer {
        #[expect(
            deprecated,
            reason = "its replacement is unsafe because a type may replace its file descriptor; an OwnedFd does not"
        )]
        pub(crate) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            Ok(Self {
                fd: AsyncFd::new(fd)?,
                set: None,
            })
        }

        /// Ready at `due`; the task is woken then.
        ///
        /// # Panics
        ///
        /// If the system does not set an existing timer.
        pub(crate) fn poll_until(&mut self, cx: &mut Context<'_>, due: Instant) -> Poll<()> {
            const OURS: &str = "the timer is created by this module";
            loop {
                let now = Instant::now();
                if due <= now {
                    return Poll::Ready(());
                }
                if self.set != Some(due) {
                    let once = once_after(due - now);
                    timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &once).expect(OURS);
                    self.set = Some(due);
                }
                let mut guard = ready!(self.fd.poll_read_ready(cx)).expect(OURS);
                let mut times = [0; 8];
                // An expiry of an earlier deadline is read and ignored, and the wait continues.
                if let Ok(read) = guard.try_io(|fd| Ok(rustix::io::read(fd, &mut times)?)) {
                    read.expect(OURS);
                    self.set = None;
                }
            }
        }
    }

    fn once_after(time: Duration) -> Itimerspec {
        // Zero would disarm it.
        let time = time.max(Duration::from_nanos(1));
        Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(time.subsec_nanos()),
            },
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Instant;

    use tokio::time::Sleep;

    /// Fires once for each deadline.
    pub(crate) struct FineTimer(Option<Pin<Box<Sleep>>>);

    impl FineTimer {
        pub(crate) fn new() -> io::Result<Self> {
            Ok(Self(None))
        }

        /// Ready at `due`; the task is woken then.
        pub(crate) fn poll_until(&mut self, cx: &mut Context<'_>, due: Instant) -> Poll<()> {
            let sleep = self
                .0
                .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due.into())));
            if sleep.deadline() != due.into() {
                sleep.as_mut().reset(due.into());
            }
            sleep.as_mut().poll(cx)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::{Duration, Instant};

    use super::FineTimer;

    #[tokio::test]
    async fn the_timer_fires_at_its_deadline_however_it_is_set() {
        let mut timer = FineTimer::new().unwrap();
        let begun = Instant::now();
        // Sets it far ahead, then near, then lets the expiry of the old deadline pass.
        for micros in [5_000_000, 300] {
            let due = begun + Duration::from_micros(micros);
            let _ = poll_fn(|cx| std::task::Poll::Ready(timer.poll_until(cx, due))).await;
        }
        let due = begun + Duration::from_millis(3);
        poll_fn(|cx| timer.poll_until(cx, due)).await;
        assert!(Instant::now() >= due);
        poll_fn(|cx| timer.poll_until(cx, begun)).await;
    }
}
