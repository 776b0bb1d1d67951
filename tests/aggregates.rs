//! Budget and breaker on futures, threads and batches (feature `tokio`): what is given back, whoever ends it; many origins; clocks that run backwards.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)] // a test says no by panicking

use std::cell::Cell;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use comeback::{
    Aggregates, CircuitBreaker, Clock, Connectivity, FailureKind, Instant, Reason, RetryBudget,
    RetryPolicy, Retryable, RetryableBlocking, Verdict, batch,
};

/// A clock that the test sets.
#[derive(Clone, Debug, Default)]
struct Set(Arc<AtomicI64>);

impl Set {
    fn to(&self, seconds: i64) {
        self.0.store(seconds * 1_000_000_000, Ordering::SeqCst);
    }
}

impl Clock for Set {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::SeqCst))
    }

    fn wall_ms(&self) -> Option<i64> {
        None
    }
}

fn hub() -> (Connectivity, Set) {
    let clock = Set::default();
    (Connectivity::with_clock(clock.clone()), clock)
}

fn refusing() -> Aggregates {
    let rules = CircuitBreaker::builder().window(1).failures(1);
    let rules = rules.refuse_first(true).build().unwrap();
    Aggregates::builder().circuit_breaker(rules).build()
}

fn tokens(capacity: u16) -> Aggregates {
    let budget = RetryBudget::new(capacity).unwrap();
    Aggregates::builder().retry_budget(budget).build()
}

fn status(status: u16) -> Verdict {
    Verdict::Status {
        status,
        retry_after: None,
    }
}

fn once() -> RetryPolicy {
    RetryPolicy::builder().max_attempts(1).build().unwrap()
}

/// What became of one call whose attempts all answer so.
async fn answered(aggregates: &Aggregates, hub: &Connectivity, code: u16) -> Option<Reason> {
    let policy = once();
    let call = async || Err::<(), _>("no");
    let call = call.retry(&policy).connectivity(hub);
    let call = call.aggregates(aggregates, "server");
    let ended = call.classify(|_| status(code)).await.unwrap_err();
    (!ended.report().attempts.is_empty() || ended.refused_until().is_some()).then(|| ended.reason())
}

/// A breaker that is open until 5 s at the latest.
async fn opened() -> (Aggregates, Connectivity, Set) {
    let (aggregates, (hub, clock)) = (refusing(), hub());
    assert_eq!(
        answered(&aggregates, &hub, 503).await,
        Some(Reason::Attempts)
    );
    assert_eq!(
        answered(&aggregates, &hub, 503).await,
        Some(Reason::Breaker)
    );
    clock.to(5);
    (aggregates, hub, clock)
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_or_runs_out_of_time_gives_its_permit_back() {
    let (aggregates, hub, _) = opened().await;
    let policy = RetryPolicy::builder().max_attempts(1);
    let policy = policy
        .attempt_timeout(Some(Duration::from_secs(1)))
        .build()
        .unwrap();
    for _ in 0..1_000 {
        let hangs = async || pending::<Result<(), &str>>().await;
        let call = hangs.retry(&policy).connectivity(&hub);
        let mut call = Box::pin(call.aggregates(&aggregates, "server").into_future());
        assert!(futures_poll(&mut call).await.is_none(), "it is the probe");
        drop(call);
        let call = hangs.retry(&policy).connectivity(&hub);
        let error = call.aggregates(&aggregates, "server").await.unwrap_err();
        assert_eq!(
            (error.reason(), error.refused_until()),
            (Reason::Attempts, None)
        );
    }
}

async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test(start_paused = true)]
async fn what_says_nothing_of_the_server_gives_a_probe_s_permit_back() {
    let (aggregates, hub, _) = opened().await;
    for code in [408, 425, 429, 500] {
        assert_ne!(
            answered(&aggregates, &hub, code).await,
            Some(Reason::Breaker)
        );
    }
    answered(&aggregates, &hub, 503).await;
    assert_eq!(
        answered(&aggregates, &hub, 200).await,
        Some(Reason::Breaker)
    );
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_not_made_gives_its_token_back() {
    let (aggregates, (hub, _)) = (tokens(1), hub());
    let policy = RetryPolicy::default();
    for _ in 0..1_000 {
        let fails = async || Err::<(), _>("no");
        let call = fails.retry(&policy).connectivity(&hub);
        let mut call = Box::pin(call.aggregates(&aggregates, "server").into_future());
        assert!(
            futures_poll(&mut call).await.is_none(),
            "it waits, with the token"
        );
        drop(call);
    }
    // The one token is there, and one retry spends it.
    let made = Cell::new(0);
    let fails = async || {
        made.set(made.get() + 1);
        Err::<(), _>("no")
    };
    let error = { fails.retry(&policy).connectivity(&hub) }
        .aggregates(&aggregates, "server")
        .await
        .unwrap_err();
    assert_eq!((error.reason(), made.get()), (Reason::Budget, 2));
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_origins_are_told_apart_and_take_bounded_room() {
    let (aggregates, (hub, _)) = (refusing(), hub());
    let policy = once();
    for number in 0..10_000 {
        let code = if number % 100 == 0 { 503 } else { 200 };
        let call = (async || Err::<(), _>("no")).retry(&policy);
        let call = call
            .connectivity(&hub)
            .aggregates(&aggregates, number.to_string());
        let error = call.classify(|_| status(code)).await.unwrap_err();
        assert!(error.refused_until().is_none());
    }
    let call = (async || Ok::<_, ()>(())).retry(&policy).connectivity(&hub);
    assert!(call.aggregates(&aggregates, "9900").await.is_err());
    let call = (async || Ok::<_, ()>(())).retry(&policy).connectivity(&hub);
    assert!(call.aggregates(&aggregates, "9901").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_runs_backwards_opens_nothing_early_and_keeps_nothing_open_for_ever() {
    let (aggregates, hub, clock) = opened().await;
    clock.to(-1_000);
    assert_eq!(
        answered(&aggregates, &hub, 200).await,
        Some(Reason::Breaker)
    );
    clock.to(5);
    assert_ne!(
        answered(&aggregates, &hub, 200).await,
        Some(Reason::Breaker)
    );
}

#[test]
fn of_eight_racing_threads_one_at_a_time_is_the_probe() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (aggregates, hub, _) = runtime.block_on(opened());
    let (in_flight, made) = (AtomicU32::new(0), AtomicU32::new(0));
    let policy = once();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    let probe = || {
                        assert_eq!(in_flight.fetch_add(1, Ordering::SeqCst), 0);
                        made.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        in_flight.fetch_sub(1, Ordering::SeqCst);
                        Err::<(), _>("no")
                    };
                    let call = probe.retry_blocking(&policy).connectivity(&hub);
                    let call = call.aggregates(&aggregates, "server");
                    // It says nothing of the server, so the breaker stays half-open.
                    let _ = call
                        .classify(|_| Verdict::Failed(FailureKind::Reset))
                        .call();
                }
            });
        }
    });
    assert!(made.load(Ordering::SeqCst) > 0);
}

#[tokio::test(start_paused = true)]
async fn a_batch_asks_for_its_rounds_and_says_that_none_was_made() {
    let (aggregates, (hub, _)) = (refusing(), hub());
    let policy = once();
    let send = || {
        batch(
            &policy,
            vec![1, 2],
            async |records: comeback::Round<i32>| {
                let results = records.iter().map(|_| Err::<(), _>("overloaded"));
                Ok(results.collect())
            },
        )
        .connectivity(&hub)
        .aggregates(&aggregates, "server")
        .classify(|_| status(503))
    };
    assert_eq!(send().await.reason, Some(Reason::Attempts));
    let refused = send().await;
    assert_eq!(refused.reason, Some(Reason::Breaker));
    assert!(refused.report.attempts.is_empty());
    assert!(!refused.report.may_have_arrived());
}
