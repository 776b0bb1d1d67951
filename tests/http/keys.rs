//! Idempotency keys: who makes them, and how many.

use comeback::{KeyForm, KeyRule};

use crate::common::{KEY, executor, soon};
use crate::server::{Act, Heard, Server};

fn keys(heard: &[Heard]) -> Vec<Option<&str>> {
    heard.iter().map(|request| request.header(KEY)).collect()
}

#[tokio::test]
async fn one_key_serves_all_attempts_and_redirects_of_a_call() {
    let server = Server::start([
        Act::status(503),
        Act::redirect(307, "/elsewhere"),
        Act::ResetBeforeAnswer,
    ])
    .await;
    let executor = executor(soon());
    let response = executor
        .post(server.url("/"))
        .body("{}")
        .idempotency_key()
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    let heard = server.heard();
    let targets: Vec<&str> = heard.iter().map(|one| one.target.as_str()).collect();
    assert_eq!(targets, ["/", "/", "/elsewhere", "/"]);
    let key = heard[0].header(KEY);
    assert!(key.is_some_and(|key| key.len() == 36), "{key:?}");
    assert_eq!(keys(&heard), [key; 4]);
    assert!(heard.iter().all(|one| one.body.as_deref() == Some(b"{}")));
}

#[tokio::test]
async fn every_call_has_its_own_key() {
    let server = Server::start([]).await;
    let executor = executor(soon());
    for _ in 0..2 {
        let request = executor.post(server.url("/")).idempotency_key();
        request.send().await.unwrap();
    }
    let heard = server.heard();
    assert_ne!(heard[0].header(KEY), heard[1].header(KEY));
}

#[tokio::test]
async fn the_callers_key_is_never_overwritten() {
    let server = Server::start([Act::status(503)]).await;
    let executor = executor(soon());
    let request = executor.post(server.url("/")).header(KEY, "order-7");
    request.idempotency_key().send().await.unwrap();
    assert_eq!(keys(&server.heard()), [Some("order-7"); 2]);
}

#[tokio::test]
async fn a_policy_makes_keys_for_post_and_patch_in_its_own_form_and_header() {
    let server = Server::start([]).await;
    let executor = executor(soon().key(KeyRule {
        header: "X-Once".to_owned(),
        form: KeyForm::Quoted,
        make: true,
    }));
    for method in ["GET", "PUT", "POST", "PATCH"] {
        let request = executor.request(method.parse().unwrap(), server.url("/"));
        request.send().await.unwrap();
    }
    let heard = server.heard();
    let made: Vec<bool> = heard
        .iter()
        .map(|one| one.header("x-once").is_some())
        .collect();
    assert_eq!(made, [false, false, true, true]);
    let key = heard[2].header("x-once").unwrap();
    assert!(key.starts_with('"') && key.ends_with('"') && key.len() == 38);
}

#[tokio::test]
async fn no_key_is_made_that_nobody_asked_for() {
    let server = Server::start([]).await;
    executor(soon()).post(server.url("/")).send().await.unwrap();
    assert_eq!(keys(&server.heard()), [None]);
}

#[tokio::test]
async fn a_blank_key_is_no_key() {
    for blank in ["", "  "] {
        let server = Server::start([Act::status(503)]).await;
        let request = executor(soon()).post(server.url("/")).header(KEY, blank);
        assert_eq!(request.send().await.unwrap().status(), 503);
        assert_eq!(server.heard().len(), 1);
    }
}

#[tokio::test]
async fn a_key_is_made_in_place_of_a_blank_one() {
    let server = Server::start([Act::status(503)]).await;
    let request = executor(soon()).post(server.url("/")).header(KEY, "");
    request.idempotency_key().send().await.unwrap();
    let heard = server.heard();
    let key = heard[0].header(KEY);
    assert!(key.is_some_and(|key| key.len() == 36), "{key:?}");
    assert_eq!(keys(&heard), [key; 2]);
    assert_eq!(heard[0].headers.get_all(KEY).iter().count(), 1);
}
