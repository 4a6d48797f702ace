//! Waiting for what nothing tells: it is looked at now and then.

use std::time::{Duration, Instant};

use crate::{interrupt, Failure};

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
