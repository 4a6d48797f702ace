//! Moments that are spread evenly over a time, so that what many do does not happen at once.

use std::cell::Cell;
use std::time::Duration;

/// Gives out moments. However many are taken one after the other, they are spread evenly: each step is the golden section of
/// the whole, and so leads into the largest gap that is left. Unlike with random numbers, no two of them are close together.
#[derive(Debug, Default)]
pub(crate) struct Spread(Cell<u32>);

impl Spread {
    /// 2^32 divided by the golden ratio.
    const STEP: u32 = 0x9e37_79b9;

    /// The next moment within `time`.
    pub(crate) fn next(&self, time: Duration) -> Duration {
        let at = self.0.get();
        self.0.set(at.wrapping_add(Self::STEP));
        time.mul_f64(f64::from(at) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_spread_evenly_however_many_there_are() {
        let spread = Spread::default();
        for count in [1, 10, 100, 10_000] {
            let mut tenths = [0_i32; 10];
            for _ in 0..count {
                let moment = spread.next(Duration::from_secs(10));
                tenths[(moment.as_secs() as usize).min(9)] += 1;
            }
            assert!(tenths.iter().all(|of_tenth| (of_tenth - count / 10).abs() <= 2), "{tenths:?}");
        }
    }
}
