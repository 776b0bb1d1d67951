//! How long a wait is: the exponential window, and the draw from it. Other languages test against these, and the stored form of a call depends on them.
//!
//! Everything is integer nanoseconds and saturates; the window is clipped to its cap before the draw, so that draws are spread over
//! it at every attempt number. Randomness is a function of the call: its seed and the number of the failure.
//!
//! ```
//! use comeback::draw::{Purpose, bounds, uniform, word};
//! use comeback::{Jitter, RetryPolicy};
//!
//! let policy = RetryPolicy::read();
//! let range = bounds(Jitter::Full, &policy.window(), 0, None);
//! let high = range.high.as_nanos() as i64;
//! let first = uniform(word(42, 0, Purpose::Wait), 0, high);
//! assert_eq!(policy.waits(42).next().unwrap().as_nanos() as i64, first);
//! ```

use std::fmt;
use std::time::Duration;

use crate::instant::{Milliseconds, duration, nanos};
use crate::policy::{Jitter, Window};

/// Window number `n`, from 0: `min(cap, ⌊window(n − 1)·factor⌋)`, rounded down at each step.
pub fn window_at(window: &Window, n: u32) -> Duration {
    duration(width_at(window, n))
}

#[inline]
fn width_at(window: &Window, n: u32) -> i64 {
    let mut width = window.base;
    for _ in 0..n {
        // At the cap, or with a factor of one, all later windows are this one.
        if width >= window.cap || window.factor == 1_000 {
            break;
        }
        width = (width * i64::from(window.factor) / 1_000).min(window.cap);
    }
    width
}

/// What a wait is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// The window; for decorrelated jitter the upper bound.
    pub window: Duration,
    /// The shortest wait there can be.
    pub low: Duration,
    /// The longest wait there can be.
    pub high: Duration,
}

/// The bounds of a draw after `n` counted failures; `previous` is the last drawn value.
pub fn bounds(jitter: Jitter, window: &Window, n: u32, previous: Option<Duration>) -> Bounds {
    let range = Range::of(jitter, window, n, previous.map(nanos));
    Bounds {
        window: duration(range.high),
        low: duration(range.low),
        high: duration(range.high),
    }
}

/// Bounds in nanoseconds. In every mode the upper bound is the window.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub(crate) low: i64,
    pub(crate) high: i64,
}

impl Range {
    #[inline(always)] // on the path of every wait: 1 ns of 18
    pub(crate) fn of(jitter: Jitter, window: &Window, n: u32, previous: Option<i64>) -> Range {
        if jitter == Jitter::Decorrelated {
            // Three times a draw from the other window can be less than the base.
            let previous = previous.unwrap_or(window.base);
            let high = previous.saturating_mul(3).min(window.cap).max(window.base);
            return Range {
                low: window.base,
                high,
            };
        }
        let high = width_at(window, n);
        let low = match jitter {
            Jitter::Equal => high / 2,
            Jitter::None => high,
            Jitter::Full | Jitter::Decorrelated => 0,
        };
        Range { low, high }
    }

    #[inline]
    pub(crate) fn draw(self, word: u64) -> i64 {
        uniform(word, self.low, self.high)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let high = Milliseconds(duration(self.high));
        match self.low {
            0 => write!(out, "up to {high}"),
            low if low == self.high => write!(out, "{high}"),
            low => write!(out, "{} to {high}", Milliseconds(duration(low))),
        }
    }
}

/// What a draw is for. Each purpose takes its own outputs of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The wait itself.
    Wait,
    /// What a woken call waits in addition.
    Spread,
}

/// Output `index`, from 0, of SplitMix64 started with `seed` (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
#[inline]
pub const fn splitmix64(seed: u64, index: u64) -> u64 {
    const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut value = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(GAMMA));
    value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The random word for failure number `failure` (from 0): output 2·failure for its wait, 2·failure + 1 for its spread.
#[inline]
pub const fn word(seed: u64, failure: u32, purpose: Purpose) -> u64 {
    splitmix64(
        seed,
        2 * failure as u64 + matches!(purpose, Purpose::Spread) as u64,
    )
}

/// A word as a number from `low` to `high`, both reachable: `low + ⌊word·(high − low + 1)/2⁶⁴⌋`
/// (Lemire, "Fast Random Integer Generation in an Interval", 2019, without its rejection: the bias is below 2⁻¹⁷ at 24 h).
///
/// If `high` is not above `low`, the answer is `low`.
#[inline]
pub const fn uniform(word: u64, low: i64, high: i64) -> i64 {
    if high <= low {
        return low;
    }
    let steps = high.wrapping_sub(low) as u64 as u128 + 1;
    low.wrapping_add(((word as u128 * steps) >> 64) as i64)
}
