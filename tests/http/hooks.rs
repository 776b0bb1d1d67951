//! What the app does before each attempt: headers of its own, failures, requests that it makes meanwhile.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use comeback::{FailureKind, Method, Reason, RequestFacts, Retryable, Verdict};
use reqwest::header::{HeaderMap, HeaderValue, IF_MATCH};

use crate::common::{KEY, executor, outcome, reason, soon, with};
use crate::server::{Act, Server};

#[derive(Debug)]
struct NotLoggedIn;

impl fmt::Display for NotLoggedIn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("nobody is logged in")
    }
}

impl Error for NotLoggedIn {}

fn one(name: &'static str, value: impl Into<HeaderValue>) -> HeaderMap {
    HeaderMap::from_iter([(name.parse().unwrap(), value.into())])
}

#[tokio::test]
async fn each_attempt_has_headers_of_its_own() {
    let server = Server::start([Act::status(503), Act::ResetBeforeAnswer]).await;
    let stamping = with(soon(), |builder| {
        builder.before_attempt(|attempt| async move {
            assert_eq!(attempt.body(), Some(&b"order"[..]));
            Ok::<_, NotLoggedIn>(one("attempt", attempt.number()))
        })
    });
    let request = stamping.put(server.url("/")).header("attempt", "0");
    let answer = request.body("order").send().await;
    assert_eq!(answer.unwrap().status(), 200);
    let heard = server.heard();
    let stamps: Vec<_> = heard
        .iter()
        .map(|request| request.header("attempt"))
        .collect();
    assert_eq!(stamps, [Some("1"), Some("2"), Some("3")]);
    assert!(heard[2].body.as_ref().is_some_and(|body| body == "order"));
}

#[tokio::test]
async fn a_hook_that_fails_is_an_attempt_that_sent_nothing() {
    let server = Server::start([]).await;
    let asked = Arc::new(AtomicU32::new(0));
    let counted = asked.clone();
    let flaky = with(soon(), |builder| {
        builder.before_attempt(move |_| {
            let number = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                match number {
                    0 => Err(io::Error::from(ErrorKind::TimedOut)),
                    _ => Ok(HeaderMap::new()),
                }
            }
        })
    });
    let answer = flaky.post(server.url("/")).send().await;
    assert_eq!(
        answer.as_ref().unwrap().status(),
        200,
        "{}",
        outcome(&answer)
    );
    assert_eq!((asked.load(Ordering::Relaxed), server.count()), (2, 1));
}

#[tokio::test]
async fn a_hook_s_error_that_only_the_app_knows_stops_the_call() {
    let server = Server::start([]).await;
    let refusing = with(soon(), |builder| {
        builder.before_attempt(|_| async { Err::<HeaderMap, _>(NotLoggedIn) })
    });
    let error = refusing.get(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::Permanent));
    assert_eq!(error.kind(), Some(FailureKind::Unlisted));
    assert!(error.source().unwrap().is::<NotLoggedIn>());
    assert!(!error.may_have_arrived());
    let once = refusing.get(server.url("/")).without_retries().send().await;
    assert!(once.unwrap_err().source().unwrap().is::<NotLoggedIn>());
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn a_post_that_a_hook_makes_by_an_executor_is_made_once() {
    let tokens = Server::start(vec![Act::ResetBeforeAnswer; 8]).await;
    let server = Server::start(vec![Act::status(503); 8]).await;
    let (inner, url) = (executor(soon()), tokens.url("/token"));
    let refreshing = with(soon(), |builder| {
        builder.before_attempt(move |_| {
            let post = inner.post(&url).send();
            async move { post.await.map(|_| HeaderMap::new()) }
        })
    });
    let answer = refreshing.get(server.url("/")).send().await;
    assert_eq!(
        reason(&answer),
        Some(Reason::NotRepeatable),
        "{}",
        outcome(&answer)
    );
    assert_eq!((tokens.count(), server.count()), (1, 0));
}

#[tokio::test]
async fn a_post_of_a_hook_that_was_answered_keeps_the_call_from_going_again() {
    let tokens = Server::start([]).await;
    let server = Server::start(vec![Act::status(503); 8]).await;
    let (inner, url) = (executor(soon()), tokens.url("/token"));
    let refreshing = with(soon(), |builder| {
        builder.before_attempt(move |_| {
            let post = inner.post(&url).send();
            async move { post.await.map(|_| HeaderMap::new()) }
        })
    });
    let answer = refreshing.get(server.url("/")).send().await;
    assert_eq!(
        reason(&answer),
        Some(Reason::NotRepeatable),
        "{}",
        outcome(&answer)
    );
    assert_eq!((tokens.count(), server.count()), (1, 1));
}

#[tokio::test]
async fn a_key_and_a_condition_of_a_hook_do_not_decide_what_goes_again() {
    let server = Server::start(vec![Act::ResetBeforeAnswer; 8]).await;
    let keying = with(soon(), |builder| {
        builder.before_attempt(|attempt| async move {
            let mut headers = one(KEY, attempt.number());
            headers.insert(IF_MATCH, HeaderValue::from_static("x"));
            Ok::<_, NotLoggedIn>(headers)
        })
    });
    let error = keying.post(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NotRepeatable));
    assert_eq!(server.count(), 1);
    assert_eq!(server.heard()[0].header(KEY), None);
    assert_eq!(server.heard()[0].header("if-match"), None);
}

#[tokio::test]
async fn a_client_of_the_apps_own_has_ready_verdicts() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::new();
    let policy = soon().build().unwrap();
    let server = Server::start([Act::status(503), Act::ResetBeforeAnswer, Act::status(404)]).await;
    let get = || client.get(server.url("/")).send();
    let call = get.retry(&policy).classify(Verdict::of_reqwest);
    assert_eq!(call.await.unwrap().status(), 404);
    assert_eq!(server.count(), 3);

    let server = Server::start(vec![Act::ResetBeforeAnswer; 8]).await;
    let post = || client.post(server.url("/")).send();
    let call = post.retry(&policy).classify(Verdict::of_reqwest);
    let error = call
        .request(RequestFacts::new(Method::Post))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Reason::NotRepeatable);
    assert_eq!(server.count(), 1);

    let server = Server::start([Act::retry_after(503, "86400")]).await;
    let get = || client.get(server.url("/")).send();
    let call = get.retry(&policy).classify(Verdict::of_reqwest).await;
    assert_eq!(call.unwrap().status(), 503);
    assert_eq!(server.count(), 1);
}
