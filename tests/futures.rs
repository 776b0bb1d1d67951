//! Any future through `retry`: what is awaited, how long, what ends it, and what is left behind. Time is tokio's and paused.

#![allow(clippy::unwrap_used)] // a test says no by panicking

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use comeback::*;

#[derive(Debug, PartialEq, Eq)]
struct Broken(u32);

impl fmt::Display for Broken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "broken {}", self.0)
    }
}

impl Error for Broken {}

fn hub() -> Connectivity {
    Connectivity::with_clock(TokioClock::new())
}

fn steady() -> RetryPolicy {
    let ms = Duration::from_millis;
    RetryPolicy::builder()
        .base(ms(1_000))
        .jitter(Jitter::None)
        .build()
        .unwrap()
}

/// Fails as often as told, then answers with the number of attempts.
struct Flaky {
    failures: u32,
    made: Cell<u32>,
}

impl Flaky {
    fn failing(failures: u32) -> Flaky {
        Flaky {
            failures,
            made: Cell::new(0),
        }
    }

    async fn attempt(&self) -> Result<u32, Broken> {
        let number = self.made.get() + 1;
        self.made.set(number);
        if number <= self.failures {
            Err(Broken(number))
        } else {
            Ok(number)
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_goes_again_until_it_succeeds() {
    let flaky = Flaky::failing(2);
    let hub = hub();
    let answer = (|| flaky.attempt())
        .retry(&steady())
        .connectivity(&hub)
        .await;
    assert_eq!(answer.unwrap(), 3);
    assert_eq!(hub.now().as_nanos(), 3_000_000_000, "1 s, then 2 s");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_stops_returns_the_last_error_and_the_history() {
    let flaky = Flaky::failing(9);
    let error = (|| flaky.attempt())
        .retry(&steady())
        .connectivity(&hub())
        .await
        .unwrap_err();
    assert_eq!(error.last(), Some(&Broken(4)));
    assert_eq!(error.reason(), Reason::Attempts);
    assert_eq!(error.report().attempts.len(), 4);
    assert_eq!(
        error.to_string(),
        "stopped after 4 attempts within 7s: all attempts are used up"
    );
    assert_eq!(error.source().unwrap().to_string(), "broken 4");
}

#[tokio::test(start_paused = true)]
async fn an_edge_ends_a_wait_at_once() {
    let flaky = Flaky::failing(1);
    let hub = hub();
    let policy = steady();
    let call = (|| flaky.attempt()).retry(&policy).connectivity(&hub);
    let edge = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        hub.restored();
    };
    let (answer, ()) = tokio::join!(call.into_future(), edge);
    assert_eq!(answer.unwrap(), 2);
    assert_eq!(hub.now().as_nanos(), 300_000_000);
    assert_eq!(hub.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_dropped_and_made_again() {
    let made = Cell::new(0);
    let policy = steady()
        .to_builder()
        .attempt_timeout(Duration::from_secs(5))
        .build()
        .unwrap();
    let hub = hub();
    let answer = (|| {
        made.set(made.get() + 1);
        let first = made.get() == 1;
        async move {
            if first {
                pending::<()>().await;
            }
            Ok::<_, Broken>(())
        }
    })
    .retry(&policy)
    .connectivity(&hub)
    .await;
    answer.unwrap();
    assert_eq!(hub.now().as_nanos(), 6_000_000_000);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_leaves_no_waiter_and_says_that_it_was_cancelled() {
    let flaky = Flaky::failing(1);
    let hub = hub();
    let heard = Mutex::new(Vec::new());
    {
        let policy = steady();
        let call = (|| flaky.attempt())
            .retry(&policy)
            .connectivity(&hub)
            .notify(|event| heard.lock().unwrap().push(event.event));
        let cut = tokio::time::timeout(Duration::from_millis(500), call.into_future()).await;
        assert!(cut.is_err());
    }
    assert_eq!(hub.waiting(), 0);
    assert!(matches!(
        heard.lock().unwrap().last(),
        Some(Event::Final(End {
            reason: Some(Reason::Cancelled(CancelKind::Caller)),
            counted: 1,
            ..
        }))
    ));
}
