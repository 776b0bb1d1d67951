//! Whole calls, step by step, against `vectors/decisions.json`.

#![allow(clippy::expect_used, clippy::panic)] // a test says no by panicking

mod support;

use comeback::*;
use support::each;
use support::replay::replay;

#[test]
fn calls_go_as_the_design_says() {
    each("decisions.json", "cases", replay);
}

#[test]
fn calls_go_as_budget_and_breaker_let_them() {
    each("decisions.json", "aggregates", replay);
}

/// Budget and breaker enter as signals; both stop a retry only, with the last outcome.
#[test]
fn what_the_aggregates_forbid_stops_the_retry_after_the_attempts_and_before_the_time() {
    let policy = RetryPolicy::builder()
        .max_attempts(2)
        .build()
        .expect("valid");
    let call = || {
        Call::begin(
            RequestFacts::new(Method::Get),
            42,
            Instant::from_nanos(0),
            None,
        )
    };
    let ask = |outcome: Outcome<'static>, now: i64, allowed: Allowed| {
        let signals = Signals {
            now: Instant::from_nanos(now),
            network: Snapshot::UNKNOWN,
            wall_ms: None,
            allowed,
        };
        decide(&policy, call(), &Snapshot::UNKNOWN, &outcome, &signals).decision
    };
    let empty = Allowed {
        budget: false,
        ..Allowed::ALL
    };
    let open = Allowed {
        breaker: false,
        ..Allowed::ALL
    };
    let late = 3_600_000_000_000;
    assert_eq!(
        ask(Outcome::response(503), 0, empty),
        Decision::Stop(Reason::Budget)
    );
    assert_eq!(
        ask(Outcome::response(503), late, empty),
        Decision::Stop(Reason::Budget)
    );
    assert_eq!(
        ask(Outcome::response(503), late, open),
        Decision::Stop(Reason::Breaker)
    );
    assert_eq!(ask(Outcome::response(200), 0, open), Decision::Deliver);
    assert_eq!(ask(Outcome::response(404), 0, empty), Decision::Deliver);
    let unsent = || {
        let mut outcome = Outcome::failure(FailureKind::ConnectRefused);
        outcome.evidence.sent_nothing = true;
        outcome
    };
    let Decision::Sleep(free) = ask(unsent(), 0, empty) else {
        panic!("what was never sent is free");
    };
    assert!(!free.costs_token);
    let Decision::Sleep(sleep) = ask(Outcome::response(503), 0, Allowed::ALL) else {
        panic!("it goes again");
    };
    assert!(sleep.costs_token);

    // A breaker that opens during the wait stops the call where it would go, and not before.
    let resumed = |now: i64| {
        let signals = Signals {
            now: Instant::from_nanos(now),
            network: Snapshot::UNKNOWN,
            wall_ms: None,
            allowed: open,
        };
        resume(&policy, sleep.waiting.clone(), &signals).decision
    };
    assert!(matches!(resumed(0), Resumed::Sleep(_)));
    assert_eq!(
        resumed(sleep.ask_at.as_nanos()),
        Resumed::Stop(Reason::Breaker)
    );
}
