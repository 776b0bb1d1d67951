//! The schedule that a policy makes of windows and draws.
//!
//! ```
//! use comeback::RetryPolicy;
//! use std::time::Duration;
//!
//! let waits: Vec<Duration> = RetryPolicy::read().waits(42).collect();
//! assert_eq!(waits.len(), 4); // five attempts
//! assert!(waits[0] <= Duration::from_secs(1));
//! assert_eq!(waits, RetryPolicy::read().waits(42).collect::<Vec<_>>());
//! ```

use std::fmt;
use std::time::Duration;

use crate::draw::{Purpose, Range, word};
use crate::instant::{Milliseconds, duration};
use crate::policy::{BEFORE_DEADLINE, Jitter, RetryPolicy, Window};

impl RetryPolicy {
    /// The waits a call with this seed draws if every attempt fails on transport: one for each attempt after the first.
    ///
    /// Floors and `max_elapsed` are left out, because they depend on what happens.
    pub fn waits(&self, seed: u64) -> Waits {
        Waits {
            jitter: self.jitter,
            window: self.window,
            seed,
            drawn: 0,
            left: self.max_attempts.saturating_sub(1),
            previous: None,
        }
    }

    /// The range that each wait is drawn from, for printing. A floor (`Retry-After`, a failed look-up) comes on top; an edge may end the wait earlier.
    ///
    /// ```
    /// use comeback::RetryPolicy;
    ///
    /// assert_eq!(
    ///     RetryPolicy::payment().schedule().to_string(),
    ///     "attempt 1: at once\n\
    ///      attempt 2: after up to 1000 ms\n\
    ///      attempt 3: after up to 2000 ms\n\
    ///      no attempt starts later than 14900 ms after the call began"
    /// );
    /// ```
    pub fn schedule(&self) -> Schedule<'_> {
        Schedule(self)
    }
}

/// The waits of one call, see [`RetryPolicy::waits`].
#[derive(Clone, Debug)]
pub struct Waits {
    jitter: Jitter,
    window: Window,
    seed: u64,
    drawn: u32,
    left: u32,
    previous: Option<i64>,
}

impl Iterator for Waits {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        let range = Range::of(self.jitter, &self.window, self.drawn, self.previous);
        let wait = range.draw(word(self.seed, self.drawn, Purpose::Wait));
        self.drawn += 1;
        self.previous = Some(wait);
        Some(duration(wait))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Waits {}

/// Prints what each attempt waits for, see [`RetryPolicy::schedule`].
#[derive(Clone, Copy, Debug)]
pub struct Schedule<'a>(&'a RetryPolicy);

impl fmt::Display for Schedule<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = self.0;
        out.write_str("attempt 1: at once")?;
        // The longest draw so far, from either window, bounds what decorrelated jitter may draw next.
        let mut longest = None;
        for n in 0..policy.max_attempts.saturating_sub(1) {
            let range = Range::of(policy.jitter, &policy.window, n, longest);
            let overload = policy
                .overload
                .map(|window| Range::of(policy.jitter, &window, n, longest));
            write!(out, "\nattempt {}: after {range}", n + 2)?;
            if let Some(overload) = overload {
                write!(out, ", or {overload} after 429 and 503")?;
            }
            longest = overload.map(|range| range.high).max(Some(range.high));
        }
        let last_start = Milliseconds(duration(policy.max_elapsed - BEFORE_DEADLINE));
        write!(
            out,
            "\nno attempt starts later than {last_start} after the call began"
        )
    }
}
