//! Whether jitter does what it is for: spread calls evenly over the whole window, at every attempt number, each call by itself.
//!
//! Seeds are fixed, so a result never changes by itself; the thresholds lie beyond what chance does once in 100,000 runs, and each mode
//! was broken once to see its test fail. Seeds are consecutive numbers on purpose: the generator has to tell them apart.

#![allow(clippy::panic)] // a test says no by panicking

use std::collections::HashSet;
use std::time::Duration;

use comeback::*;

const CALLS: u64 = 20_000;
const BINS: usize = 100;

fn policy(jitter: Jitter) -> RetryPolicy {
    RetryPolicy::builder()
        .jitter(jitter)
        .max_attempts(100)
        .max_elapsed(Duration::from_secs(86_400))
        .wake_spread(Duration::from_secs(8))
        .build()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The first `count` waits of one call, as decided.
fn waits(policy: &RetryPolicy, seed: u64, count: usize) -> Vec<i64> {
    let request = RequestFacts::new(Method::Get);
    let outcome = Outcome::failure(FailureKind::Reset);
    let mut call = Call::begin(request, seed, Instant::from_nanos(0), None);
    let mut signals = Signals {
        now: Instant::from_nanos(0),
        network: Snapshot::UNKNOWN,
        wall_ms: None,
        allowed: Allowed::ALL,
    };
    let mut waits = Vec::with_capacity(count);
    while waits.len() < count {
        let failed_at = signals.now;
        let step = decide(policy, call, &Snapshot::UNKNOWN, &outcome, &signals);
        let Decision::Sleep(sleep) = step.decision else {
            panic!("{step:?}");
        };
        signals.now = sleep.ask_at;
        waits.push(signals.now.as_nanos() - failed_at.as_nanos());
        call = match resume(policy, sleep.waiting, &signals).decision {
            Resumed::Go(go) => go.call,
            other => panic!("{other:?}"),
        };
    }
    waits
}

/// Wait number `failure` of many calls.
fn sample(jitter: Jitter, failure: usize) -> Vec<i64> {
    let policy = policy(jitter);
    (0..CALLS)
        .map(|seed| waits(&policy, seed, failure + 1)[failure])
        .collect()
}

/// Window number `failure` of the default policy, in nanoseconds.
fn window(failure: usize) -> i64 {
    1_000_000_000 << failure.min(3)
}

/// Pearson's chi-square of a sample over `low..=high`, for 99 degrees of freedom: mean 99, deviation 14.
fn chi_square(sample: &[i64], low: i64, high: i64) -> f64 {
    let mut counts = [0_u32; BINS];
    for value in sample {
        assert!(
            (low..=high).contains(value),
            "{value} is outside {low}..={high}"
        );
        let bin = i128::from(value - low) * BINS as i128 / (i128::from(high - low) + 1);
        counts[bin as usize] += 1;
    }
    let expected = sample.len() as f64 / BINS as f64;
    counts
        .iter()
        .map(|count| (f64::from(*count) - expected).powi(2) / expected)
        .sum()
}

/// Neither clumped nor, as by a grid, too even.
fn assert_uniform(sample: &[i64], low: i64, high: i64, what: &str) {
    let chi_square = chi_square(sample, low, high);
    assert!(
        (50.0..168.0).contains(&chi_square),
        "{what} is not uniform over {low}..={high}: chi-square {chi_square:.1}"
    );
}

/// Nearly every value is its own: nothing was rounded to milliseconds or seconds, nothing piles up at an end.
fn assert_distinct(sample: &[i64], what: &str) {
    let distinct = sample.iter().collect::<HashSet<_>>().len();
    assert!(
        distinct > sample.len() - 20,
        "{what}: only {distinct} values in {} draws",
        sample.len()
    );
}

/// The extremes of a sample come close to both ends.
fn assert_reaches(sample: &[i64], low: i64, high: i64, what: &str) {
    let near = (high - low) / 1_000;
    let (least, most) = (sample.iter().min(), sample.iter().max());
    assert!(
        least.is_some_and(|least| least - low < near)
            && most.is_some_and(|most| high - most < near),
        "{what}: {least:?} to {most:?} of {low}..={high}"
    );
}

fn assert_spread(sample: &[i64], low: i64, high: i64, what: &str) {
    assert_uniform(sample, low, high, what);
    assert_distinct(sample, what);
    assert_reaches(sample, low, high, what);
}

#[test]
fn full_jitter_is_even_over_the_window_at_every_attempt_number() {
    for failure in [0, 1, 2, 3, 6] {
        let what = format!("full jitter, failure {failure}");
        assert_spread(&sample(Jitter::Full, failure), 0, window(failure), &what);
    }
}

#[test]
fn equal_jitter_is_even_over_the_upper_half_and_never_uses_the_lower() {
    for failure in [0, 1, 2, 3, 6] {
        let what = format!("equal jitter, failure {failure}");
        let width = window(failure);
        assert_spread(&sample(Jitter::Equal, failure), width / 2, width, &what);
    }
}

#[test]
fn the_first_decorrelated_draw_is_even_from_base_to_three_times_base() {
    let sample = sample(Jitter::Decorrelated, 0);
    assert_spread(&sample, 1_000_000_000, 3_000_000_000, "decorrelated jitter");
}

#[test]
fn a_later_decorrelated_draw_is_even_up_to_three_times_the_one_before() {
    let policy = policy(Jitter::Decorrelated);
    for failure in [1, 2, 6] {
        // Where in its own range each draw lies, in millionths.
        let places: Vec<i64> = (0..CALLS)
            .map(|seed| {
                let waits = waits(&policy, seed, failure + 1);
                let (low, before) = (1_000_000_000, waits[failure - 1]);
                let high = (3 * before).min(8_000_000_000);
                let place =
                    i128::from(waits[failure] - low) * 1_000_000 / i128::from(high - low + 1);
                place as i64
            })
            .collect();
        let what = format!("decorrelated jitter, failure {failure}");
        assert_uniform(&places, 0, 999_999, &what);
        assert_reaches(&places, 0, 999_999, &what);
    }
}

#[test]
fn no_jitter_is_the_window_itself() {
    for failure in [0, 1, 2, 3, 6] {
        assert!(
            sample(Jitter::None, failure)
                .iter()
                .all(|wait| *wait == window(failure))
        );
    }
}

#[test]
fn draws_at_the_cap_do_not_pile_up_on_it() {
    for failure in [3, 10, 98] {
        let policy = policy(Jitter::Full);
        let sample: Vec<i64> = (0..2_000)
            .map(|seed| waits(&policy, seed, failure + 1)[failure])
            .collect();
        let cap = window(failure);
        let above = sample.iter().filter(|wait| **wait > cap * 9 / 10).count();
        assert!(
            (130..270).contains(&above),
            "failure {failure}: {above} of 2000 in the last tenth"
        );
        assert_distinct(&sample, "at the cap");
    }
}

/// Woken starts of calls that failed while the network was away, when it comes back.
fn spreads(policy: &RetryPolicy) -> Vec<i64> {
    let away = Snapshot {
        state: NetworkState::Offline,
        since: Instant::from_nanos(0),
        ..Snapshot::UNKNOWN
    };
    let back = Snapshot {
        state: NetworkState::Online,
        epoch: 1,
        path: 1,
        ..away
    };
    let at = |seconds: i64, network| Signals {
        now: Instant::from_nanos(seconds * 1_000_000_000),
        network,
        wall_ms: None,
        allowed: Allowed::ALL,
    };
    (0..CALLS)
        .map(|seed| {
            let call = Call::begin(
                RequestFacts::new(Method::Get),
                seed,
                Instant::from_nanos(0),
                None,
            );
            let outcome = Outcome::failure(FailureKind::Reset);
            let Decision::Sleep(sleep) =
                decide(policy, call, &away, &outcome, &at(1, away)).decision
            else {
                panic!("not parked");
            };
            match resume(policy, sleep.waiting, &at(5, back)).decision {
                Resumed::Sleep(sleep) => sleep.ask_at.as_nanos() - 5_000_000_000,
                Resumed::Go(_) => 0,
                Resumed::Stop(reason) => panic!("{reason:?}"),
            }
        })
        .collect()
}

#[test]
fn a_wake_spread_is_even_from_nothing_to_its_end() {
    assert_spread(
        &spreads(&policy(Jitter::Full)),
        0,
        8_000_000_000,
        "the spread",
    );
}

/// Pearson's correlation of pairs; by chance within ±1/√count in two of three cases.
fn correlation(one: &[i64], other: &[i64]) -> f64 {
    let mean = |values: &[i64]| {
        values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64
    };
    let (mean_one, mean_other) = (mean(one), mean(other));
    let (mut together, mut spread_one, mut spread_other) = (0.0, 0.0, 0.0);
    for (a, b) in one.iter().zip(other) {
        let (a, b) = (*a as f64 - mean_one, *b as f64 - mean_other);
        together += a * b;
        spread_one += a * a;
        spread_other += b * b;
    }
    together / (spread_one * spread_other).sqrt()
}

fn assert_uncorrelated(one: &[i64], other: &[i64], what: &str) {
    let correlation = correlation(one, other);
    let by_chance = 4.5 / (one.len() as f64).sqrt();
    assert!(
        correlation.abs() < by_chance,
        "{what}: correlation {correlation:.4}"
    );
}

#[test]
fn two_calls_draws_have_nothing_to_do_with_each_other() {
    let first = sample(Jitter::Full, 0);
    for apart in [1, 2, 256] {
        assert_uncorrelated(
            &first[apart..],
            &first[..first.len() - apart],
            "neighbouring seeds",
        );
    }
    // One window for all failures, so that its growth is no common cause.
    let even = policy(Jitter::Full)
        .to_builder()
        .factor(1.0)
        .build()
        .unwrap_or_else(|error| panic!("{error}"));
    for (one, other) in [(1, 2), (0, u64::MAX), (7, 7 << 32)] {
        assert_uncorrelated(
            &waits(&even, one, 99),
            &waits(&even, other, 99),
            "two whole calls",
        );
    }
}

#[test]
fn a_calls_draws_have_nothing_to_do_with_each_other() {
    let policy = policy(Jitter::Full);
    let calls: Vec<Vec<i64>> = (0..CALLS).map(|seed| waits(&policy, seed, 3)).collect();
    let number = |failure: usize| calls.iter().map(|waits| waits[failure]).collect::<Vec<_>>();
    assert_uncorrelated(&number(0), &number(1), "first and second wait");
    assert_uncorrelated(&number(1), &number(2), "second and third wait");
    assert_uncorrelated(&number(0), &spreads(&policy), "wait and spread");
    assert_uncorrelated(
        &number(1),
        &spreads(&policy),
        "second wait and first spread",
    );
}

#[test]
fn calls_that_failed_together_do_not_come_back_together() {
    // 20,000 calls after an outage: no hundredth of the window sees more than one and a half times its share.
    let sample = sample(Jitter::Full, 2);
    let mut counts = [0_u32; BINS];
    for wait in &sample {
        counts[(i128::from(*wait) * BINS as i128 / (i128::from(window(2)) + 1)) as usize] += 1;
    }
    assert!(
        counts.iter().all(|count| (100..300).contains(count)),
        "{counts:?}"
    );
}
