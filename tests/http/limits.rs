//! What an attempt may take. Time jumps, but for the tests that say otherwise.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use comeback::{
    CancelKind, Clock, Connectivity, Executor, FailureKind, PolicyBuilder, Reason, Reported,
    RetryPolicy, TokioClock,
};
use http_body_util::{BodyExt, Full};
use reqwest::Body;
use tokio::time::Instant;

use crate::common::{self, every, failed, outcome, reason, soon};
use crate::server::{Act, Server};

const SECOND: Duration = Duration::from_secs(1);

/// An executor for whom time jumps.
fn executor(policy: PolicyBuilder) -> Executor {
    let hub = Connectivity::with_clock(TokioClock::new()).with_loopback();
    common::with(policy, |builder| builder.connectivity(hub))
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_takes_as_long_as_it_takes() {
    let server = Server::start([Act::Slow(600 * SECOND)]).await;
    let executor = executor(soon().max_elapsed(3 * SECOND));
    let response = executor.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.retry_report(), None);
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_first_attempt_may_stand_still() {
    let server = Server::start([Act::Trickle(vec!["a", "b"], 600 * SECOND)]).await;
    let executor = executor(soon().max_elapsed(3 * SECOND));
    let response = executor.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "ab");
}

#[tokio::test(start_paused = true)]
async fn a_later_attempt_may_stand_still_for_the_time_that_is_left() {
    let server = Server::start([Act::status(503), Act::Stall]).await;
    let executor = executor(every(SECOND).max_attempts(2).max_elapsed(10 * SECOND));
    let began = Instant::now();
    let error = executor.get(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::ReadTimeout));
    assert_eq!(began.elapsed().as_secs(), 10, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_later_attempt_may_stand_still_for_two_seconds_at_least() {
    let server = Server::start([Act::status(503), Act::Stall]).await;
    let executor = executor(
        every(SECOND)
            .max_attempts(2)
            .max_elapsed(SECOND + SECOND / 2),
    );
    let began = Instant::now();
    let error = executor.get(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::ReadTimeout));
    assert_eq!(began.elapsed().as_secs(), 3, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_later_attempt_may_not_stand_still() {
    let server = Server::start([Act::status(503), Act::StallInBody]).await;
    let executor = executor(soon().max_elapsed(3 * SECOND));
    let response = executor.get(server.url("/")).send().await.unwrap();
    let began = Instant::now();
    let error = response.bytes().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert!(began.elapsed() < 4 * SECOND, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_transfer_that_moves_is_never_cut() {
    let pieces = vec!["a", "b", "c", "d", "e", "f", "g", "h"];
    let server = Server::start([Act::status(503), Act::Trickle(pieces, SECOND)]).await;
    let executor = executor(soon().cut_at_deadline(true).max_elapsed(3 * SECOND));
    let response = executor.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "abcdefgh");
}

/// A body of this many bytes, whole or as a stream, whose first attempt is answered 503 and whose second after this long, within 3 s.
async fn late_answer(bytes: usize, is_stream: bool, after: Duration) -> (String, Duration) {
    let server = Server::start([Act::status(503), Act::Slow(after)]).await;
    let executor = executor(soon().max_elapsed(3 * SECOND).max_attempts(2));
    let body = "x".repeat(bytes);
    let request = executor.put(server.url("/"));
    let request = if is_stream {
        request.body_from(move || {
            let bytes = Full::new(Bytes::from(body.clone()));
            Body::wrap(bytes.map_err(|never: Infallible| match never {}))
        })
    } else {
        request.body(body)
    };
    let began = Instant::now();
    let result = request.send().await;
    (outcome(&result), began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_large_upload_has_the_time_that_a_poor_link_takes_for_what_goes_unseen_and_no_more() {
    for is_stream in [false, true] {
        // 8 KiB a second beyond the first 14,600 bytes: 10.5 s.
        let (told, _) = late_answer(100_000, is_stream, 12 * SECOND).await;
        assert!(told.starts_with("200"), "stream {is_stream}: {told}");
        let (told, took) = late_answer(100_000, is_stream, 600 * SECOND).await;
        assert!(
            told.starts_with("read_timeout"),
            "stream {is_stream}: {told}"
        );
        assert_eq!(took.as_secs(), 13, "stream {is_stream}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_attempt_of_a_payment_has_the_apps_own_inactivity_limit_and_no_other() {
    let server = Server::start([Act::Slow(600 * SECOND), Act::Stall]).await;
    let payment = RetryPolicy::payment();
    let hub = Connectivity::with_clock(TokioClock::new());
    let plain = executor(soon());
    let post = plain.post(server.url("/")).policy(payment.clone());
    assert_eq!(post.send().await.unwrap().status(), 200);
    let limited = common::with(soon(), |builder| {
        let builder = builder.connectivity(hub);
        builder.client(|client| client.read_timeout(10 * SECOND))
    });
    let began = Instant::now();
    let post = limited.post(server.url("/")).policy(payment);
    let error = post.send().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::ReadTimeout));
    assert_eq!(error.reason(), Some(Reason::NotRepeatable));
    assert_eq!(began.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn the_address_status_and_headers_of_a_later_answer_are_its_own() {
    let server = Server::start([Act::status(503), Act::redirect(307, "/there?now")]).await;
    let executor = executor(soon());
    let response = executor.get(server.url("/here")).send().await.unwrap();
    assert_eq!(response.url().as_str(), server.url("/there?now"));
    assert_eq!(response.content_length(), Some(2));
    assert!(response.remote_addr().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_attempts_timeout_ends_with_the_response_head() {
    let server = Server::start([Act::Stall, Act::Trickle(vec!["a", "b"], 10 * SECOND)]).await;
    let executor = executor(soon().attempt_timeout(2 * SECOND).max_elapsed(60 * SECOND));
    let response = executor.get(server.url("/")).send().await.unwrap();
    let report = response.retry_report().unwrap().clone();
    assert_eq!(response.text().await.unwrap(), "ab");
    assert_eq!(report.attempts.len(), 1);
    assert_eq!(report.attempts[0].what, failed(FailureKind::AttemptTimeout));
}

#[tokio::test(start_paused = true)]
async fn an_attempts_timeout_covers_the_body_that_is_read_within_it() {
    let server = Server::start([Act::Trickle(vec!["a", "b"], 10 * SECOND)]).await;
    let executor = executor(soon().attempt_timeout(2 * SECOND).max_elapsed(60 * SECOND));
    let request = executor.get(server.url("/")).read_up_to(1_000);
    let response = request.send().await.unwrap();
    let report = response.retry_report().unwrap().clone();
    assert_eq!(response.text().await.unwrap(), "ok");
    assert_eq!(report.attempts.len(), 1);
    assert_eq!(report.attempts[0].what, failed(FailureKind::AttemptTimeout));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_cuts_a_body_that_is_read_within_its_attempt() {
    for method in [reqwest::Method::GET, reqwest::Method::POST] {
        let server = Server::start([Act::StallInBody]).await;
        let executor = executor(soon().cut_at_deadline(true).max_elapsed(5 * SECOND));
        let began = Instant::now();
        let request = executor.request(method.clone(), server.url("/"));
        let error = request.read_up_to(1_000).send().await.unwrap_err();
        let reason = match method {
            reqwest::Method::GET => Reason::Elapsed,
            _ => Reason::NotRepeatable, // it was answered
        };
        assert_eq!(error.reason(), Some(reason));
        assert!(error.may_have_arrived());
        assert_eq!(began.elapsed().as_secs(), 5);
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_cuts_any_attempt_if_the_policy_says_so() {
    let server = Server::start([Act::Stall]).await;
    let executor = executor(soon().cut_at_deadline(true).max_elapsed(5 * SECOND));
    let began = Instant::now();
    let result = executor.get(server.url("/")).send().await;
    assert_eq!(
        reason(&result),
        Some(Reason::Elapsed),
        "{}",
        outcome(&result)
    );
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn in_paused_time_the_waits_of_a_call_that_nobody_told_of_it_jump_too() {
    let minute = 60 * SECOND;
    let executor = common::executor(every(minute).max_elapsed(10 * minute));
    let began = (std::time::Instant::now(), Instant::now());
    let sent = executor.get(Server::closed().url("/")).send();
    let error = tokio::time::timeout(60 * minute, sent).await.unwrap();
    let error = error.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::ConnectRefused));
    assert_eq!(error.reason(), Some(Reason::Attempts));
    assert!(began.0.elapsed() < minute, "{:?}", began.0.elapsed());
    let paused = began.1.elapsed();
    assert!(paused.abs_diff(3 * minute) < minute / 2, "{paused:?}");
}

#[tokio::test(start_paused = true)]
async fn in_paused_time_the_requests_own_timeout_is_believed_too() {
    for acts in [vec![Act::Stall], vec![Act::status(503), Act::Stall]] {
        let server = Server::start(acts).await;
        let executor = common::executor(every(60 * SECOND).max_elapsed(600 * SECOND));
        let began = Instant::now();
        let request = executor.get(server.url("/")).timeout(200 * SECOND);
        let result = request.send().await;
        let cancelled = Reason::Cancelled(CancelKind::CallTimeout);
        assert_eq!(reason(&result), Some(cancelled), "{}", outcome(&result));
        let took = began.elapsed();
        assert!(took.abs_diff(200 * SECOND) < 30 * SECOND, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_requests_own_timeout_ends_the_call() {
    let server = Server::start([Act::status(503), Act::Stall]).await;
    let executor = executor(every(SECOND));
    let began = Instant::now();
    let request = executor.get(server.url("/")).timeout(4 * SECOND);
    let result = request.send().await;
    let cancelled = Reason::Cancelled(CancelKind::CallTimeout);
    assert_eq!(reason(&result), Some(cancelled), "{}", outcome(&result));
    assert_eq!(began.elapsed().as_secs(), 4);
    assert_eq!(server.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_fit_the_requests_timeout_is_not_begun() {
    let server = Server::start([Act::status(503)]).await;
    let executor = executor(every(5 * SECOND));
    let began = Instant::now();
    let request = executor.get(server.url("/")).timeout(4 * SECOND);
    let result = request.send().await;
    assert_eq!(reason(&result), Some(Reason::Elapsed));
    assert!(began.elapsed() < SECOND);
}

/// Real time: the handshake is on a socket.
#[tokio::test]
async fn connect_timeout_covers_tcp_and_tls() {
    let authority = crate::authority::Authority::new();
    let config = authority.server("127.0.0.1");
    let server = Server::start_tls([Act::StallAtAccept], config).await;
    let log = common::Log::new();
    let policy = soon().connect_timeout(Duration::from_millis(400));
    let executor = common::with(policy, |builder| {
        let authority = authority.certificate().to_vec();
        builder.listener(log.listener()).trust(authority)
    });
    let response = executor.post(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(log.failures(), [failed(FailureKind::ConnectTimeout)]);
    assert_eq!(server.count(), 1);
}

/// A hair ahead of the client's timers, as it is when both end within one millisecond.
#[derive(Debug)]
struct Ahead(TokioClock);

impl Clock for Ahead {
    fn now(&self) -> comeback::Instant {
        let now = self.0.now().as_nanos();
        comeback::Instant::from_nanos(now + now / 100)
    }

    fn wall_ms(&self) -> Option<i64> {
        self.0.wall_ms()
    }
}

#[tokio::test(start_paused = true)]
async fn the_requests_own_timeout_is_told_as_such_even_if_the_deadline_cuts() {
    for acts in [vec![Act::Stall], vec![Act::status(503), Act::Stall]] {
        let server = Server::start(acts).await;
        let executor = common::with(every(SECOND).cut_at_deadline(true), |builder| {
            builder.connectivity(Connectivity::with_clock(Ahead(TokioClock::new())).with_loopback())
        });
        let request = executor.get(server.url("/")).timeout(4 * SECOND);
        let result = request.send().await;
        let cancelled = Reason::Cancelled(CancelKind::CallTimeout);
        assert_eq!(reason(&result), Some(cancelled), "{}", outcome(&result));
        assert!(result.unwrap_err().client_error().unwrap().is_timeout());
    }
}
