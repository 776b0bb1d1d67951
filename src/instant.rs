//! Time as the core sees it: a point on some clock, handed in by the driver.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) const MILLISECOND: i64 = 1_000_000;
pub(crate) const SECOND: i64 = 1_000 * MILLISECOND;

/// A point in time: nanoseconds on a monotonic clock that counts suspend.
///
/// The origin is the clock's own (boot, process start, anything); only differences mean something. Use
/// `CLOCK_BOOTTIME` on Linux, `SystemClock.elapsedRealtimeNanos` on Android, `System.nanoTime` on a plain JVM.
/// All arithmetic saturates at the ends of `i64`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(i64);

impl Instant {
    /// Earlier than everything: when something began that has "always" been so.
    pub const LONG_AGO: Instant = Instant(i64::MIN);

    /// The instant `nanos` nanoseconds after the clock's origin; may be negative.
    pub const fn from_nanos(nanos: i64) -> Instant {
        Instant(nanos)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after.
    pub fn saturating_since(self, earlier: Instant) -> Duration {
        duration(self.nanos_since(earlier))
    }

    /// This instant moved by `later`.
    pub fn saturating_add(self, later: Duration) -> Instant {
        self.plus(nanos(later))
    }

    #[inline]
    pub(crate) const fn plus(self, nanos: i64) -> Instant {
        Instant(self.0.saturating_add(nanos))
    }

    #[inline]
    pub(crate) const fn nanos_since(self, earlier: Instant) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}ns", self.0)
    }
}

/// A length of internal arithmetic as a public one; negative lengths are zero.
#[inline]
pub(crate) const fn duration(nanos: i64) -> Duration {
    Duration::from_nanos(if nanos < 0 { 0 } else { nanos as u64 })
}

/// The reverse. A duration that does not fit becomes the longest one (292 years).
pub(crate) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// How every text of ours says a length, in the unit of policies: `20000 ms`, or `0.5 ms` where it is not whole.
pub(crate) struct Milliseconds(pub(crate) Duration);

impl Milliseconds {
    /// For what was measured: whole milliseconds, rounded down.
    pub(crate) fn whole(length: Duration) -> Milliseconds {
        Milliseconds(length - Duration::from_nanos(u64::from(length.subsec_nanos() % 1_000_000)))
    }
}

impl fmt::Display for Milliseconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0.as_millis(), self.0.subsec_nanos() % 1_000_000);
        if rest == 0 {
            write!(out, "{whole} ms")
        } else {
            write!(
                out,
                "{} ms",
                format!("{whole}.{rest:06}").trim_end_matches('0')
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let end = Instant::from_nanos(i64::MAX);
        assert_eq!(end.saturating_add(Duration::MAX), end);
        assert_eq!(end.nanos_since(Instant::LONG_AGO), i64::MAX);
        assert_eq!(Instant::LONG_AGO.saturating_since(end), Duration::ZERO);
    }
}
