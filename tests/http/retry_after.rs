//! `Retry-After` as a server sends it. Time jumps.

use std::time::Duration;

use comeback::{Connectivity, Reason, Reported, TokioClock};
use tokio::time::Instant;

use crate::common::{Log, reason, soon, with};
use crate::server::{Act, Server};

async fn elapsed_after(act: Act) -> (Duration, usize, Option<Reason>) {
    let server = Server::start([act]).await;
    let hub = Connectivity::with_clock(TokioClock::new()).with_loopback();
    let executor = with(soon(), |builder| builder.connectivity(hub));
    let began = Instant::now();
    let result = executor.get(server.url("/")).send().await;
    (began.elapsed(), server.count(), reason(&result))
}

#[tokio::test(start_paused = true)]
async fn digits_are_seconds() {
    let (elapsed, count, reason) = elapsed_after(Act::retry_after(429, "3")).await;
    assert!(elapsed >= Duration::from_secs(3), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(4), "{elapsed:?}");
    assert_eq!((count, reason), (2, None));
}

#[tokio::test(start_paused = true)]
async fn a_date_is_measured_against_the_servers_own_clock() {
    let act = Act::Status(
        503,
        vec![
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT".to_owned()),
            ("retry-after", "Sun, 06 Nov 1994 08:49:42 GMT".to_owned()),
        ],
    );
    let (elapsed, count, _) = elapsed_after(act).await;
    assert!(elapsed >= Duration::from_secs(5), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(6), "{elapsed:?}");
    assert_eq!(count, 2);
}

#[tokio::test(start_paused = true)]
async fn the_longest_of_several_lines_counts_and_junk_is_no_hint() {
    let lines = ["1e3", "2", "-5"].map(|line| ("retry-after", line.to_owned()));
    let (elapsed, count, _) = elapsed_after(Act::Status(503, lines.to_vec())).await;
    assert!(elapsed >= Duration::from_secs(2), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
    assert_eq!(count, 2);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_stops_at_once_with_what_the_server_asked_for() {
    let server = Server::start([Act::retry_after(503, "86400")]).await;
    let executor = with(soon(), |builder| builder);
    let response = executor.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 503);
    let end = response.retry_report().unwrap().end.unwrap();
    assert_eq!(
        end.reason,
        Some(Reason::ServerWaitTooLong { ms: 86_400_000 })
    );
    assert_eq!(response.text().await.unwrap(), "ok"); // it was not closed: there was no wait
    assert_eq!(server.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_edge_ends_no_wait_that_the_server_asked_for() {
    let server = Server::start([Act::retry_after(503, "5")]).await;
    let (hub, log) = (
        Connectivity::with_clock(TokioClock::new()).with_loopback(),
        Log::new(),
    );
    let executor = with(soon(), |builder| {
        builder.connectivity(hub.clone()).listener(log.listener())
    });
    let began = Instant::now();
    let edge = async {
        log.waits().await;
        hub.restored();
    };
    let (result, ()) = tokio::join!(executor.get(server.url("/")).send(), edge);
    assert_eq!(result.unwrap().status(), 200);
    assert!(began.elapsed() >= Duration::from_secs(5));
}
