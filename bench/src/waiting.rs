//! Waiting for the end of a child, and for what nothing tells: that is looked at now and then.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{pidfd_open, Pid, PidfdFlags};

use crate::{interrupt, Failure};

/// How long a child is waited for before an interrupt is looked for: it may have come to another thread.
const GLANCE: Duration = Duration::from_millis(100);

/// Looks at something every so often, until it is there. `look` returns it, or says what is missing.
///
/// # Errors
/// What was missing when the time was over; or an interrupt came.
pub(crate) fn wait_for<T>(
    within: Duration,
    every: Duration,
    mut look: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let deadline = Instant::now() + within;
    loop {
        let missing = match look() {
            Ok(found) => return Ok(found),
            Err(missing) => missing,
        };
        if interrupt::came() {
            return Err(interrupt::failure());
        }
        if Instant::now() >= deadline {
            return Err(missing);
        }
        sleep(every);
    }
}

/// Lets time pass.
///
/// # Errors
/// An interrupt came.
pub(crate) fn pause(time: Duration, every: Duration) -> Result<(), Failure> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if interrupt::came() {
            return Err(interrupt::failure());
        }
        sleep(every);
    }
    Ok(())
}

/// Waits for the end of a child, and leaves it to be waited for; whether it ended within this time, and before `stopped`
/// says that there is no time left.
pub(crate) fn ended_within(
    child: &Child,
    at_most: Duration,
    stopped: &dyn Fn() -> bool,
) -> Result<bool, Errno> {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let deadline = Instant::now() + at_most;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let glance = left.min(GLANCE);
        let glance = Timespec { tv_sec: glance.as_secs() as i64, tv_nsec: glance.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&glance)) {
            Ok(0) | Err(Errno::INTR) if left.is_zero() || stopped() => return Ok(false),
            Ok(0) | Err(Errno::INTR) => {}
            result => return Ok(result? > 0),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this module is for what nothing tells")]
fn sleep(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_in_the_end_is_returned() {
        let mut looks = 0;
        let found = wait_for(Duration::from_secs(60), Duration::ZERO, || {
            looks += 1;
            if looks == 3 {
                Ok(looks)
            } else {
                Err(Failure::new("it is not there"))
            }
        });
        assert_eq!(found.unwrap(), 3);
    }

    #[test]
    fn what_was_missing_is_said() {
        let missing =
            wait_for(Duration::ZERO, Duration::ZERO, || Err::<(), _>(Failure::new("1 of 2 is there")));
        assert_eq!(missing.unwrap_err().0, "1 of 2 is there");
    }
}
