//! The layer for tower and the middleware for reqwest-middleware: what goes again, counted at a server, alone and around or within other layers.
#![cfg(all(feature = "tower", feature = "reqwest-middleware"))]

use std::pin::Pin;
use std::task::{Context, Poll};

use comeback::{
    Executor, HttpError, Method, Reason, RequestFacts, RetryError, RetryLayer, RetryMiddleware,
    Retryable, Verdict,
};
use reqwest::Response;
use reqwest::header::HeaderMap;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use tower_layer::Layer;
use tower_service::Service;

use crate::common::{KEY, executor, soon, with};
use crate::server::{Act, Heard, Server};

type Sending<E> = Pin<Box<dyn Future<Output = Result<Response, E>> + Send>>;

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

async fn breaking() -> Server {
    Server::start(vec![Act::ResetBeforeAnswer; 16]).await
}

/// A method and an address.
type Order = (&'static str, String);

/// Sends orders by a client of its own.
#[derive(Clone)]
struct Sends(reqwest::Client);

impl Service<Order> for Sends {
    type Response = Response;
    type Error = reqwest::Error;
    type Future = Sending<reqwest::Error>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), reqwest::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, (method, url): Order) -> Self::Future {
        Box::pin(self.0.request(method.parse().unwrap(), url).send())
    }
}

/// Sends them by an executor.
#[derive(Clone)]
struct Executes(Executor);

impl Service<Order> for Executes {
    type Response = Response;
    type Error = HttpError;
    type Future = Sending<HttpError>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), HttpError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, (method, url): Order) -> Self::Future {
        Box::pin(self.0.request(method.parse().unwrap(), url).send())
    }
}

fn facts(order: &Order) -> RequestFacts {
    RequestFacts::new(Method::parse(order.0))
}

#[tokio::test]
async fn a_tower_service_s_get_goes_again_and_its_post_does_not() {
    let layer = RetryLayer::new(soon().build().unwrap(), facts).classify(Verdict::of_reqwest);
    let mut service = layer.layer(Sends(client()));
    let server = Server::start([Act::status(503), Act::ResetBeforeAnswer]).await;
    let answer = service.call(("GET", server.url("/"))).await;
    assert_eq!(
        (answer.unwrap().status().as_u16(), server.count()),
        (200, 3)
    );

    let server = breaking().await;
    let error = service.call(("POST", server.url("/"))).await.unwrap_err();
    assert_eq!((error.reason(), server.count()), (Reason::NotRepeatable, 1));
    let server = Server::start(vec![Act::status(503); 8]).await;
    let answer = service.call(("POST", server.url("/"))).await;
    assert_eq!(
        (answer.unwrap().status().as_u16(), server.count()),
        (503, 1)
    );
}

#[tokio::test]
async fn a_tower_service_over_an_executor_acts_alone() {
    let server = Server::start(vec![Act::status(503); 32]).await;
    let layer = RetryLayer::new(soon().build().unwrap(), facts);
    let layer = layer.classify(|result: &Result<Response, HttpError>| match result {
        Ok(response) if response.status() != 503 => Verdict::ANSWER,
        _ => Verdict::IN_DOUBT,
    });
    let mut service = layer.layer(Executes(executor(soon())));
    let answer = service.call(("GET", server.url("/"))).await;
    assert_eq!(
        (answer.unwrap().status().as_u16(), server.count()),
        (503, 4)
    );

    // The app says less than what the executor knows.
    let server = breaking().await;
    let policy = soon().build().unwrap();
    let layer = RetryLayer::new(policy, |_: &Order| RequestFacts::new(Method::Get));
    let mut service = layer.layer(Executes(executor(soon())));
    let error = service.call(("POST", server.url("/"))).await.unwrap_err();
    assert_eq!((error.reason(), server.count()), (Reason::NotRepeatable, 1));
}

#[tokio::test]
async fn a_tower_service_within_an_executor_s_hook_sends_its_post_once() {
    let (tokens, server) = (breaking().await, Server::start([]).await);
    let layer = RetryLayer::new(soon().build().unwrap(), |_: &Order| RequestFacts {
        has_key: true, // of this call; the hook's next one may have another
        ..RequestFacts::new(Method::Post)
    });
    let service = layer.classify(Verdict::of_reqwest).layer(Sends(client()));
    let url = tokens.url("/");
    let refreshing = with(soon(), |builder| {
        builder.before_attempt(move |_| {
            let post = service.clone().call(("POST", url.clone()));
            async move {
                let made = post.await.map(|_| HeaderMap::new());
                made.map_err(RetryError::into_last).map_err(Option::unwrap)
            }
        })
    });
    let error = refreshing.get(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NotRepeatable));
    assert_eq!((tokens.count(), server.count()), (1, 0));
}

fn with_retries() -> ClientWithMiddleware {
    let retries = RetryMiddleware::new(soon().build().unwrap());
    ClientBuilder::new(client()).with(retries).build()
}

#[tokio::test]
async fn the_middleware_repeats_a_get_and_a_post_with_a_key_and_no_other_post() {
    let client = with_retries();
    let server = Server::start([Act::status(503), Act::ResetBeforeAnswer]).await;
    let answer = client.get(server.url("/")).send().await;
    assert_eq!(
        (answer.unwrap().status().as_u16(), server.count()),
        (200, 3)
    );

    let server = Server::start([Act::status(503), Act::ResetBeforeAnswer]).await;
    let keyed = client.post(server.url("/")).header(KEY, "1").body("order");
    assert_eq!(keyed.send().await.unwrap().status(), 200);
    let is_whole = |heard: &Heard| heard.body.as_ref().is_some_and(|body| body == "order");
    assert_eq!(server.count(), 3);
    assert!(server.heard().iter().all(is_whole));

    let server = breaking().await;
    let error = client.post(server.url("/")).body("order").send().await;
    assert!(matches!(error, Err(reqwest_middleware::Error::Reqwest(_))));
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn a_stream_goes_through_the_middleware_once() {
    let server = Server::start(vec![Act::status(503); 8]).await;
    let body = reqwest::Body::wrap(http_body_util::Full::new(bytes::Bytes::from("once")));
    let answer = with_retries().put(server.url("/")).body(body).send().await;
    assert_eq!(
        (answer.unwrap().status().as_u16(), server.count()),
        (503, 1)
    );
}

#[tokio::test]
async fn within_a_block_the_middleware_sends_its_post_once() {
    let client = with_retries();
    let policy = soon().build().unwrap();
    for key in [None, Some("1")] {
        let server = breaking().await;
        let post = || {
            let request = client.post(server.url("/"));
            match key {
                None => request.send(),
                Some(key) => request.header(KEY, key).send(),
            }
        };
        let error = post.retry(&policy).await.unwrap_err();
        assert_eq!((error.reason(), server.count()), (Reason::NotRepeatable, 1));
    }
}
