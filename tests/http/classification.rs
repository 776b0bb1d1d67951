//! Which kind each thing that can go wrong on a socket has, and what a certificate's fault means.

use std::sync::Arc;
use std::time::Duration;

use comeback::{Event, ExecutorBuilder, FailureKind, OutcomeClass, Reason};
use reqwest::Version;
use reqwest::dns::{Name, Resolve, Resolving};

use crate::authority::Authority;
use crate::common::{self, Log, failed, soon, with};
use crate::server::{Act, Server};

/// What a GET on this server fails with at its first and only attempt.
async fn kind(
    server: &Server,
    settings: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder,
) -> Option<FailureKind> {
    let executor = with(soon().max_attempts(1), settings);
    match executor.get(server.url("/")).send().await {
        Ok(response) => panic!("{response:?}"),
        Err(error) => {
            let events = error.report().attempts.len();
            assert_eq!(events, 1, "{error:?}");
            error.kind()
        }
    }
}

async fn http2_kind_of(act: Act) -> Option<FailureKind> {
    kind(&Server::start([act]).await, common::http2).await
}

#[tokio::test]
async fn what_a_connection_comes_to_is_told_by_type() {
    let refused = Server::closed();
    let nothing = |builder: ExecutorBuilder| builder;
    assert_eq!(
        kind(&refused, nothing).await,
        Some(FailureKind::ConnectRefused)
    );
    for (act, expected) in [
        (Act::ResetBeforeAnswer, FailureKind::Reset),
        (Act::CloseBeforeAnswer, FailureKind::UnexpectedEnd),
        (Act::HalfHead, FailureKind::UnexpectedEnd),
        (Act::Junk, FailureKind::Protocol),
        (Act::redirect(302, "/"), FailureKind::Protocol), // a circle
    ] {
        let server = Server::start((0..12).map(|_| act.clone())).await;
        assert_eq!(kind(&server, nothing).await, Some(expected), "{act:?}");
    }
    assert_eq!(
        http2_kind_of(Act::ResetStream(h2::Reason::REFUSED_STREAM.into())).await,
        Some(FailureKind::RefusedStream)
    );
    assert_eq!(
        http2_kind_of(Act::GoAway).await,
        Some(FailureKind::RefusedStream)
    );
    for reason in [
        h2::Reason::CANCEL,
        h2::Reason::INTERNAL_ERROR,
        h2::Reason::ENHANCE_YOUR_CALM,
    ] {
        assert_eq!(
            http2_kind_of(Act::ResetStream(reason.into())).await,
            Some(FailureKind::StreamReset),
            "{reason:?}"
        );
    }
}

#[tokio::test]
async fn the_clients_own_time_outs_are_told_from_each_other() {
    let soon_out = Duration::from_millis(200);
    let reading =
        |builder: ExecutorBuilder| builder.client(move |client| client.read_timeout(soon_out));
    let server = Server::start([Act::Stall]).await;
    assert_eq!(kind(&server, reading).await, Some(FailureKind::ReadTimeout));
    let authority = Authority::new();
    let config = authority.server("127.0.0.1");
    let server = Server::start_tls([Act::StallAtAccept], config).await;
    let connecting =
        |builder: ExecutorBuilder| builder.client(move |client| client.connect_timeout(soon_out));
    assert_eq!(
        kind(&server, connecting).await,
        Some(FailureKind::ConnectTimeout)
    );
}

/// Knows no name.
struct Nowhere;

impl Resolve for Nowhere {
    fn resolve(&self, _name: Name) -> Resolving {
        Box::pin(async { Err("there is no such host".into()) })
    }
}

#[tokio::test]
async fn a_failed_look_up_is_one_and_was_never_sent() {
    let log = Log::new();
    let executor = with(soon().max_attempts(2), |builder| {
        builder
            .listener(log.listener())
            .client(|client| client.dns_resolver(Arc::new(Nowhere)))
    });
    let request = executor.post("http://nowhere.invalid/");
    assert!(request.send().await.is_err());
    assert_eq!(log.failures(), [failed(FailureKind::Dns); 2]);
}

#[tokio::test]
async fn a_wrong_authority_is_permanent() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let server = Server::start_tls([], theirs.server("127.0.0.1")).await;
    let executor = with(soon(), |builder| builder.trust(ours.certificate().to_vec()));
    let error = executor.get(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::Certificate), "{error:?}");
    assert_eq!(error.reason(), Some(Reason::Permanent));
    assert_eq!((server.connections(), server.count()), (1, 0));
}

#[tokio::test]
async fn an_authority_nobody_named_is_permanent() {
    let authority = Authority::new();
    let server = Server::start_tls([], authority.server("127.0.0.1")).await;
    let executor = with(soon(), |builder| builder);
    let error = executor.get(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::Certificate), "{error:?}");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_certificate_of_another_name_is_permanent() {
    let authority = Authority::new();
    let server = Server::start_tls([], authority.server("example.org")).await;
    let executor = with(soon(), |builder| {
        builder.trust(authority.certificate().to_vec())
    });
    let error = executor.get(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::Pinning), "{error:?}");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn the_right_authority_is_trusted_and_http2_is_chosen() {
    let authority = Authority::new();
    let server = Server::start_tls([Act::status(503)], authority.server("127.0.0.1")).await;
    let executor = with(soon(), |builder| {
        builder.trust(authority.certificate().to_vec())
    });
    let response = executor.get(server.url("/")).send().await.unwrap();
    assert_eq!(response.version(), reqwest::Version::HTTP_2);
    assert_eq!((server.connections(), server.count()), (1, 2)); // the connection stays in use
}

#[tokio::test]
async fn what_tls_offers_decides_on_http2() {
    let authority = Authority::new();
    let server = Server::start_tls([], authority.server("127.0.0.1")).await;
    let version = async |settings: fn(ExecutorBuilder) -> ExecutorBuilder, offer: Option<&str>| {
        let executor = with(soon(), |builder| match offer {
            None => settings(builder).trust(authority.certificate().to_vec()),
            Some(offer) => {
                let mut roots = rustls::RootCertStore::empty();
                roots.add(authority.certificate()).unwrap();
                let provider = Arc::new(rustls::crypto::ring::default_provider());
                let mut config = rustls::ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()
                    .unwrap()
                    .with_root_certificates(roots)
                    .with_no_client_auth();
                config.alpn_protocols = vec![offer.into()];
                settings(builder).tls(config)
            }
        });
        executor
            .get(server.url("/"))
            .send()
            .await
            .unwrap()
            .version()
    };
    let http1_only = |builder: ExecutorBuilder| builder.client(|client| client.http1_only());
    assert_eq!(version(http1_only, None).await, Version::HTTP_2);
    assert_eq!(
        version(|builder| builder, Some("http/1.1")).await,
        Version::HTTP_11
    );
}

#[tokio::test]
async fn a_handshake_that_is_broken_off_was_never_sent() {
    let authority = Authority::new();
    let config = authority.server("127.0.0.1");
    let server = Server::start_tls([Act::CloseInHandshake, Act::ResetAtAccept], config).await;
    let log = Log::new();
    let executor = with(soon(), |builder| {
        let authority = authority.certificate().to_vec();
        builder.listener(log.listener()).trust(authority)
    });
    let response = executor.post(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(log.failures(), [failed(FailureKind::TlsBrokenOff); 2]);
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_was_never_sent_anything() {
    let server = Server::start([]).await;
    let executor = with(soon().max_attempts(1), |builder| builder);
    let url = server.url("/").replace("http:", "https:");
    let error = executor.get(url).send().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::TlsBrokenOff), "{error:?}");
}

#[tokio::test]
async fn after_a_redirect_a_refused_connection_is_no_proof() {
    let refused = Server::closed();
    let server = Server::start([Act::redirect(303, &refused.url("/"))]).await;
    let log = Log::new();
    let executor = with(soon(), |builder| builder.listener(log.listener()));
    let error = executor.post(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NotRepeatable), "{error:?}");
    let Some(Event::AttemptFailed { class, what, .. }) = log.events().first().copied() else {
        panic!("{:?}", log.events());
    };
    assert_eq!(
        (class, what),
        (OutcomeClass::InDoubt, failed(FailureKind::ConnectRefused))
    );
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn after_a_redirect_of_a_streamed_body_too() {
    let refused = Server::closed();
    let server = Server::start([Act::redirect(303, &refused.url("/"))]).await;
    let executor = with(soon(), |builder| builder);
    let request = executor
        .post(server.url("/"))
        .body_from(|| reqwest::Body::wrap(String::from("order")));
    let error = request.send().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::NotRepeatable), "{error:?}");
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn reset_before_a_byte_was_read_a_post_is_heard_at_most_once() {
    for _ in 0..20 {
        let server = Server::start([Act::ResetAtAccept]).await;
        let executor = with(soon(), |builder| builder);
        let _ = executor.post(server.url("/")).body("{}").send().await;
        assert!(server.count() <= 1);
        let server = Server::start([Act::ResetAtAccept]).await;
        let response = executor.get(server.url("/")).send().await.unwrap();
        assert_eq!(response.status(), 200);
    }
}

#[tokio::test]
async fn what_is_no_authority_is_refused_when_the_executor_is_built() {
    let error = comeback::Executor::builder()
        .trust(*b"no certificate")
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("`trust`"), "{error}");
}

#[tokio::test]
async fn reset_before_its_first_stream_an_http2_connection_carries_a_post_at_most_once() {
    for _ in 0..10 {
        let server = Server::start([Act::ResetAtAccept]).await;
        let executor = with(soon(), common::http2);
        let _ = executor.post(server.url("/")).body("{}").send().await;
        assert!(server.count() <= 1);
    }
}

#[tokio::test]
async fn a_time_out_while_writing_is_in_doubt_as_one_while_reading() {
    let server = Server::start([Act::StallAtAccept]).await;
    let executor = with(soon(), |builder| {
        builder.client(|client| client.read_timeout(Duration::from_millis(300)))
    });
    let request = executor.post(server.url("/")).body(vec![0; 20_000_000]);
    let error = request.send().await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::ReadTimeout), "{error:?}");
    assert_eq!(error.reason(), Some(Reason::NotRepeatable));
}

/// A layer of the app's own under which no connect succeeds.
#[derive(Clone)]
struct Closed<S>(S);

impl<S, D> tower_service::Service<D> for Closed<S>
where
    S: tower_service::Service<D, Error = Box<dyn std::error::Error + Send + Sync>>,
    S::Response: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = std::future::Ready<Result<S::Response, S::Error>>;

    fn poll_ready(
        &mut self,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, _: D) -> Self::Future {
        std::future::ready(Err("the app allows no connection".into()))
    }
}

#[derive(Clone)]
struct ClosedLayer;

impl<S> tower_layer::Layer<S> for ClosedLayer {
    type Service = Closed<S>;

    fn layer(&self, inner: S) -> Closed<S> {
        Closed(inner)
    }
}

#[tokio::test]
async fn a_connect_that_fails_in_a_layer_of_the_apps_was_never_sent() {
    let server = Server::start([]).await;
    let kind = kind(&server, |builder| {
        builder.client(|client| client.connector_layer(ClosedLayer))
    });
    assert_eq!(kind.await, Some(FailureKind::BeforeHeaders));
    assert_eq!(server.connections(), 0);
}
