//! Windows by attempt number, against `vectors/windows.json`.

mod support;

use comeback::draw::window_at;
use support::*;

#[test]
fn windows_grow_by_the_factor_up_to_the_cap() {
    each("windows.json", "cases", |case| {
        let window = window(case);
        let expected = durations(&case["windows"]);
        let got = (0..).map(|n| nanos(window_at(&window, n)));
        same(expected.clone(), got.take(expected.len()).collect())
    });
}

#[test]
fn windows_hold_at_every_attempt_number() {
    each("windows.json", "cases", |case| {
        let window = window(case);
        for pair in case["at"].as_array().into_iter().flatten() {
            let n = u32::try_from(number(&pair[0])).expect("a number of failures");
            same((n, number(&pair[1])), (n, nanos(window_at(&window, n))))?;
        }
        Ok(())
    });
}

#[test]
fn without_jitter_the_waits_are_the_windows() {
    each("windows.json", "cases", |case| {
        if case["waits"].is_null() {
            return Ok(());
        }
        let policy = policy(case);
        for seed in [0, 1, u64::MAX] {
            same(
                durations(&case["waits"]),
                policy.waits(seed).map(nanos).collect(),
            )?;
        }
        Ok(())
    });
}
