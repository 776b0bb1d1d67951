//! Clocks: the one that counts suspend, and the one that tests move.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::instant::Instant;

/// Tells a call the time. Timers are tokio's in any case. Inside a call the time is the later of what the clock says and the instant that the call's last
/// timer was set to.
///
/// [`SystemClock`] is right outside tests. A clock belongs to a [`Connectivity`](crate::Connectivity), so that the network and the calls
/// on it see one time.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Now, from any origin. It must not stand still while the device sleeps.
    fn now(&self) -> Instant;

    /// The wall clock as Unix milliseconds, for HTTP dates only; `None` if unknown.
    fn wall_ms(&self) -> Option<i64>;
}

/// The system's clock: `CLOCK_BOOTTIME` on Linux and Android; elsewhere, or where the kernel lacks it, the standard library's monotonic
/// clock, which may stand still while the device sleeps.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemClock;

impl SystemClock {
    /// The system's clock.
    pub const fn new() -> SystemClock {
        SystemClock
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        system_now()
    }

    fn wall_ms(&self) -> Option<i64> {
        wall_ms_at(SystemTime::now())
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn system_now() -> Instant {
    use rustix::time::{ClockId, DynamicClockId, clock_gettime, clock_gettime_dynamic};

    let time = clock_gettime_dynamic(DynamicClockId::Boottime)
        .unwrap_or_else(|_| clock_gettime(ClockId::Monotonic));
    let seconds = time.tv_sec.saturating_mul(1_000_000_000);
    Instant::from_nanos(seconds.saturating_add(time.tv_nsec))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn system_now() -> Instant {
    static ORIGIN: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    Instant::from_nanos(0).saturating_add(ORIGIN.elapsed())
}

fn wall_ms_at(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// Tokio's own clock, which `tokio::time::pause` stops and `advance` moves. For tests in which not only waits take paused time. It starts at 0 when it is
/// made, and so does its wall clock.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use comeback::{Clock, TokioClock};
/// use std::time::Duration;
///
/// let clock = TokioClock::new();
/// tokio::time::sleep(Duration::from_secs(3_600)).await; // at once
/// assert_eq!(clock.now().as_nanos(), 3_600_000_000_000);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    origin: tokio::time::Instant,
    wall_at_origin: SystemTime,
}

impl TokioClock {
    /// A clock that starts now.
    pub fn new() -> TokioClock {
        TokioClock {
            origin: tokio::time::Instant::now(),
            wall_at_origin: SystemTime::now(),
        }
    }

    fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }
}

impl Default for TokioClock {
    fn default() -> TokioClock {
        TokioClock::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(0).saturating_add(self.elapsed())
    }

    fn wall_ms(&self) -> Option<i64> {
        wall_ms_at(self.wall_at_origin.checked_add(self.elapsed())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_does_not_run_backwards() {
        let clock = SystemClock::new();
        let before = clock.now();
        assert!(clock.now() >= before);
        assert!(clock.wall_ms() > Some(1_700_000_000_000));
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn the_system_clock_counts_since_boot_with_the_time_asleep() {
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        let uptime: f64 = text.split(' ').next().unwrap().parse().unwrap();
        let now = SystemClock::new().now().as_nanos() as f64 / 1e9;
        assert!((now - uptime).abs() < 1.0, "{now} s against {uptime} s");
    }
}
