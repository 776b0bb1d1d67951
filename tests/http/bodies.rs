//! Request bodies: the same bytes on every attempt, or no other attempt.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use comeback::{FailureKind, Reason, Reported};
use http_body_util::{BodyExt, Full};
use hyper::body::Frame;
use reqwest::Body;

use crate::common::{self, KEY, Log, every, executor, reason, soon};
use crate::server::{Act, Server};

/// A body that can be read once.
fn stream(text: &'static str) -> Body {
    Body::wrap(Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {}))
}

/// A body that fails by itself, after its first half.
struct Broken(u8);

impl hyper::body::Body for Broken {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0 += 1;
        Poll::Ready(Some(match self.0 {
            1 => Ok(Frame::data(Bytes::from("half"))),
            _ => Err(io::ErrorKind::ConnectionReset.into()), // as the network's would be
        }))
    }
}

fn arrived(server: &Server) -> Vec<Option<Bytes>> {
    server.heard().into_iter().map(|one| one.body).collect()
}

#[tokio::test]
async fn bytes_are_equal_on_every_attempt() {
    let body: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    let server = Server::start([Act::status(503), Act::ResetBeforeAnswer]).await;
    let request = executor(soon()).put(server.url("/")).body(body.clone());
    assert_eq!(request.send().await.unwrap().status(), 200);
    assert_eq!(arrived(&server), vec![Some(Bytes::from(body)); 3]);
}

#[tokio::test]
async fn a_factory_makes_the_body_of_each_attempt() {
    let server = Server::start([Act::status(503), Act::ResetBeforeAnswer]).await;
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let request = executor(soon()).put(server.url("/")).body_from(move || {
        count.fetch_add(1, Ordering::SeqCst);
        stream("all of it")
    });
    assert_eq!(request.send().await.unwrap().status(), 200);
    assert_eq!(arrived(&server), vec![Some(Bytes::from("all of it")); 3]);
    assert_eq!(made.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_body_that_can_be_read_once_is_sent_once() {
    let server = Server::start([Act::status(503)]).await;
    let request = executor(soon())
        .post(server.url("/"))
        .header(KEY, "order-7")
        .body(stream("once"));
    let result = request.send().await;
    assert_eq!(reason(&result), Some(Reason::BodyNotReplayable));
    assert_eq!(result.unwrap().status(), 503);
    assert_eq!(arrived(&server), [Some(Bytes::from("once"))]);
}

#[tokio::test]
async fn a_body_that_can_be_read_once_and_succeeds_is_no_trouble() {
    let server = Server::start([]).await;
    let request = executor(soon()).post(server.url("/")).body(stream("once"));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.retry_report(), None);
    let heard = server.heard();
    assert_eq!(heard[0].body, Some(Bytes::from("once")));
    assert_eq!(heard[0].header("content-length"), Some("4"));
}

#[tokio::test]
async fn a_body_that_nobody_asked_for_a_byte_goes_out_later() {
    let mut server = Server::closed();
    let log = Log::new();
    let executor = common::with(every(Duration::from_millis(300)), |builder| {
        builder.listener(log.listener())
    });
    let request = executor.post(server.url("/")).body(stream("once"));
    let (result, ()) = tokio::join!(request.send(), async {
        log.waits().await;
        server.open();
    });
    assert_eq!(result.unwrap().status(), 200);
    assert_eq!(arrived(&server), [Some(Bytes::from("once"))]);
}

#[tokio::test]
async fn what_the_body_itself_threw_is_permanent() {
    for is_http2 in [false, true] {
        let server = Server::start([]).await;
        let executor = common::with(soon(), |builder| {
            if is_http2 {
                common::http2(builder)
            } else {
                builder
            }
        });
        let request = executor
            .put(server.url("/"))
            .body_from(|| Body::wrap(Broken(0)));
        let error = request.send().await.unwrap_err();
        assert_eq!(error.kind(), Some(FailureKind::RequestBody), "{error:?}");
        assert_eq!(error.reason(), Some(Reason::Permanent));
        assert!(server.count() <= 1); // its head may not have left
    }
}

#[tokio::test]
async fn a_factory_that_panics_ends_the_call_before_anything_is_sent() {
    let server = Server::start([]).await;
    let request = executor(soon())
        .put(server.url("/"))
        .body_from(|| panic!("the file is gone"));
    let error = request.send().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::RequestBody));
    assert_eq!(server.connections(), 0);
}
