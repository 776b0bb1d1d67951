//! Loops that never end: their backoff across rounds, success, edges and loss. Time is tokio's and paused.

#![allow(clippy::unwrap_used)] // a test says no by panicking

use std::time::Duration;

use comeback::*;

const SECOND: Duration = Duration::from_secs(1);

fn hub() -> Connectivity {
    Connectivity::with_clock(TokioClock::new())
}

fn steady() -> RetryPolicy {
    RetryPolicy::builder()
        .base(SECOND)
        .cap(8 * SECOND)
        .jitter(Jitter::None)
        .max_attempts(2)
        .max_elapsed(SECOND)
        .build()
        .unwrap()
}

/// How long the next wait is.
async fn waited(backoff: &mut Backoff, hub: &Connectivity) -> Duration {
    let before = hub.now();
    backoff.wait().await;
    hub.now().saturating_since(before)
}

#[tokio::test(start_paused = true)]
async fn the_window_grows_across_rounds_and_no_cap_ends_the_loop() {
    let hub = hub();
    let mut backoff = Backoff::new(&steady(), &hub);
    let mut waits = Vec::new();
    for _ in 0..300 {
        waits.push(waited(&mut backoff, &hub).await);
    }
    assert_eq!(waits[..4], [SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND]);
    assert!(waits[4..].iter().all(|wait| *wait == 8 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn in_paused_time_the_system_s_clock_will_do() {
    let hub = Connectivity::new();
    let mut backoff = Backoff::new(&steady(), &hub);
    let began = tokio::time::Instant::now();
    let rounds = async {
        for _ in 0..300 {
            backoff.wait().await;
        }
    };
    let day = 24 * 3_600 * SECOND;
    tokio::time::timeout(day, rounds).await.unwrap();
    // What the rounds took of the clock's own time is part of the waits, and no wait is added to later ones.
    let expected = 7 * SECOND + 297 * 8 * SECOND;
    let took = began.elapsed();
    assert!(took.abs_diff(expected) < 30 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn success_starts_the_backoff_over() {
    let hub = hub();
    let mut backoff = Backoff::new(&steady(), &hub);
    for _ in 0..3 {
        backoff.wait().await;
    }
    backoff.start_over();
    assert_eq!(waited(&mut backoff, &hub).await, SECOND);
    assert_eq!(waited(&mut backoff, &hub).await, 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn an_edge_ends_a_wait() {
    let hub = hub();
    let mut backoff = Backoff::new(&steady(), &hub);
    backoff.wait().await;
    let edge = async {
        tokio::time::sleep(SECOND / 2).await;
        hub.restored();
    };
    let (by, ()) = tokio::join!(backoff.wait(), edge);
    assert_eq!(by, WokenBy::Edge);
    assert_eq!(hub.now().as_nanos(), 1_500_000_000);
    assert_eq!(hub.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_link_that_broke_at_a_handover_is_made_anew_at_once() {
    let hub = hub();
    hub.available(Network::usable(1));
    let mut backoff = Backoff::new(&steady(), &hub);
    backoff.start_over();
    tokio::time::sleep(60 * SECOND).await; // the link is up
    hub.available(Network::usable(2));
    assert_eq!(waited(&mut backoff, &hub).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_flapping_network_is_no_hot_loop() {
    let hub = hub();
    let mut backoff = Backoff::new(
        &steady().to_builder().base(4 * SECOND).build().unwrap(),
        &hub,
    );
    let mut rounds = 0;
    let start = hub.now();
    while hub.now().saturating_since(start) < 60 * SECOND {
        hub.restored();
        backoff.wait().await;
        backoff.start_over();
        rounds += 1;
    }
    assert!((59..=62).contains(&rounds), "{rounds} rounds a minute");
}

#[tokio::test(start_paused = true)]
async fn without_a_network_the_loop_parks_until_an_edge_or_a_probe() {
    let hub = hub();
    hub.available(Network::usable(1));
    hub.lost(1);
    let mut backoff = Backoff::new(&steady(), &hub);
    assert_eq!(waited(&mut backoff, &hub).await, 10 * SECOND, "a probe");
    let back = async {
        tokio::time::sleep(3 * SECOND).await;
        hub.available(Network::usable(1));
    };
    let before = hub.now();
    let (by, ()) = tokio::join!(backoff.wait(), back);
    assert_eq!(by, WokenBy::Edge);
    assert_eq!(hub.now().saturating_since(before), 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_servers_wish_is_a_floor_that_no_edge_ends() {
    let hub = hub();
    let mut backoff = Backoff::new(&steady(), &hub);
    let edge = async {
        tokio::time::sleep(SECOND).await;
        hub.restored();
    };
    let overloaded = backoff.wait_after(Verdict::overloaded(20 * SECOND));
    let (by, ()) = tokio::join!(overloaded, edge);
    assert_eq!(by, WokenBy::Timer);
    assert_eq!(hub.now().as_nanos(), 21_000_000_000);
    let day = 24 * 3_600 * SECOND;
    backoff.wait_after(Verdict::overloaded(1_000 * day)).await;
    let waited = hub.now().as_nanos() - 21_000_000_000;
    assert_eq!(
        waited,
        (day + 2 * SECOND).as_nanos() as i64,
        "a day at most"
    );
}

#[tokio::test(start_paused = true)]
async fn whatever_is_said_of_a_failure_the_loop_goes_on() {
    let hub = hub();
    let mut backoff = Backoff::new(&steady(), &hub);
    for &kind in FailureKind::ALL {
        backoff.wait_after(Verdict::Failed(kind)).await;
    }
    for status in [200, 404, 500, 503] {
        let retry_after = None;
        backoff
            .wait_after(Verdict::Status {
                status,
                retry_after,
            })
            .await;
    }
    assert_eq!(
        waited(&mut backoff, &hub).await,
        8 * SECOND,
        "and has kept its window"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_leaves_no_waiter_and_the_next_is_a_whole_one() {
    let hub = hub();
    let mut backoff = Backoff::new(&steady(), &hub);
    let cut = tokio::time::timeout(SECOND / 2, backoff.wait()).await;
    assert!(cut.is_err());
    assert_eq!(waited(&mut backoff, &hub).await, 2 * SECOND);
    assert_eq!(hub.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn overload_is_waited_out_whatever_statuses_the_policy_repeats() {
    let hub = hub();
    let policy = RetryPolicy::builder()
        .base(SECOND)
        .cap(SECOND)
        .jitter(Jitter::None)
        .retry_statuses([500])
        .build()
        .unwrap();
    let mut backoff = Backoff::new(&policy, &hub);
    for status in [429, 503] {
        let before = hub.now();
        let retry_after = Some(5 * SECOND);
        backoff
            .wait_after(Verdict::Status {
                status,
                retry_after,
            })
            .await;
        assert_eq!(hub.now().saturating_since(before), 6 * SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn an_edge_during_the_round_after_a_dropped_wait_is_not_lost() {
    let hub = hub();
    let mut backoff = Backoff::new(&steady(), &hub);
    let cut = tokio::time::timeout(SECOND / 2, backoff.wait()).await;
    assert!(cut.is_err());
    hub.available(Network::usable(1)); // while the round is under way
    assert_eq!(waited(&mut backoff, &hub).await, Duration::ZERO);
}
