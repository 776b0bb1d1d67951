//! What the caller gets: the last attempt's answer with the report, or an error that says what happened and no more.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use comeback::{
    Connectivity, FailureKind, OutcomeClass, Reason, Reported, RetryPolicy, TokioClock, What,
};

use http_body_util::BodyExt;

use crate::common::{Log, every, executor, http2, outcome, reason, soon, with};
use crate::server::{Act, Server};

#[tokio::test]
async fn a_first_answer_has_no_report() {
    let server = Server::start([Act::status(404)]).await;
    let response = executor(soon()).get(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 404);
    assert_eq!(response.retry_report(), None);
}

#[tokio::test]
async fn the_last_response_is_the_answer_and_is_open() {
    let server = Server::start([]).await;
    server.then((0..4).map(|_| Act::status(503)));
    let result = executor(soon()).get(server.url("/")).send().await;
    assert_eq!(reason(&result), Some(Reason::Attempts));
    let response = result.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.retry_report().unwrap().attempts.len(), 4);
    assert_eq!(response.text().await.unwrap(), "ok");
    assert_eq!(server.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_was_closed_is_never_returned() {
    let server = Server::start([Act::Status(503, vec![("x-request", "17".to_owned())])]).await;
    let (hub, log) = (
        Connectivity::with_clock(TokioClock::new()).with_loopback(),
        Log::new(),
    );
    let executor = with(every(Duration::from_secs(1)), |builder| {
        builder.connectivity(hub).listener(log.listener())
    });
    let (result, ()) = tokio::join!(executor.get(server.url("/")).send(), async {
        log.waits().await;
        tokio::time::advance(Duration::from_secs(3_600)).await; // the device slept
    });
    let error = result.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::Elapsed));
    assert_eq!(error.status().unwrap(), 503);
    assert_eq!(error.headers().unwrap()["x-request"], "17");
    assert_eq!(error.kind(), None);
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn an_errors_text_holds_cause_attempts_and_reason_and_nothing_of_the_request() {
    let server = Server::closed();
    let request = executor(soon().max_attempts(2))
        .get(server.url("/private?token=secret"))
        .header("authorization", "secret");
    let error = request.send().await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("connect_refused; stopped after 2 attempts within "),
        "{text}"
    );
    assert!(text.ends_with(": all attempts are used up"), "{text}");
    let mut all = format!("{error} {error:?}");
    let mut source = error.source();
    assert!(source.is_some());
    while let Some(behind) = source {
        all += &format!(" {behind} {behind:?}");
        source = behind.source();
    }
    assert!(!all.contains("secret"), "{all}");
    assert!(!all.contains("private"), "{all}");
}

#[tokio::test]
async fn an_invalid_request_is_refused_without_a_word_of_it() {
    let request = executor(soon()).get("no url?token=secret");
    let error = request.send().await.unwrap_err();
    assert_eq!(error.to_string(), "the request is invalid");
    assert_eq!(error.reason(), Some(Reason::Permanent));
    assert!(!format!("{error:?}").contains("secret"));
}

#[tokio::test]
async fn reading_the_body_can_be_part_of_the_attempt() {
    let server = Server::start([Act::HalfBody]).await;
    let request = executor(soon()).get(server.url("/")).read_up_to(1_000);
    let response = request.send().await.unwrap();
    let report = response.retry_report().unwrap();
    assert_eq!(
        report.attempts[0].what,
        What::Failure(FailureKind::UnexpectedEnd)
    );
    assert_eq!(response.content_length(), Some(2));
    assert_eq!(response.text().await.unwrap(), "ok");
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn reading_the_body_repeats_nothing_that_must_not_be_repeated() {
    let server = Server::start([Act::HalfBody]).await;
    let request = executor(soon()).post(server.url("/")).read_up_to(1_000);
    let result = request.send().await;
    assert_eq!(
        reason(&result),
        Some(Reason::NotRepeatable),
        "{}",
        outcome(&result)
    );
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn of_a_body_that_is_longer_the_rest_stays_to_be_read() {
    let pieces = vec!["one", "two", "three"];
    let server = Server::start([Act::Trickle(pieces, Duration::from_millis(5))]).await;
    let request = executor(soon()).get(server.url("/")).read_up_to(4);
    let response = request.send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "onetwothree");
}

#[tokio::test]
async fn reading_the_body_keeps_its_trailers() {
    let server = Server::start([Act::Trailer("grpc-status", "0")]).await;
    let request = with(soon(), http2).get(server.url("/")).read_up_to(100);
    let response = request.send().await.unwrap();
    let body = http::Response::<reqwest::Body>::from(response).into_body();
    let read = body.collect().await.unwrap();
    assert_eq!(read.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(read.to_bytes(), "ok");
}

#[tokio::test]
async fn of_a_body_that_is_longer_the_whole_length_is_told() {
    let pieces = vec!["one", "two", "three"];
    let server = Server::start([Act::Trickle(pieces, Duration::ZERO)]).await;
    let request = executor(soon()).get(server.url("/")).read_up_to(4);
    let response = request.send().await.unwrap();
    assert_eq!(response.content_length(), Some(11));
}

#[tokio::test]
async fn the_body_is_the_callers_unless_reading_it_was_asked_for() {
    let server = Server::start([Act::HalfBody]).await;
    let response = executor(soon()).get(server.url("/")).send().await.unwrap();
    assert!(response.bytes().await.is_err());
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn without_retries_a_request_goes_once() {
    let mut server = Server::start([Act::status(503)]).await;
    let executor = executor(soon());
    let request = executor.get(server.url("/")).without_retries();
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(server.count(), 1);
    server.close().await;
    server.close_connections();
    let refused = executor.prepare(reqwest::Request::new(
        reqwest::Method::GET,
        server.url("/").parse().unwrap(),
    ));
    let error = refused.without_retries().send().await.unwrap_err();
    assert!(error.report().attempts.is_empty());
    assert_eq!(error.reason(), None);
}

#[tokio::test]
async fn a_request_and_a_choice_by_request_have_policies_of_their_own() {
    let server = Server::start((0..6).map(|_| Act::status(503))).await;
    let executor = with(soon().max_attempts(1), |builder| {
        builder.policy_for(|request| {
            let is_patient = request.url().path() == "/patient";
            is_patient.then(|| soon().max_attempts(2).build().unwrap())
        })
    });
    let attempts = async |path, own: Option<RetryPolicy>| {
        let before = server.count();
        let request = executor.get(server.url(path));
        let request = match own {
            Some(policy) => request.policy(policy),
            None => request,
        };
        request.send().await.unwrap();
        server.count() - before
    };
    assert_eq!(attempts("/", None).await, 1);
    assert_eq!(attempts("/patient", None).await, 2);
    let own = soon().max_attempts(3).build().unwrap();
    assert_eq!(attempts("/patient", Some(own)).await, 3);
}

#[tokio::test]
async fn the_apps_own_opinion_of_an_answer_counts_but_lifts_no_rule() {
    let server = Server::start([Act::status(404), Act::status(404)]).await;
    let executor = with(soon(), |builder| {
        builder.classify(|_, came| {
            let is_late = came.is_ok_and(|response| response.status() == 404);
            is_late.then_some(OutcomeClass::TransientStatus)
        })
    });
    let response = executor.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(server.count(), 3);
    server.then([Act::status(404)]);
    let response = executor.post(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 404);
    assert_eq!(server.count(), 4);
}

#[tokio::test]
async fn a_hook_or_listener_that_panics_ends_with_the_answer_there_is() {
    let server = Server::start([Act::status(503), Act::status(503)]).await;
    let deaf = with(soon(), |builder| {
        builder.listener(|_: &comeback::RetryEvent<'_>| panic!("deaf"))
    });
    let response = deaf.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    server.then([Act::status(503)]);
    let undecided = with(soon(), |builder| {
        builder.classify(|_, _| panic!("undecided"))
    });
    let result = undecided.get(server.url("/")).send().await;
    assert_eq!(reason(&result), Some(Reason::Internal));
    assert_eq!(result.unwrap().status(), 503);
}

#[tokio::test]
async fn a_circle_of_redirects_ends_without_a_word_of_where_it_led() {
    let server = Server::start(vec![Act::redirect(302, "/private?token=secret"); 12]).await;
    let error = executor(soon())
        .get(server.url("/private?token=secret"))
        .send()
        .await
        .unwrap_err();
    let mut all = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(behind) = source {
        all += &format!(" {behind} {behind:?}");
        source = behind.source();
    }
    assert!(!all.contains("secret"), "{all}");
    assert!(!all.contains("private"), "{all}");
}

#[tokio::test]
async fn who_the_url_names_is_told_to_the_server_as_the_client_itself_would() {
    let server = Server::start([]).await;
    let url = server.url("/").replace("http://", "http://me:secret@");
    let executor = executor(soon());
    executor.get(&url).send().await.unwrap();
    let heard = server.heard();
    assert_eq!(heard[0].header("authorization"), Some("Basic bWU6c2VjcmV0"));
    assert_eq!(heard[0].target, "/");
}

#[tokio::test]
async fn a_choice_of_policy_that_panics_is_none() {
    let server = Server::start(vec![Act::status(503); 4]).await;
    let executor = with(soon().max_attempts(2), |builder| {
        builder.policy_for(|_| panic!("undecided"))
    });
    let response = executor.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn the_apps_opinion_cannot_make_a_request_never_sent() {
    for act in [Act::ResetBeforeAnswer, Act::status(503)] {
        let server = Server::start(vec![act; 4]).await;
        let executor = with(soon(), |builder| {
            builder.classify(|_, _| Some(OutcomeClass::NeverSent))
        });
        let result = executor.post(server.url("/")).send().await;
        assert_eq!(reason(&result), Some(Reason::NotRepeatable));
        assert_eq!(server.count(), 1);
    }
}

#[tokio::test]
async fn an_attempt_that_the_calls_own_timeout_ends_was_made_and_may_have_arrived() {
    let server = Server::start([Act::Stall]).await;
    let request = executor(soon()).post(server.url("/"));
    let error = request
        .timeout(Duration::from_millis(100))
        .send()
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("stopped after 1 attempt within"), "{text}");
    assert!(error.may_have_arrived());
}

#[tokio::test]
async fn a_request_without_retries_that_may_have_arrived_may_have_arrived() {
    let (server, closed) = (
        Server::start([Act::ResetBeforeAnswer]).await,
        Server::closed(),
    );
    let executor = executor(soon());
    let once = async |server: &Server| {
        let request = executor.post(server.url("/")).without_retries();
        request.send().await.unwrap_err().may_have_arrived()
    };
    assert!(once(&server).await);
    server.then([Act::redirect(307, &closed.url("/"))]);
    assert!(once(&server).await);
    assert!(!once(&closed).await);
}

#[tokio::test]
async fn the_policy_too_may_have_the_body_read_within_the_attempt() {
    let server = Server::start([Act::HalfBody]).await;
    let executor = executor(soon().read_body(1_000));
    let response = executor.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.retry_report().unwrap().attempts.len(), 1);
    assert_eq!(response.text().await.unwrap(), "ok");
}

#[tokio::test]
async fn an_event_stream_is_never_read_within_the_attempt() {
    let kind = (
        "content-type",
        "Text/Event-Stream; charset=utf-8".to_owned(),
    );
    let server = Server::start([Act::Head(200, vec![kind])]).await;
    let executor = executor(soon().read_body(1_000));
    let sent = executor.get(server.url("/")).read_up_to(1_000).send();
    let sent = tokio::time::timeout(Duration::from_secs(10), sent).await;
    assert_eq!(sent.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn whether_a_body_is_read_within_the_attempt_the_app_decides_with_its_opinion_of_the_head() {
    // A captive portal's page, cut: it is no answer, so nothing of it is read.
    let portal = ("x-portal", "yes".to_owned());
    let server = Server::start([Act::Head(200, vec![portal])]).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let executor = with(soon().read_body(1_000), |builder| {
        builder.classify(move |_, came| {
            count.fetch_add(1, Ordering::SeqCst);
            let is_portal = came.is_ok_and(|response| response.headers().contains_key("x-portal"));
            is_portal.then_some(OutcomeClass::TransientStatus)
        })
    });
    let sent = executor.get(server.url("/")).send();
    let sent = tokio::time::timeout(Duration::from_secs(10), sent).await;
    assert_eq!(sent.unwrap().unwrap().text().await.unwrap(), "ok");
    assert_eq!(asked.load(Ordering::SeqCst), 2, "once for each attempt");
}
