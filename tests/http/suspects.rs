//! Connections that are dead without a word: after an attempt that ended by time nothing begins on what was there before.

use std::time::Duration;

use comeback::{Executor, ExecutorBuilder, FailureKind, Reason, Reported, RetryPolicy, Retryable};

use crate::common::{self, every, failed, soon, with};
use crate::server::{Act, Server};

const LIMIT: Duration = Duration::from_millis(500);

fn same(builder: ExecutorBuilder) -> ExecutorBuilder {
    builder
}

/// This many connections, all of which lie in the pool afterwards.
async fn warm(executor: &Executor, server: &Server, connections: usize) {
    server.then(vec![Act::Slow(Duration::from_millis(100)); connections]);
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..connections {
        running.spawn(executor.get(server.url("/warm")).send());
    }
    while let Some(warmed) = running.join_next().await {
        warmed.unwrap().unwrap().bytes().await.unwrap();
    }
}

#[tokio::test]
async fn the_second_attempt_is_on_a_connection_made_after_the_first_one_failed() {
    for (settings, idle) in [(same as fn(_) -> _, 5), (common::http2, 1)] {
        let server = Server::start([]).await;
        let executor = with(soon().attempt_timeout(LIMIT).max_attempts(8), settings);
        warm(&executor, &server, idle).await;
        server.silence_connections();
        let response = executor.get(server.url("/")).send().await.unwrap();
        let report = response.retry_report().unwrap();
        assert_eq!(
            report.attempts.len(),
            1,
            "{idle} idle connections: {report:?}"
        );
        assert_eq!(report.attempts[0].what, failed(FailureKind::AttemptTimeout));
        let connection = server.heard().last().unwrap().connection;
        assert!(connection >= idle, "{idle}");
        // Every other call knows it too, and the new connection is used again.
        let connections = server.connections();
        for _ in 0..3 {
            let response = executor.get(server.url("/")).send().await.unwrap();
            assert_eq!(response.retry_report(), None);
            response.bytes().await.unwrap();
        }
        assert!(server.connections() <= connections + 1);
    }
}

#[tokio::test]
async fn a_read_that_was_cut_at_its_deadline_does_not_take_the_next_one_with_it() {
    let server = Server::start([]).await;
    let executor = with(soon(), common::http2);
    warm(&executor, &server, 1).await;
    server.silence_connections();
    let read = RetryPolicy::read().to_builder().max_elapsed(LIMIT).build();
    let read = read.unwrap();
    let get = || executor.get(server.url("/")).policy(read.clone()).send();
    assert_eq!(get().await.unwrap_err().reason(), Some(Reason::Elapsed));
    let began = std::time::Instant::now();
    assert_eq!(get().await.unwrap().status(), 200);
    assert!(began.elapsed() < LIMIT);
}

#[tokio::test]
async fn the_clients_own_time_outs_make_connections_suspect_too() {
    for settings in [
        (|builder: ExecutorBuilder| builder.client(|client| client.read_timeout(LIMIT)))
            as fn(_) -> _,
        |builder| builder.client(|client| client.timeout(LIMIT)),
    ] {
        let server = Server::start([]).await;
        let executor = with(soon(), settings);
        warm(&executor, &server, 3).await;
        server.silence_connections();
        let response = executor.get(server.url("/")).send().await.unwrap();
        assert_eq!(response.retry_report().unwrap().attempts.len(), 1);

        server.silence_connections();
        let once = executor.post(server.url("/")).without_retries();
        assert!(once.send().await.unwrap_err().may_have_arrived());
        let once = executor.post(server.url("/")).without_retries();
        assert_eq!(once.send().await.unwrap().status(), 200);

        server.silence_connections();
        let hasty = executor.get(server.url("/")).timeout(LIMIT / 2);
        assert!(hasty.send().await.is_err());
        let response = executor.get(server.url("/")).send().await.unwrap();
        assert_eq!(response.retry_report(), None);
    }
}

#[tokio::test]
async fn an_attempt_of_a_layer_around_the_call_that_ended_by_time_does_so_too() {
    let server = Server::start([]).await;
    let executor = with(soon(), common::http2);
    warm(&executor, &server, 1).await;
    server.silence_connections();
    let policy = soon().attempt_timeout(LIMIT).build().unwrap();
    let inner = async || executor.get(server.url("/")).send().await;
    let outer = async || inner.retry(&policy).await; // the middle one stands down
    let response = outer.retry(&policy).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(server.count(), 2, "the warm-up's, and the second attempt's");
}

#[tokio::test]
async fn a_call_that_is_dropped_says_nothing_of_its_connection() {
    let server = Server::start([]).await;
    let executor = with(soon(), common::http2);
    warm(&executor, &server, 1).await;
    server.then([Act::Stall]);
    let dropped = executor.get(server.url("/")).send();
    assert!(tokio::time::timeout(LIMIT / 2, dropped).await.is_err());
    let response = executor.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn other_origins_keep_their_connections() {
    let (dead, fine) = (Server::start([]).await, Server::start([]).await);
    let executor = with(soon().attempt_timeout(LIMIT), same);
    warm(&executor, &dead, 1).await;
    warm(&executor, &fine, 1).await;
    dead.silence_connections();
    assert_eq!(
        executor.get(dead.url("/")).send().await.unwrap().status(),
        200
    );
    assert_eq!(
        executor.get(fine.url("/")).send().await.unwrap().status(),
        200
    );
    assert_eq!((dead.connections(), fine.connections()), (2, 1));
}

#[tokio::test]
async fn behind_a_redirect_nobody_knows_whose_connection_it_was() {
    let (front, dead) = (Server::start([]).await, Server::start([]).await);
    let executor = with(soon().attempt_timeout(LIMIT), same);
    warm(&executor, &dead, 3).await;
    dead.silence_connections();
    front.then([Act::redirect(307, &dead.url("/"))]);
    let response = executor.get(front.url("/")).send().await.unwrap();
    assert_eq!(response.retry_report().unwrap().attempts.len(), 1);
    let response = executor.get(dead.url("/")).send().await.unwrap();
    assert_eq!(response.retry_report(), None);
}

#[tokio::test]
async fn what_is_under_way_on_a_suspect_connection_goes_on() {
    let server = Server::start([]).await;
    let executor = with(soon(), common::http2);
    warm(&executor, &server, 1).await;
    server.then([Act::Trickle(vec!["a", "b", "c"], LIMIT), Act::Stall]);
    let slow = executor.get(server.url("/")).send().await.unwrap();
    let limited = soon().attempt_timeout(LIMIT / 2).build().unwrap();
    let response = executor.get(server.url("/")).policy(limited).send().await;
    assert_eq!(response.unwrap().retry_report().unwrap().attempts.len(), 1);
    assert_eq!(slow.text().await.unwrap(), "abc");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_calls_in_flight_over_a_death_each_makes_one_attempt_on_the_dead_connection()
{
    const CALLS: usize = 1_000;
    let server = Server::start([]).await;
    let limit = Duration::from_secs(4);
    let policy = every(Duration::from_millis(10))
        .attempt_timeout(limit)
        .max_elapsed(10 * limit);
    let executor = with(policy, common::http2);
    warm(&executor, &server, 1).await;
    server.silence_connections();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        running.spawn(executor.get(server.url("/")).send());
    }
    let mut attempts = 0;
    while let Some(answer) = running.join_next().await {
        let response = answer.unwrap().unwrap();
        let report = response.retry_report().unwrap();
        attempts += report.attempts.len();
    }
    assert_eq!(attempts, CALLS);
    assert_eq!(server.count(), CALLS + 1);
    assert!(server.connections() <= 3, "{}", server.connections());
}
