//! A jitter for things that many do at the same moment without a failure: caches that expire together, clients that a push wakes together.

use std::time::Duration;

use super::connectivity::Connectivity;
use super::seed::seed_from_system;
use super::timer::Timer;
use crate::draw::{splitmix64, uniform};
use crate::instant::{duration, nanos};
use std::future::poll_fn;
use std::pin::pin;

/// Draws uniformly from zero to `within`, both included, in nanoseconds.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use comeback::{Connectivity, Scatter, TokioClock};
/// use std::time::Duration;
///
/// // Everyone hears of the same event; nobody fetches in the same second.
/// let hub = Connectivity::with_clock(TokioClock::new());
/// let mut scatter = Scatter::new(Duration::from_secs(30));
/// scatter.wait(&hub).await;
///
/// // What was stored together does not expire together, and never later than it may.
/// let lives = scatter.shortened(Duration::from_secs(3_600));
/// assert!(lives <= Duration::from_secs(3_600) && lives >= Duration::from_secs(3_570));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scatter {
    within: i64,
    seed: u64,
    drawn: u64,
}

impl Scatter {
    /// A scatter with a seed from the operating system. Lengths above 292 years count as 292 years.
    pub fn new(within: Duration) -> Scatter {
        Scatter::seeded(within, seed_from_system())
    }

    /// The same with a given seed. With a seed that belongs to a device or a key, its place in the spread is the same every time.
    pub fn seeded(within: Duration, seed: u64) -> Scatter {
        Scatter {
            within: nanos(within),
            seed,
            drawn: 0,
        }
    }

    /// The next draw.
    pub fn draw(&mut self) -> Duration {
        let word = splitmix64(self.seed, self.drawn);
        self.drawn = self.drawn.wrapping_add(1);
        duration(uniform(word, 0, self.within))
    }

    /// `length` minus a draw, at least zero.
    pub fn shortened(&mut self, length: Duration) -> Duration {
        length.saturating_sub(self.draw())
    }

    /// Waits for a drawn time on the hub's clock, which counts the time asleep. No edge ends it. A draw of zero needs no timer.
    pub async fn wait(&mut self, connectivity: &Connectivity) {
        let until = connectivity.now().saturating_add(self.draw());
        let mut timer = pin!(Timer::new());
        poll_fn(|context| {
            timer
                .as_mut()
                .poll_until(until, connectivity.now(), context)
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_and_within_bounds() {
        let within = Duration::from_secs(10);
        let mut scatter = Scatter::seeded(within, 7);
        let mut seconds = [0_u32; 10];
        for _ in 0..10_000 {
            let drawn = scatter.draw();
            assert!(drawn <= within);
            seconds[(drawn.as_secs() as usize).min(9)] += 1;
        }
        // 1,000 expected; five standard deviations are 150.
        assert!(
            seconds.iter().all(|count| count.abs_diff(1_000) < 150),
            "{seconds:?}"
        );
    }

    #[test]
    fn a_seed_gives_the_same_draws_and_another_seed_others() {
        let draws = |seed| {
            let mut scatter = Scatter::seeded(Duration::from_secs(10), seed);
            [scatter.draw(), scatter.draw(), scatter.draw()]
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }

    #[test]
    fn nothing_is_scattered_within_nothing() {
        let mut scatter = Scatter::new(Duration::ZERO);
        assert_eq!(scatter.draw(), Duration::ZERO);
        assert_eq!(
            scatter.shortened(Duration::from_secs(1)),
            Duration::from_secs(1)
        );
    }
}
