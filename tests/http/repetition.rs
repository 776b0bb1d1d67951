//! What may be repeated (docs/design.md), on real sockets: what goes wrong × method × key, and how often the server hears of it.

use std::time::Duration;

use comeback::{Executor, Reason, Retryable, Round};
use hyper::Method;

use crate::authority::Authority;
use crate::common::{self, KEY, Log, soon};
use crate::server::{Act, Server};

/// What an effect tells about the request it happened to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Promise {
    NeverSent,
    InDoubt,
    Status,
    Answered,
    Permanent,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Effect {
    ConnectionRefused,
    TlsBrokenOff,
    Http2RefusedStream,
    Http2GoAway,
    ResetAfterHead,
    ResetInRequestBody,
    ResetBeforeAnswer,
    ClosedBeforeAnswer,
    HalfResponseHead,
    StalledBeforeAnswer,
    Http2StreamReset,
    Http2CancelNobodyAskedFor,
    Http2ClosedBeforeAnswer,
    PooledResetBeforeAnswer,
    PooledClosedWhileIdle,
    RedirectedThenRefused,
    Status503,
    Status503RetryAfter0,
    Status408,
    HalfResponseBody,
    NoHttp,
}

impl Effect {
    const ALL: [Effect; 21] = [
        Effect::ConnectionRefused,
        Effect::TlsBrokenOff,
        Effect::Http2RefusedStream,
        Effect::Http2GoAway,
        Effect::ResetAfterHead,
        Effect::ResetInRequestBody,
        Effect::ResetBeforeAnswer,
        Effect::ClosedBeforeAnswer,
        Effect::HalfResponseHead,
        Effect::StalledBeforeAnswer,
        Effect::Http2StreamReset,
        Effect::Http2CancelNobodyAskedFor,
        Effect::Http2ClosedBeforeAnswer,
        Effect::PooledResetBeforeAnswer,
        Effect::PooledClosedWhileIdle,
        Effect::RedirectedThenRefused,
        Effect::Status503,
        Effect::Status503RetryAfter0,
        Effect::Status408,
        Effect::HalfResponseBody,
        Effect::NoHttp,
    ];

    fn promise(self) -> Promise {
        match self {
            Effect::ConnectionRefused
            | Effect::TlsBrokenOff
            | Effect::Http2RefusedStream
            | Effect::Http2GoAway => Promise::NeverSent,
            Effect::Status503 | Effect::Status503RetryAfter0 | Effect::Status408 => Promise::Status,
            Effect::HalfResponseBody | Effect::PooledClosedWhileIdle => Promise::Answered,
            Effect::NoHttp => Promise::Permanent,
            _ => Promise::InDoubt,
        }
    }

    /// Whether the server hears of the request this happened to.
    fn is_heard(self) -> bool {
        !matches!(
            self,
            Effect::ConnectionRefused | Effect::TlsBrokenOff | Effect::Http2GoAway
        )
    }

    fn is_http2(self) -> bool {
        matches!(
            self,
            Effect::Http2RefusedStream
                | Effect::Http2GoAway
                | Effect::Http2StreamReset
                | Effect::Http2CancelNobodyAskedFor
                | Effect::Http2ClosedBeforeAnswer
        )
    }

    fn needs_warm_pool(self) -> bool {
        matches!(
            self,
            Effect::PooledResetBeforeAnswer | Effect::PooledClosedWhileIdle
        )
    }

    fn act(self, refused: &str) -> Option<Act> {
        Some(match self {
            Effect::ConnectionRefused | Effect::PooledClosedWhileIdle => return None,
            Effect::TlsBrokenOff => Act::CloseInHandshake,
            Effect::Http2RefusedStream => Act::ResetStream(h2::Reason::REFUSED_STREAM.into()),
            Effect::Http2GoAway => Act::GoAway,
            Effect::ResetAfterHead => Act::ResetAfterHead,
            Effect::ResetInRequestBody => Act::ResetInBody,
            Effect::ResetBeforeAnswer
            | Effect::PooledResetBeforeAnswer
            | Effect::Http2ClosedBeforeAnswer => Act::ResetBeforeAnswer,
            Effect::ClosedBeforeAnswer => Act::CloseBeforeAnswer,
            Effect::HalfResponseHead => Act::HalfHead,
            Effect::StalledBeforeAnswer => Act::Stall,
            Effect::Http2StreamReset => Act::ResetStream(h2::Reason::INTERNAL_ERROR.into()),
            Effect::Http2CancelNobodyAskedFor => Act::ResetStream(h2::Reason::CANCEL.into()),
            Effect::RedirectedThenRefused => Act::redirect(303, refused),
            Effect::Status503 => Act::status(503),
            Effect::Status503RetryAfter0 => Act::retry_after(503, "0"),
            Effect::Status408 => Act::status(408),
            Effect::HalfResponseBody => Act::HalfBody,
            Effect::NoHttp => Act::Junk,
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Sort {
    method: &'static str,
    has_body: bool,
    is_conditional: bool,
    /// What may be repeated: without a key, and with one.
    may_repeat: bool,
    may_repeat_keyed: bool,
}

const fn sort(method: &'static str, has_body: bool, may_repeat: bool) -> Sort {
    Sort {
        method,
        has_body,
        is_conditional: false,
        may_repeat,
        may_repeat_keyed: true,
    }
}

const SORTS: [Sort; 9] = [
    sort("GET", false, true),
    sort("HEAD", false, true),
    sort("PUT", true, true),
    sort("DELETE", false, true),
    Sort {
        is_conditional: true,
        ..sort("PUT", true, false)
    },
    Sort {
        is_conditional: true,
        ..sort("DELETE", false, false)
    },
    sort("POST", true, false),
    sort("PATCH", true, false),
    Sort {
        may_repeat_keyed: false,
        ..sort("LINK", false, false)
    },
];

const BODY: &str = "amount=100&currency=EUR";

fn expected(effect: Effect, sort: Sort, has_key: bool) -> usize {
    let heard = usize::from(effect.is_heard());
    let may_repeat = if has_key {
        sort.may_repeat_keyed
    } else {
        sort.may_repeat
    };
    let goes_again = match effect.promise() {
        Promise::NeverSent => true,
        Promise::InDoubt | Promise::Status => may_repeat,
        Promise::Answered | Promise::Permanent => false,
    };
    heard + usize::from(goes_again)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_hears_of_a_request_as_often_as_the_table_says() {
    let mut wrong = Vec::new();
    let mut cells = 0;
    for effect in Effect::ALL {
        let mut running = tokio::task::JoinSet::new();
        for sort in SORTS {
            if effect == Effect::ResetInRequestBody && !sort.has_body {
                continue;
            }
            for has_key in [false, true] {
                running.spawn(cell(effect, sort, has_key));
            }
        }
        while let Some(cell) = running.join_next().await {
            cells += 1;
            wrong.extend(cell.unwrap());
        }
    }
    assert_eq!(cells, 20 * 18 + 8);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One cell; what is wrong with it.
async fn cell(effect: Effect, sort: Sort, has_key: bool) -> Option<String> {
    let authority = Authority::new();
    let mut server = match effect {
        Effect::TlsBrokenOff => Server::start_tls([], authority.server("127.0.0.1")).await,
        Effect::ConnectionRefused => Server::closed(),
        _ => Server::start([]).await,
    };
    let log = Log::new();
    let executor = executor(effect, &log, &authority);
    if effect.needs_warm_pool() {
        let response = executor.get(server.url("/warm")).send().await.unwrap();
        response.bytes().await.unwrap();
    }
    let before = server.count();
    let refused = Server::closed();
    server.then(effect.act(&refused.url("/")));
    if effect == Effect::PooledClosedWhileIdle {
        server.close_connections();
        // The client is told by its socket; until it is, this is no idle connection that was closed.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }

    let method = Method::from_bytes(sort.method.as_bytes()).unwrap();
    let mut request = executor.request(method, server.url("/"));
    if sort.has_body {
        request = request.body(BODY);
    }
    if sort.is_conditional {
        request = request.header("if-match", "\"v1\"");
    }
    if has_key {
        request = request.header(KEY, "the caller's");
    }
    let call = request.send();
    let result = if effect == Effect::ConnectionRefused {
        tokio::join!(call, async {
            log.waits().await;
            server.open();
        })
        .0
    } else {
        call.await
    };

    let heard = server.heard().split_off(before);
    let count = expected(effect, sort, has_key);
    let body = if sort.has_body { BODY } else { "" };
    let whole = heard
        .iter()
        .filter_map(|request| request.body.as_ref())
        .all(|arrived| arrived == body);
    let keyed = heard
        .iter()
        .all(|request| request.header(KEY) == has_key.then_some("the caller's"));
    let right = heard.len() == count && whole && keyed;
    (!right).then(|| {
        format!(
            "{effect:?}, {sort:?}, key {has_key}: heard {} instead of {count}: {heard:?}\n  {}",
            heard.len(),
            common::outcome(&result)
        )
    })
}

fn executor(effect: Effect, log: &Log, authority: &Authority) -> Executor {
    let policy = match effect {
        // The server comes back within this wait.
        Effect::ConnectionRefused => common::every(Duration::from_secs(1)),
        Effect::StalledBeforeAnswer => common::soon().attempt_timeout(Duration::from_secs(2)),
        _ => common::soon(),
    };
    common::with(policy, |builder| {
        let builder = builder
            .listener(log.listener())
            .trust(authority.certificate().to_vec());
        if effect.is_http2() {
            common::http2(builder)
        } else {
            builder
        }
    })
}

#[tokio::test]
async fn an_executor_inside_another_layer_sends_once_for_each_of_that_ones_attempts() {
    let server = Server::start(vec![Act::ResetBeforeAnswer; 16]).await;
    let (policy, executor) = (soon().build().unwrap(), common::executor(soon()));
    let get = async || executor.get(server.url("/")).send().await;
    let error = get.retry(&policy).await.unwrap_err();
    assert_eq!(server.count(), 4, "not 16");
    assert_eq!(error.into_last().unwrap().reason(), Some(Reason::Attempts));

    let put = async |records: Round<u32>| {
        let sent = executor
            .put(server.url("/"))
            .json(&records[..])
            .send()
            .await;
        sent.map(|_| records.iter().map(|_| Ok(())).collect())
    };
    let sent = comeback::batch(&policy, vec![1, 2], put).await;
    assert!(!sent.is_complete());
    assert_eq!(server.count(), 8);
}
