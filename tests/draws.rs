//! Random words, bounds and whole schedules, against `vectors/draws.json`.

mod support;

use std::time::Duration;

use comeback::RetryPolicy;
use comeback::draw::{bounds, splitmix64, uniform, word};
use serde_json::json;
use support::*;

#[test]
fn splitmix64_gives_its_published_outputs() {
    each("draws.json", "words", |case| {
        let index = number(&case["index"]).try_into().expect("an index");
        same(hex(&case["word"]), splitmix64(seed(&case["seed"]), index))
    });
}

#[test]
fn each_failure_has_two_words_of_its_own() {
    each("draws.json", "purposes", |case| {
        let failure = number(&case["failure"]).try_into().expect("a failure");
        let got = word(seed(&case["seed"]), failure, purpose(&case["purpose"]));
        same(hex(&case["word"]), got)
    });
}

#[test]
fn a_word_becomes_a_number_between_both_ends() {
    each("draws.json", "uniform", |case| {
        let got = uniform(
            hex(&case["word"]),
            number(&case["low"]),
            number(&case["high"]),
        );
        same(number(&case["value"]), got)
    });
}

#[test]
fn each_jitter_has_its_bounds() {
    each("draws.json", "bounds", |case| {
        let milliseconds = |name: &str| number(&case[name]) / 1_000_000;
        let policy = json!({
            "base": milliseconds("base"),
            "cap": milliseconds("cap"),
            "factor": number(&case["factor"]) as f64 / 1_000.0,
        });
        let policy = RetryPolicy::from_json(&policy.to_string()).expect("a valid window");
        let got = bounds(
            named(&case["jitter"]),
            &policy.window(),
            number(&case["n"]).try_into().expect("a number of failures"),
            case["previous"].as_u64().map(Duration::from_nanos),
        );
        same(
            [&case["window"], &case["low"], &case["high"]].map(number),
            [got.window, got.low, got.high].map(nanos),
        )
    });
}

#[test]
fn a_policys_waits_follow_from_its_seed() {
    each("draws.json", "waits", |case| {
        let got: Vec<i64> = policy(case).waits(seed(&case["seed"])).map(nanos).collect();
        same(durations(&case["waits"]), got)
    });
}

#[test]
fn a_policys_waits_know_how_many_are_left() {
    let mut waits = RetryPolicy::batch().waits(1);
    for left in (0..=7).rev() {
        assert_eq!((waits.len(), waits.size_hint()), (left, (left, Some(left))));
        assert_eq!(waits.next().is_some(), left > 0);
    }
    assert_eq!(waits.next(), None);
}
