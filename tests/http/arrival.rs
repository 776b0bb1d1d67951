//! Whether a request may have arrived: false only with proof about the whole attempt, whatever the last error's type says.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use comeback::{ExecutorBuilder, FailureKind, HttpError, OutcomeClass, Reason};
use http_body_util::{BodyExt, Full};
use hyper::Method;
use hyper::body::Frame;
use reqwest::Body;

use crate::authority::Authority;
use crate::common::{self, Log, executor, soon, with};
use crate::server::{Act, Server};

/// A keyless POST that fails, and how often the server heard of it.
async fn post(
    server: &Server,
    settings: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
) -> (HttpError, usize) {
    let request = with(soon(), settings).post(server.url("/"));
    let request = request.body("{}").read_up_to(100);
    let error = request.send().await.unwrap_err();
    (error, server.count())
}

#[tokio::test]
async fn after_a_failure_that_is_permanent_a_request_that_was_sent_may_have_arrived() {
    let redirect = Act::redirect(307, "/");
    for (act, is_http2) in [
        (Act::Junk, false),
        (Act::Junk, true), // breaks the protocol of HTTP/2
        (Act::HalfBody, false),
        (Act::HalfBody, true),
        (redirect.clone(), false), // in a circle
        (redirect, true),
    ] {
        let server = Server::start(vec![act.clone(); 12]).await;
        let (error, heard) = post(&server, |builder| match is_http2 {
            true => common::http2(builder),
            false => builder,
        })
        .await;
        assert!(heard >= 1);
        assert!(
            error.may_have_arrived(),
            "{act:?}, HTTP/2 {is_http2}: {error:?}"
        );
        assert!(error.report().may_have_arrived());
    }
}

#[tokio::test]
async fn after_a_failure_before_the_connection_it_has_not_arrived() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let untrusted = Server::start_tls([], theirs.server("127.0.0.1")).await;
    let (error, heard) = post(&untrusted, |builder| {
        builder.trust(ours.certificate().to_vec())
    })
    .await;
    assert_eq!(error.kind(), Some(FailureKind::Certificate));
    assert_eq!((heard, error.may_have_arrived()), (0, false));
    let (error, heard) = post(&Server::closed(), |builder| builder).await;
    assert_eq!((heard, error.may_have_arrived()), (0, false));
}

#[tokio::test]
async fn a_request_that_cannot_be_made_has_not_arrived() {
    let server = Server::start([]).await;
    let invalid = executor(soon()).post("no address").send().await;
    assert!(!invalid.unwrap_err().may_have_arrived());
    let broken = executor(soon()).post(server.url("/"));
    let broken = broken.body_from(|| panic!("it cannot be opened"));
    assert!(!broken.send().await.unwrap_err().may_have_arrived());
    let unsafe_ = with(soon(), |builder| {
        builder.client(|client| client.https_only(true))
    });
    let refused = unsafe_.post(server.url("/")).send().await;
    assert!(!refused.unwrap_err().may_have_arrived());
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn a_stream_that_is_refused_has_not_arrived_and_one_that_is_reset_may_have() {
    for (code, arrived) in [
        (h2::Reason::REFUSED_STREAM, false),
        (h2::Reason::CANCEL, true),
    ] {
        let server = Server::start(vec![Act::ResetStream(code.into()); 8]).await;
        let (error, _) = post(&server, common::http2).await;
        assert_eq!(error.may_have_arrived(), arrived, "{error:?}");
    }
}

/// A body that can be read once, of which reqwest shows no first hop.
fn stream() -> Body {
    Body::wrap(Full::new(Bytes::from("order")).map_err(|never: Infallible| match never {}))
}

#[tokio::test]
async fn a_redirect_to_the_same_address_whose_stream_is_refused_is_no_proof() {
    let refused = Act::ResetStream(h2::Reason::REFUSED_STREAM.into());
    let server = Server::start([Act::redirect(303, "/"), refused]).await;
    let log = Log::new();
    let executor = with(soon().repeat(comeback::Repeat::Never), |builder| {
        common::http2(builder).listener(log.listener())
    });
    let request = executor.get(server.url("/")).body_from(stream);
    let error = request.send().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::RefusedStream));
    assert_eq!(error.reason(), Some(Reason::NotRepeatable), "{error:?}");
    assert!(error.may_have_arrived());
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn a_redirect_to_where_the_client_does_not_go_is_no_proof() {
    for location in ["ftp://127.0.0.1/", "http://127.0.0.1:1/"] {
        for is_stream in [false, true] {
            let server = Server::start([Act::redirect(303, location)]).await;
            let request = executor(soon()).post(server.url("/"));
            let request = match is_stream {
                true => request.body_from(stream),
                false => request.body("order"),
            };
            let error = request.send().await.unwrap_err();
            assert!(
                error.may_have_arrived(),
                "{location}, {is_stream}: {error:?}"
            );
            assert_eq!(server.count(), 1);
        }
    }
}

/// The error of another request, by a client of the app's own.
async fn refused_elsewhere() -> reqwest::Error {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let refused = reqwest::get(Server::closed().url("/")).await.unwrap_err();
    assert!(refused.is_connect());
    refused
}

/// A body that is fetched from elsewhere and breaks off half-way, because elsewhere is refused.
struct Fetched(u8, Option<reqwest::Error>);

impl hyper::body::Body for Fetched {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        self.0 += 1;
        Poll::Ready(match self.0 {
            1 => Some(Ok(Frame::data(Bytes::from("half")))),
            _ => self.1.take().map(Err),
        })
    }
}

#[tokio::test]
async fn the_error_of_a_connection_that_the_body_comes_from_is_no_proof() {
    let refused = refused_elsewhere().await;
    let server = Server::start([]).await;
    let request = executor(soon()).post(server.url("/"));
    let request = request.body(Body::wrap(Fetched(0, Some(refused))));
    let error = request.send().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::RequestBody));
    assert!(error.may_have_arrived(), "{error:?}");
}

#[tokio::test]
async fn an_error_of_the_apps_redirect_policy_is_no_proof_whatever_it_wraps() {
    let server = Server::start(vec![Act::redirect(303, "/there"); 4]).await;
    let refused = refused_elsewhere().await;
    let refused = std::sync::Arc::new(std::sync::Mutex::new(Some(refused)));
    let executor = with(soon(), |builder| {
        builder.client(move |client| {
            let refused = refused.clone();
            let policy = reqwest::redirect::Policy::custom(move |attempt| {
                match refused.lock().unwrap().take() {
                    Some(error) => attempt.error(error),
                    None => attempt.stop(),
                }
            });
            client.redirect(policy)
        })
    });
    let request = executor.post(server.url("/")).body_from(stream);
    let error = request.send().await.unwrap_err();
    assert!(error.may_have_arrived(), "{error:?}");
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn the_apps_own_opinion_is_no_proof() {
    let server = Server::start([Act::ResetBeforeAnswer]).await;
    let executor = with(soon(), |builder| {
        builder.classify(|_, _| Some(OutcomeClass::NeverSent))
    });
    let error = executor.post(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NotRepeatable));
    assert!(error.may_have_arrived());
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn an_early_attempt_that_may_have_arrived_counts_after_later_ones_that_did_not() {
    let mut server = Server::start([Act::CloseBeforeAnswer]).await;
    let log = Log::new();
    let executor = with(
        common::every(std::time::Duration::from_millis(300)),
        |builder| builder.listener(log.listener()),
    );
    let request = executor.request(Method::PUT, server.url("/"));
    let url = server.url("/");
    let (sent, ()) = tokio::join!(request.send(), async {
        log.waits().await;
        server.close().await;
    });
    let error = sent.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::ConnectRefused));
    assert!(error.may_have_arrived());
    let error = executor.put(url).send().await.unwrap_err();
    assert!(!error.may_have_arrived());
}
