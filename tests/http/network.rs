//! What a change of the network does to waits, attempts and pooled connections.

use std::time::Duration;

use comeback::{
    Connectivity, Event, Executor, FailureKind, HttpError, Network, Offline, Reason, Reported,
    WaitReason, WokenBy,
};
use reqwest::Response;

use crate::authority::Authority;
use crate::common::{Log, every, failed, soon, with};
use crate::server::{Act, Server};

const LONG: Duration = Duration::from_secs(15);

/// Wi-Fi is there; `handover` replaces it.
fn on_wifi() -> Connectivity {
    let hub = Connectivity::new().with_loopback();
    hub.available(Network::usable(1));
    hub
}

fn handover(hub: &Connectivity) {
    hub.available(Network::usable(2));
}

/// One answered request, so that a connection lies in the pool.
async fn warm(executor: &Executor, server: &Server) {
    let response = executor.get(server.url("/warm")).send().await.unwrap();
    response.bytes().await.unwrap();
}

#[tokio::test]
async fn a_restored_edge_ends_a_pending_wait() {
    let server = Server::start([Act::status(503)]).await;
    let (hub, log) = (Connectivity::new().with_loopback(), Log::new());
    let executor = with(every(LONG), |builder| {
        builder.connectivity(hub.clone()).listener(log.listener())
    });
    let (result, ()) = tokio::join!(executor.get(server.url("/")).send(), async {
        log.waits().await;
        hub.restored();
    });
    let response = result.unwrap();
    let report = response.retry_report().unwrap();
    assert_eq!(report.attempts[0].resumed.unwrap().by, WokenBy::Edge);
    assert!(report.end.unwrap().elapsed < LONG / 2);
}

#[tokio::test]
async fn a_call_that_fails_while_offline_waits_for_the_network() {
    let mut server = Server::closed();
    let (hub, log) = (on_wifi(), Log::new());
    hub.lost(1);
    let executor = with(soon(), |builder| {
        builder.connectivity(hub.clone()).listener(log.listener())
    });
    let (result, ()) = tokio::join!(executor.post(server.url("/")).send(), async {
        log.waits().await;
        server.open();
        hub.available(Network::usable(2));
    });
    let response = result.unwrap();
    let report = response.retry_report().unwrap();
    assert_eq!(report.attempts.len(), 1);
    assert!(!report.attempts[0].counted);
    assert_eq!(report.attempts[0].what, failed(FailureKind::ConnectRefused));
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn after_a_network_change_the_next_attempt_does_not_use_the_dead_connection() {
    let server = Server::start([]).await;
    let hub = on_wifi();
    let executor = with(soon().attempt_timeout(LONG), |builder| {
        builder.connectivity(hub.clone())
    });
    warm(&executor, &server).await;
    warm(&executor, &server).await;
    assert_eq!(server.connections(), 1); // it is pooled
    server.silence_connections();
    handover(&hub);
    let response = executor.post(server.url("/")).send().await.unwrap();
    assert_eq!(response.retry_report(), None); // at the first attempt
    assert_eq!(server.heard().last().unwrap().connection, 1);
}

#[tokio::test]
async fn without_a_network_change_the_dead_connection_is_used_and_hangs() {
    let server = Server::start([]).await;
    let executor = with(
        soon()
            .attempt_timeout(Duration::from_millis(300))
            .max_attempts(1),
        |builder| builder.connectivity(on_wifi()),
    );
    warm(&executor, &server).await;
    server.silence_connections();
    let error = executor.get(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::AttemptTimeout));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn an_attempt_that_hangs_on_the_old_network_is_begun_anew() {
    let server = Server::start([]).await;
    let (hub, log) = (on_wifi(), Log::new());
    let executor = with(soon(), |builder| {
        builder.connectivity(hub.clone()).listener(log.listener())
    });
    warm(&executor, &server).await;
    server.silence_connections();
    let call = tokio::spawn(executor.get(server.url("/")).send());
    until_waiting(&hub, 1).await;
    handover(&hub);
    let response = call.await.unwrap().unwrap();
    assert_eq!(response.status(), 200);
    let report = response.retry_report().unwrap();
    assert_eq!((report.abandoned, report.end.unwrap().counted), (1, 2));
    assert!(log.events().contains(&Event::AttemptAbandoned));
    assert_eq!(server.heard().last().unwrap().connection, 1);
}

#[tokio::test]
async fn a_post_that_may_have_been_sent_is_not_begun_anew() {
    let server = Server::start([]).await;
    let hub = on_wifi();
    let executor = with(
        soon().attempt_timeout(Duration::from_millis(500)),
        |builder| builder.connectivity(hub.clone()),
    );
    warm(&executor, &server).await;
    server.silence_connections();
    let call = tokio::spawn(executor.post(server.url("/")).send());
    until_waiting(&hub, 1).await;
    handover(&hub);
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.report().abandoned, 0);
    assert_eq!(error.kind(), Some(FailureKind::AttemptTimeout));
    assert!(error.may_have_arrived());
    assert_eq!((server.connections(), server.count()), (1, 1)); // the warm-up's
}

#[tokio::test]
async fn a_post_whose_client_never_had_a_connection_is_begun_anew_uncounted() {
    let authority = Authority::new();
    let config = authority.server("127.0.0.1");
    let server = Server::start_tls([Act::StallAtAccept], config).await;
    let hub = on_wifi();
    let executor = with(soon(), |builder| {
        let authority = authority.certificate().to_vec();
        builder.connectivity(hub.clone()).trust(authority)
    });
    let call = tokio::spawn(executor.post(server.url("/")).body("{}").send());
    until_waiting(&hub, 1).await;
    handover(&hub);
    let response = call.await.unwrap().unwrap();
    let report = response.retry_report().unwrap();
    assert_eq!((report.abandoned, report.end.unwrap().counted), (1, 1));
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn an_answer_whose_body_is_read_within_the_attempt_is_begun_anew_if_it_may_be_repeated() {
    let slowly = Act::Trickle(vec!["a", "b"], Duration::from_millis(200));
    for method in [reqwest::Method::GET, reqwest::Method::POST] {
        let server = Server::start([slowly.clone()]).await;
        let hub = on_wifi();
        let executor = with(soon(), |builder| builder.connectivity(hub.clone()));
        let request = executor.request(method.clone(), server.url("/"));
        let call = tokio::spawn(request.read_up_to(100).send());
        while server.count() == 0 {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await; // its head is there, of its body nothing
        handover(&hub);
        let response = call.await.unwrap().unwrap();
        let abandoned = response.retry_report().map(|report| report.abandoned);
        let text = response.text().await.unwrap();
        match method {
            reqwest::Method::GET => assert_eq!((abandoned, &*text), (Some(1), "ok")),
            _ => assert_eq!((abandoned, &*text), (None, "ab")),
        }
    }
}

#[tokio::test]
async fn dropping_a_call_ends_its_request_at_the_server() {
    for is_http2 in [false, true] {
        let server = Server::start([Act::Stall]).await;
        let hub = Connectivity::new().with_loopback();
        let executor = with(soon(), |builder| {
            let builder = builder.connectivity(hub.clone());
            if is_http2 {
                crate::common::http2(builder)
            } else {
                builder
            }
        });
        let call = tokio::spawn(executor.get(server.url("/")).send());
        server.in_flight(1).await;
        call.abort();
        let ended = tokio::time::timeout(Duration::from_millis(100), server.in_flight(0)).await;
        assert!(ended.is_ok(), "HTTP/2: {is_http2}");
        assert!(call.await.unwrap_err().is_cancelled());
        assert_eq!(hub.waiting(), 0);
    }
}

#[tokio::test]
async fn dropping_a_call_that_waits_leaves_nothing_behind() {
    let server = Server::start([Act::status(503)]).await;
    let (hub, log) = (Connectivity::new().with_loopback(), Log::new());
    let executor = with(every(LONG), |builder| {
        builder.connectivity(hub.clone()).listener(log.listener())
    });
    let call = tokio::spawn(executor.get(server.url("/")).send());
    log.waits().await;
    until_waiting(&hub, 1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert_eq!(hub.waiting(), 0);
    assert!(matches!(log.events().last(), Some(Event::Final(_))));
    assert_eq!(server.count(), 1);
}

/// Returns once this many calls listen to the hub.
async fn until_waiting(hub: &Connectivity, count: usize) {
    while hub.waiting() != count {
        tokio::task::yield_now().await;
    }
}

/// An offline phone, and a server whose first attempt dies: where the state is known the call stops.
async fn get_while_offline(hub: Connectivity, policy: Offline) -> Result<Response, HttpError> {
    let server = Server::start([Act::ResetBeforeAnswer]).await;
    hub.none_at_start();
    let executor = with(soon().offline(policy), |builder| builder.connectivity(hub));
    executor.get(server.url("/")).send().await
}

#[tokio::test]
async fn a_call_to_a_loopback_host_knows_nothing_of_the_network() {
    let hub = Connectivity::new();
    let response = get_while_offline(hub, Offline::FailFast).await.unwrap();
    assert_eq!(response.status(), 200);

    let told_of_both = Connectivity::new().with_loopback();
    let error = get_while_offline(told_of_both, Offline::FailFast)
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Some(Reason::Offline));
}

#[tokio::test]
async fn a_call_whose_policy_ignores_the_network_neither_stops_nor_parks() {
    let hub = Connectivity::new().with_loopback();
    let response = get_while_offline(hub.clone(), Offline::Ignore)
        .await
        .unwrap();
    let attempts = &response.retry_report().unwrap().attempts;
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].waits[0].why, WaitReason::Backoff);
    assert_eq!(hub.waiting(), 0);
}

#[tokio::test]
async fn a_parked_call_stops_when_the_network_is_switched_off_on_purpose() {
    let server = Server::closed();
    let (hub, log) = (on_wifi(), Log::new());
    hub.lost(1);
    let executor = with(soon(), |builder| {
        builder.connectivity(hub.clone()).listener(log.listener())
    });
    let (result, ()) = tokio::join!(executor.get(server.url("/")).send(), async {
        log.waits().await;
        hub.deliberate(true);
    });
    let error = result.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::Offline));
    assert!(error.report().end.unwrap().elapsed < Duration::from_secs(5));
}
