//! The classic contention simulation (AWS Architecture Blog, "Exponential Backoff And Jitter", 2015): N clients update one row under
//! optimistic locking, and whoever lost the race backs off and reads again. The waits are the crate's own.
//!
//! The model: every message takes |N(10, 2)| ms. A client reads the row's version, then writes; the write succeeds if the version is
//! still the row's. It counts writes, and the time until the last client has heard of its success. Base 5 ms, cap 2,000 ms; in this
//! model the exponent starts at 1, so a first wait is drawn from a window of 10 ms.

use crate::random::Random;
use comeback::draw::{Purpose, bounds, splitmix64, uniform, word};
use comeback::{Jitter, PolicyError, RetryPolicy, Window};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

pub(crate) const BASE: Duration = Duration::from_millis(5);
pub(crate) const CAP: Duration = Duration::from_millis(2_000);
pub(crate) const DELAY_MS: f64 = 10.0;
pub(crate) const DEVIATION_MS: f64 = 2.0;
pub(crate) const TRIALS: u64 = 100;
/// What a first failure counts as: the window is number 1, twice the base.
const FIRST_EXPONENT: u32 = 1;

/// How a client waits after a lost race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// None: not at all.
    jitter: Option<Jitter>,
}

pub(crate) const WAYS: [Way; 5] = [
    Way::new("none", None),
    Way::new("exponential", Some(Jitter::None)),
    Way::new("equal", Some(Jitter::Equal)),
    Way::new("full", Some(Jitter::Full)),
    Way::new("decorrelated", Some(Jitter::Decorrelated)),
];

impl Way {
    const fn new(name: &'static str, jitter: Option<Jitter>) -> Way {
        Way { name, jitter }
    }
}

/// Means over the trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    pub(crate) backoff: &'static str,
    pub(crate) clients: usize,
    pub(crate) time_ms: f64,
    pub(crate) calls: f64,
}

/// Every way for every number of clients.
pub(crate) fn table(
    seed: u64,
    trials: u64,
    clients: impl Iterator<Item = usize>,
) -> Result<Vec<Row>, PolicyError> {
    let window = window()?;
    let mut rows = Vec::new();
    for clients in clients {
        for way in WAYS {
            rows.push(row(way, &window, FIRST_EXPONENT, clients, seed, trials));
        }
    }
    Ok(rows)
}

fn window() -> Result<Window, PolicyError> {
    let policy = RetryPolicy::builder().base(BASE).factor(2.0).cap(CAP);
    Ok(policy.build()?.window())
}

fn row(
    way: Way,
    window: &Window,
    first_exponent: u32,
    clients: usize,
    seed: u64,
    trials: u64,
) -> Row {
    let (mut nanos, mut calls) = (0.0, 0.0);
    for trial in 0..trials {
        let mut random = Random::new(splitmix64(seed, trial));
        let result = run(way, window, first_exponent, clients, &mut random);
        nanos += result.0 as f64;
        calls += result.1 as f64;
    }
    Row {
        backoff: way.name,
        clients,
        time_ms: nanos / trials as f64 / 1e6,
        calls: calls / trials as f64,
    }
}

/// A client that has not written yet.
struct Client {
    seed: u64,
    lost: u32,
    previous: Option<Duration>,
}

impl Client {
    fn wait(&mut self, way: Way, window: &Window, first_exponent: u32) -> i64 {
        let Some(jitter) = way.jitter else { return 0 };
        let bounds = bounds(jitter, window, first_exponent + self.lost, self.previous);
        let word = word(self.seed, self.lost, Purpose::Wait);
        let wait = uniform(
            word,
            bounds.low.as_nanos() as i64,
            bounds.high.as_nanos() as i64,
        );
        self.previous = Some(Duration::from_nanos(wait.unsigned_abs()));
        self.lost += 1;
        wait
    }
}

/// Until when it takes, in nanoseconds, and how many writes.
fn run(
    way: Way,
    window: &Window,
    first_exponent: u32,
    clients: usize,
    random: &mut Random,
) -> (i64, u64) {
    let mut states: Vec<Client> = (0..clients)
        .map(|_| Client {
            seed: random.word(),
            lost: 0,
            previous: None,
        })
        .collect();
    // What arrives at the server, and when: a write of the version that was read, or a read.
    let mut arrivals = BinaryHeap::new();
    for client in 0..clients {
        arrivals.push(Reverse((delay(random), client, None)));
    }
    let (mut version, mut calls, mut end) = (0u64, 0u64, 0i64);
    while let Some(Reverse((now, client, write))) = arrivals.pop() {
        let answered = now + delay(random);
        let (next, message) = match write {
            None => (answered, Some(version)),
            Some(read) => {
                calls += 1;
                if read == version {
                    version += 1;
                    end = end.max(answered);
                    continue;
                }
                let wait = states[client].wait(way, window, first_exponent);
                (answered + wait, None)
            }
        };
        arrivals.push(Reverse((next + delay(random), client, message)));
    }
    (end, calls)
}

fn delay(random: &mut Random) -> i64 {
    (random.normal(DELAY_MS, DEVIATION_MS).abs() * 1e6) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// N = 100: mean time in ms and mean number of calls, as published with the article's simulator.
    const EXPECTED: [(&str, f64, f64); 5] = [
        ("none", 2030.0, 2420.0),
        ("exponential", 63000.0, 1852.0),
        ("equal", 6630.0, 812.0),
        ("full", 4880.0, 795.0),
        ("decorrelated", 4510.0, 1000.0),
    ];

    /// What is outside its tolerance: 8 % of the time, 2.5 % of the calls.
    fn misses(first_exponent: u32) -> Vec<String> {
        let window = window().unwrap_or_else(|error| unreachable!("{error}"));
        let mut misses = Vec::new();
        for (way, (name, time, calls)) in WAYS.into_iter().zip(EXPECTED) {
            assert_eq!(way.name, name);
            let row = row(way, &window, first_exponent, 100, 1, TRIALS);
            for (what, got, expected, tolerance) in [
                ("time", row.time_ms, time, 0.08),
                ("calls", row.calls, calls, 0.025),
            ] {
                if (got / expected - 1.0).abs() > tolerance {
                    misses.push(format!("{name}: {what} {got:.0} instead of {expected}"));
                }
            }
        }
        misses
    }

    #[test]
    fn the_articles_figures_come_out_for_a_hundred_clients() {
        assert_eq!(misses(FIRST_EXPONENT), Vec::<String>::new());
    }

    #[test]
    fn an_exponent_off_by_one_does_not_pass() {
        for exponent in [FIRST_EXPONENT - 1, FIRST_EXPONENT + 1] {
            assert!(!misses(exponent).is_empty(), "exponent {exponent}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_rows() {
        let rows = || table(3, 5, [10, 40].into_iter());
        assert_eq!(rows(), rows());
    }
}
