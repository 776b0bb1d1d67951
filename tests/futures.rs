//! Any future through `retry`: what is awaited, how long, what ends it, and what is left behind. Time is tokio's and paused.

#![allow(clippy::unwrap_used, clippy::panic)] // a test says no by panicking

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use comeback::draw::splitmix64;
use comeback::*;
use tokio::sync::Semaphore;

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
        "broken 4; stopped after 4 attempts within 7000 ms: all attempts are used up"
    );
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

/// An operation under whose first attempt the network changes, after 2 s; that attempt takes 5 s, any other none.
async fn under_a_handover(restart: bool) -> (u32, i64) {
    let hub = hub();
    hub.available(Network::usable(1));
    let made = Cell::new(0);
    let slow_first = || {
        made.set(made.get() + 1);
        let number = made.get();
        async move {
            if number == 1 {
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            Ok::<_, Broken>(number)
        }
    };
    let policy = steady();
    let call = slow_first
        .retry(&policy)
        .connectivity(&hub)
        .restart(restart);
    let handover = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        hub.available(Network::usable(2));
    };
    let (answer, ()) = tokio::join!(call.into_future(), handover);
    (answer.unwrap(), hub.now().as_nanos() / 1_000_000_000)
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_network_leaves_an_attempt_alone() {
    assert_eq!(under_a_handover(false).await, (1, 5));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_on_a_network_that_is_gone_is_begun_anew_on_the_next_if_that_was_asked_for() {
    assert_eq!(under_a_handover(true).await, (2, 2));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "a call was polled after it was ready")]
async fn a_call_that_is_polled_after_it_was_ready_panics() {
    let policy = steady();
    let succeeds = async || Ok::<_, Broken>(());
    let mut call = pin!(succeeds.retry(&policy).into_future());
    call.as_mut().await.unwrap();
    let _ = call.as_mut().await;
}

#[test]
fn a_wait_of_no_length_needs_no_timer_and_no_runtime() {
    let hub = Connectivity::new();
    let made = Cell::new(0);
    let fail_once_under_an_edge = || {
        made.set(made.get() + 1);
        hub.restored(); // it ends the wait before it begins
        let number = made.get();
        async move {
            if number == 1 {
                Err(Broken(1))
            } else {
                Ok(number)
            }
        }
    };
    let policy = steady();
    let call = fail_once_under_an_edge.retry(&policy).connectivity(&hub);
    let mut call = pin!(call.into_future());
    let mut context = Context::from_waker(Waker::noop());
    let answer = call.as_mut().poll(&mut context);
    assert!(matches!(answer, Poll::Ready(Ok(2))), "{answer:?}");
}

/// A clock that goes on while tokio's timers stand still, as while a device sleeps.
#[derive(Clone, Debug)]
struct Suspending(TokioClock, Arc<AtomicI64>);

impl Clock for Suspending {
    fn now(&self) -> Instant {
        let asleep = Duration::from_secs(self.1.load(Ordering::Relaxed) as u64);
        self.0.now().saturating_add(asleep)
    }

    fn wall_ms(&self) -> Option<i64> {
        None
    }
}

#[tokio::test(start_paused = true)]
async fn hours_asleep_count_and_the_call_learns_of_them_within_half_a_minute() {
    let asleep = Arc::new(AtomicI64::new(0));
    let hub = Connectivity::with_clock(Suspending(TokioClock::new(), asleep.clone()));
    let hour = Duration::from_secs(3_600);
    let policy = steady()
        .to_builder()
        .cap(hour)
        .base(hour)
        .max_elapsed(3 * hour);
    let policy = policy.build().unwrap();
    let flaky = Flaky::failing(1);
    let call = (|| flaky.attempt()).retry(&policy).connectivity(&hub);
    let sleep = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        asleep.store(2 * 3_600, Ordering::Relaxed);
    };
    let awake = TokioClock::new();
    let (answer, ()) = tokio::join!(call.into_future(), sleep);
    assert_eq!(answer.unwrap(), 2);
    assert!(
        awake.now() <= Instant::from_nanos(30_000_000_000),
        "{awake:?}"
    );
}

/// A clock that `tokio::time::pause` does not know of, seen from within a test that takes no time: it stands still while timers jump.
#[derive(Debug)]
struct StandingStill;

impl Clock for StandingStill {
    fn now(&self) -> Instant {
        Instant::from_nanos(7)
    }

    fn wall_ms(&self) -> Option<i64> {
        None
    }
}

/// Ends whatever would go on for ever.
async fn within_a_day<F: Future>(future: F) -> F::Output {
    let day = Duration::from_secs(24 * 3_600);
    tokio::time::timeout(day, future).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_fired_is_believed_whatever_the_clock_says() {
    let flaky = Flaky::failing(9);
    let began = tokio::time::Instant::now();
    let policy = steady();
    let call = (|| flaky.attempt())
        .retry(&policy)
        .connectivity(&Connectivity::with_clock(StandingStill));
    let error = within_a_day(call.into_future()).await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::from_secs(1 + 2 + 4));
    let report = error.report();
    let waits = report.attempts.iter().filter_map(|attempt| attempt.resumed);
    let waits: Vec<u64> = waits.map(|wait| wait.effective.as_secs()).collect();
    assert_eq!(waits, [1, 2, 4]);
    assert_eq!(report.end.unwrap().elapsed, Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn in_paused_time_waits_take_no_time_with_the_system_s_clock_either() {
    let minute = Duration::from_secs(60);
    let policy = steady().to_builder().base(minute).cap(minute);
    let policy = policy.max_elapsed(10 * minute).build().unwrap();
    let flaky = Flaky::failing(3);
    let began = (std::time::Instant::now(), tokio::time::Instant::now());
    let call = (|| flaky.attempt())
        .retry(&policy)
        .connectivity(&Connectivity::new());
    assert_eq!(within_a_day(call.into_future()).await.unwrap(), 4);
    assert!(began.0.elapsed() < minute, "{:?}", began.0.elapsed());
    let paused = began.1.elapsed();
    assert!(paused.abs_diff(3 * minute) < minute / 2, "{paused:?}");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_s_limit_is_believed_too() {
    let policy = steady()
        .to_builder()
        .attempt_timeout(Duration::from_secs(5))
        .max_attempts(2);
    let policy = policy.build().unwrap();
    let began = tokio::time::Instant::now();
    let call = pending::<Result<(), Broken>>
        .retry(&policy)
        .connectivity(&Connectivity::with_clock(StandingStill));
    let error = within_a_day(call.into_future()).await.unwrap_err();
    assert_eq!(error.report().attempts.len(), 2);
    assert_eq!(began.elapsed(), Duration::from_secs(5 + 1 + 5));
    assert_eq!(
        error.report().end.unwrap().elapsed,
        Duration::from_secs(5 + 1 + 5)
    );
}

#[tokio::test(start_paused = true)]
async fn the_time_of_timers_counts_against_the_deadline() {
    let policy = steady().to_builder().max_attempts(100);
    let policy = policy.max_elapsed(Duration::from_secs(10)).build().unwrap();
    let flaky = Flaky::failing(100);
    let call = (|| flaky.attempt())
        .retry(&policy)
        .connectivity(&Connectivity::with_clock(StandingStill));
    let error = within_a_day(call.into_future()).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Elapsed);
    assert_eq!(error.report().attempts.len(), 4, "at 0, 1, 3 and 7 s");
}

#[tokio::test(start_paused = true)]
async fn a_scatter_believes_its_timer() {
    let began = tokio::time::Instant::now();
    let mut scatter = Scatter::seeded(Duration::from_secs(600), 7);
    let drawn = scatter.clone().draw();
    within_a_day(scatter.wait(&Connectivity::with_clock(StandingStill))).await;
    assert!(began.elapsed().abs_diff(drawn) <= Duration::from_millis(1));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_panics_hurts_nobody() {
    let flaky = Flaky::failing(1);
    let answer = (|| flaky.attempt())
        .retry(&steady())
        .connectivity(&hub())
        .notify(|_| panic!("the app's own"))
        .await;
    assert_eq!(answer.unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_classifier_that_panics_ends_the_call_with_what_there_is() {
    let flaky = Flaky::failing(1);
    let error = (|| flaky.attempt())
        .retry(&steady())
        .connectivity(&hub())
        .when(|_| panic!("the app's own"))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Reason::Internal);
    assert_eq!(error.into_last(), Some(Broken(1)));
}

#[tokio::test(start_paused = true)]
async fn an_error_not_worth_another_try_stops_at_once() {
    let flaky = Flaky::failing(3);
    let error = (|| flaky.attempt())
        .retry(&steady())
        .connectivity(&hub())
        .when(|error| error.0 < 2)
        .await
        .unwrap_err();
    assert_eq!(error.last(), Some(&Broken(2)));
    assert_eq!(error.reason(), Reason::Permanent);
}

#[tokio::test(start_paused = true)]
async fn a_value_can_be_a_failure_and_is_returned_when_the_call_stops() {
    let made = Cell::new(0);
    let unfinished = || {
        made.set(made.get() + 1);
        let number = made.get();
        async move { Ok::<u32, Broken>(number) }
    };
    let mut report = Report::default();
    let answer = unfinished
        .retry(&steady())
        .connectivity(&hub())
        .classify(|_| Verdict::Status {
            status: 503,
            retry_after: None,
        })
        .notify(|event| report.hear(&event.event))
        .await;
    assert_eq!(answer.unwrap(), 4, "the last");
    assert_eq!(report.end.unwrap().reason, Some(Reason::Attempts));
}

#[tokio::test(start_paused = true)]
async fn a_keyless_post_goes_again_only_if_it_never_arrived() {
    let outcome = |verdict| async move {
        let flaky = Flaky::failing(1);
        let answer = (|| flaky.attempt())
            .retry(&steady())
            .connectivity(&hub())
            .request(RequestFacts::new(Method::Post))
            .classify(move |result| {
                if result.is_ok() {
                    Verdict::ANSWER
                } else {
                    verdict
                }
            })
            .await;
        (flaky.made.get(), answer.err().map(|error| error.reason()))
    };
    assert_eq!(
        outcome(Verdict::IN_DOUBT).await,
        (1, Some(Reason::NotRepeatable))
    );
    assert_eq!(outcome(Verdict::NEVER_SENT).await, (2, None));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_more_time_than_there_is_stops_the_call_at_once() {
    let flaky = Flaky::failing(1);
    let hub = hub();
    let error = (|| flaky.attempt())
        .retry(&steady())
        .connectivity(&hub)
        .classify(|_| Verdict::overloaded(Duration::from_secs(60)))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Reason::ServerWaitTooLong { ms: 60_000 });
    assert_eq!(hub.now().as_nanos(), 0);
}

#[tokio::test]
async fn a_call_can_be_spawned() {
    let call = tokio::spawn(async {
        let policy = RetryPolicy::read();
        (|| async { Ok::<_, Broken>(1) }).retry(&policy).await
    });
    assert_eq!(call.await.unwrap().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_event_of_a_call_has_its_number_and_its_label() {
    let flaky = Flaky::failing(1);
    let heard = Mutex::new(Vec::new());
    (|| flaky.attempt())
        .retry(&steady())
        .connectivity(&hub())
        .label("orders")
        .notify(|event| {
            let label = event.label.map(str::to_owned);
            heard.lock().unwrap().push((event.call_id, label));
        })
        .await
        .unwrap();
    let heard = heard.into_inner().unwrap();
    assert_eq!(heard.len(), 4, "failed, planned, resumed, done");
    assert!(heard.iter().all(|told| *told == heard[0]));
    assert_eq!(heard[0].1.as_deref(), Some("orders"));
}

#[tokio::test(start_paused = true)]
async fn calls_that_one_edge_wakes_come_back_spread_as_asked() {
    let hub = hub();
    let spread = Duration::from_secs(2);
    let hour = Duration::from_secs(3_600);
    let policy = steady()
        .to_builder()
        .base(hour)
        .cap(hour)
        .max_elapsed(2 * hour);
    let policy = Arc::new(policy.wake_spread(spread).build().unwrap());
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..1_000 {
        let (hub, policy) = (hub.clone(), policy.clone());
        calls.spawn(async move {
            let mut made = 0;
            let mut back = hub.now();
            let fail_once = || {
                made += 1;
                back = hub.now();
                let number = made;
                async move { if number == 1 { Err(Broken(1)) } else { Ok(()) } }
            };
            fail_once.retry(&policy).connectivity(&hub).await.unwrap();
            back
        });
    }
    while hub.waiting() < 1_000 {
        tokio::task::yield_now().await;
    }
    let edge = hub.now();
    hub.restored();
    let mut back: Vec<Duration> = Vec::new();
    while let Some(at) = calls.join_next().await {
        back.push(at.unwrap().saturating_since(edge));
    }
    back.sort_unstable();
    let within = |part: usize| back[part].abs_diff(spread * part as u32 / 1_000);
    for part in [250, 500, 750] {
        assert!(within(part) < spread / 10, "{:?} at {part}", back[part]);
    }
    assert!(back[999] <= spread + Duration::from_millis(1));
}

/// A generator good enough to choose moments by.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(1);
    splitmix64(0x00D1_CE00, *state)
}

/// Calls whose attempts fail, hang or succeed, dropped at any moment, under edges and losses: nothing is left behind.
#[tokio::test(start_paused = true)]
async fn ten_thousand_random_drops_leave_no_waiter_no_permit_no_task() {
    let mut state = 0;
    let hub = hub();
    let limit = Arc::new(Semaphore::new(4));
    let in_flight = Arc::new(AtomicUsize::new(0));
    let policy = steady()
        .to_builder()
        .jitter(Jitter::Full)
        .attempt_timeout(Duration::from_millis(700))
        .build()
        .unwrap();
    let mut dropped = 0;
    let mut running = tokio::task::JoinSet::new();
    for round in 0..10_000_u64 {
        let attempt = {
            let (in_flight, kind) = (in_flight.clone(), random(&mut state) % 4);
            move || {
                let guard = Guard::enter(&in_flight);
                async move {
                    let _guard = guard;
                    match kind {
                        0 => pending::<()>().await,
                        1 => tokio::time::sleep(Duration::from_millis(300)).await,
                        _ => {}
                    }
                    if kind == 3 {
                        Ok(vec![Ok(())])
                    } else {
                        Err(Broken(0))
                    }
                }
            }
        };
        let cut = Duration::from_micros(random(&mut state) % 3_000_000);
        let network = hub.clone();
        let (hub, limit, policy) = (hub.clone(), limit.clone(), policy.clone());
        let is_batch = round % 2 == 0;
        running.spawn(async move {
            let cut = tokio::time::sleep(cut);
            if is_batch {
                let call = batch(&policy, vec![round], move |_| attempt()).limit(&limit);
                let call = call.connectivity(&hub).into_future();
                tokio::select! { biased; () = cut => true, _ = call => false }
            } else {
                let call = attempt.retry(&policy).connectivity(&hub).into_future();
                tokio::select! { biased; () = cut => true, _ = call => false }
            }
        });
        match random(&mut state) % 16 {
            0 => _ = network.restored(),
            1 => _ = network.available(Network::usable((round % 3) as i64)),
            2 => _ = network.lost((round % 3) as i64),
            _ => {}
        }
        while running.len() > 50 {
            dropped += usize::from(running.join_next().await.unwrap().unwrap());
        }
    }
    while let Some(cut) = running.join_next().await {
        dropped += usize::from(cut.unwrap());
    }
    assert!(dropped > 2_000, "{dropped} were dropped under way");
    assert_eq!(hub.waiting(), 0);
    assert_eq!(limit.available_permits(), 4);
    assert_eq!(in_flight.load(Ordering::Relaxed), 0);
}

/// Counts attempts in flight.
struct Guard(Arc<AtomicUsize>);

impl Guard {
    fn enter(count: &Arc<AtomicUsize>) -> Guard {
        count.fetch_add(1, Ordering::Relaxed);
        Guard(count.clone())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn one_layer_acts_the_outermost() {
    let (hub, made) = (hub(), Cell::new(0));
    let policy = steady();
    let always = async || {
        made.set(made.get() + 1);
        tokio::task::yield_now().await;
        Err::<(), _>(Broken(made.get()))
    };
    let inner = async || always.retry(&policy).connectivity(&hub).await;
    let error = inner.retry(&policy).connectivity(&hub).await.unwrap_err();
    assert_eq!(made.get(), 4, "not 16");
    assert_eq!(error.reason(), Reason::Attempts);
    assert_eq!(error.report().attempts.len(), 4);
    let last = error.into_last().unwrap();
    assert_eq!(last.reason(), Reason::Attempts);
    assert_eq!(last.report().attempts.len(), 1);
    // Once the outer call is over, the next call acts again.
    made.set(0);
    inner().await.unwrap_err();
    assert_eq!(made.get(), 4);
    assert_eq!(hub.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_inner_layer_does_not_wait_even_for_an_attempt_that_does_not_count() {
    let (hub, made) = (hub(), Cell::new(0));
    hub.none_at_start();
    let policy = steady();
    let refused = async || {
        made.set(made.get() + 1);
        hub.available(Network::usable(made.get())); // the edge comes while the attempt fails
        Err::<(), _>(Broken(0))
    };
    let inner = async || {
        let call = refused.retry(&policy).connectivity(&hub);
        call.classify(|_| Verdict::NEVER_SENT).await
    };
    let once = RetryPolicy::builder().max_attempts(1).build().unwrap();
    let error = inner.retry(&once).await.unwrap_err();
    assert_eq!(made.get(), 1);
    let inner = error.into_last().unwrap();
    assert_eq!(inner.reason(), Reason::Attempts);
    assert_eq!(inner.report().attempts[0].waits, [], "none is told of");
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_an_attempt_leaves_no_layer_behind() {
    let hub = hub();
    let policy = steady();
    let panics = async || -> Result<(), Broken> { panic!("the operation's own") };
    let call = panics.retry(&policy).into_future();
    let mut call = Box::pin(call);
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }));
    assert!(polled.is_err());
    let flaky = Flaky::failing(2);
    let answer = (|| flaky.attempt()).retry(&policy).connectivity(&hub).await;
    assert_eq!(answer.unwrap(), 3);
}
