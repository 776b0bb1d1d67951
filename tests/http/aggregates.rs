//! The retry budget and the circuit breaker of an executor: what all its calls to one origin together do to a server that is down.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use comeback::{
    BreakerEvent, CircuitBreaker, Clock, Connectivity, Executor, ExecutorBuilder, Instant, Network,
    Reason, RetryBudget, Retryable, Transition,
};
use tokio::task::JoinSet;

use crate::common::{outcome, reason, soon, with};
use crate::server::{Act, Server};

/// A clock that the test moves.
#[derive(Clone, Debug, Default)]
struct Moved(Arc<AtomicI64>);

impl Moved {
    fn by(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000_000, Ordering::SeqCst);
    }
}

impl Clock for Moved {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::SeqCst))
    }

    fn wall_ms(&self) -> Option<i64> {
        None
    }
}

fn executor(settings: impl FnOnce(ExecutorBuilder) -> ExecutorBuilder) -> (Executor, Moved) {
    let clock = Moved::default();
    let hub = Connectivity::with_clock(clock.clone()).with_loopback();
    let executor = with(soon(), |builder| settings(builder.connectivity(hub)));
    (executor, clock)
}

async fn answering(status: u16, times: usize) -> Server {
    Server::start(vec![Act::status(status); times]).await
}

/// Opens after one failure.
fn touchy() -> CircuitBreaker {
    let builder = CircuitBreaker::builder().window(1).failures(1);
    builder.build().unwrap()
}

fn touchy_and_refusing() -> CircuitBreaker {
    let builder = CircuitBreaker::builder().window(1).failures(1);
    builder.refuse_first(true).build().unwrap()
}

async fn get(executor: &Executor, server: &Server) -> String {
    outcome(&executor.get(server.url("/")).send().await)
}

async fn why(executor: &Executor, server: &Server) -> Option<Reason> {
    reason(&executor.get(server.url("/")).send().await)
}

/// As many calls at the same time.
async fn at_once(calls: usize, executor: &Executor, server: &Server) -> Vec<String> {
    let mut set = JoinSet::new();
    for _ in 0..calls {
        let request = executor.get(server.url("/"));
        set.spawn(async { outcome(&request.send().await) });
    }
    set.join_all().await
}

#[derive(Clone, Default)]
struct Transitions(Arc<Mutex<Vec<Transition>>>);

impl Transitions {
    fn hear(&self) -> impl Fn(&BreakerEvent) + Send + Sync + 'static {
        let heard = self.clone();
        move |event| heard.0.lock().unwrap().push(event.transition)
    }

    fn names(&self) -> Vec<&'static str> {
        let heard = self.0.lock().unwrap();
        let name = |transition: &Transition| match transition {
            Transition::Opened { .. } => "opened",
            Transition::HalfOpen => "half-open",
            Transition::Closed => "closed",
        };
        heard.iter().map(name).collect()
    }
}

#[tokio::test]
async fn against_a_server_that_is_down_a_budget_bounds_the_requests_of_all_calls_together() {
    const CALLS: usize = 40;
    let server = answering(503, 1_000).await;
    let (with_budget, _) = executor(|builder| builder.retry_budget(RetryBudget::new(5).unwrap()));
    let mut reasons = Vec::new();
    for _ in 0..CALLS {
        reasons.push(why(&with_budget, &server).await);
    }
    assert_eq!(server.count(), CALLS + 5);
    let stopped = |wanted| reasons.iter().filter(|why| **why == Some(wanted)).count();
    assert_eq!(
        (stopped(Reason::Attempts), stopped(Reason::Budget)),
        (1, CALLS - 1)
    );

    let server = answering(503, 1_000).await;
    let (without, _) = executor(|builder| builder);
    for _ in 0..CALLS {
        assert_eq!(why(&without, &server).await, Some(Reason::Attempts));
    }
    assert_eq!(server.count(), 4 * CALLS);
}

#[tokio::test]
async fn calls_at_once_never_take_more_tokens_than_there_are() {
    let server = answering(503, 1_000).await;
    let (executor, _) = executor(|builder| builder.retry_budget(RetryBudget::new(7).unwrap()));
    at_once(60, &executor, &server).await;
    assert_eq!(server.count(), 60 + 7);
}

#[tokio::test]
async fn a_retry_that_succeeds_returns_its_token_and_first_successes_earn_new_ones() {
    let server = answering(200, 0).await;
    let (executor, _) = executor(|builder| builder.retry_budget(RetryBudget::new(1).unwrap()));
    for _ in 0..20 {
        server.then([Act::status(503), Act::status(200)]);
        assert!(get(&executor, &server).await.starts_with("200 after"));
    }
    server.then(vec![Act::status(503); 2]);
    assert_eq!(why(&executor, &server).await, Some(Reason::Budget)); // its one retry spent the token
    server.then(vec![Act::status(200); 9]);
    for _ in 0..9 {
        get(&executor, &server).await;
    }
    server.then([Act::status(503)]);
    assert_eq!(why(&executor, &server).await, Some(Reason::Budget)); // 0.9 tokens are none
    server.then([Act::status(200)]);
    get(&executor, &server).await;
    server.then([Act::status(503), Act::status(200)]);
    assert!(get(&executor, &server).await.starts_with("200 after"));
}

#[tokio::test]
async fn while_a_breaker_is_open_no_retry_is_made_and_first_attempts_go_on() {
    let heard = Transitions::default();
    let server = answering(503, 20).await;
    let (executor, _) = executor(|builder| {
        let builder = builder.circuit_breaker(CircuitBreaker::default());
        builder.on_breaker(heard.hear())
    });
    assert_eq!(why(&executor, &server).await, Some(Reason::Attempts)); // 4 failures
    for made in 5..=9 {
        assert_eq!(why(&executor, &server).await, Some(Reason::Breaker));
        assert_eq!(server.count(), made);
    }
    assert_eq!(heard.names(), ["opened"]);
    // A success of a first attempt closes it, at once.
    let server = answering(503, 5).await;
    why(&executor, &server).await;
    why(&executor, &server).await;
    server.then([Act::status(200), Act::status(503), Act::status(200)]);
    assert_eq!(get(&executor, &server).await, "200");
    assert!(get(&executor, &server).await.starts_with("200 after"));
    assert_eq!(heard.names(), ["opened", "opened", "closed"]);
}

#[tokio::test]
async fn a_call_that_waits_while_the_breaker_opens_stops_where_it_would_go_again() {
    let server = Server::start([Act::retry_after(429, "1"), Act::status(503)]).await;
    let (executor, _) = executor(|builder| builder.circuit_breaker(touchy()));
    let waiting = executor.get(server.url("/")).send();
    let other = async {
        while server.count() == 0 {
            tokio::task::yield_now().await;
        }
        why(&executor, &server).await
    };
    let (waited, other) = tokio::join!(waiting, other);
    assert_eq!(other, Some(Reason::Breaker));
    let error = waited.unwrap_err();
    assert_eq!(
        (error.reason(), error.status().unwrap().as_u16()),
        (Some(Reason::Breaker), 429)
    );
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn a_first_attempt_that_is_refused_makes_no_request_and_says_until_when() {
    let server = answering(503, 1).await;
    let (executor, clock) = executor(|builder| builder.circuit_breaker(touchy_and_refusing()));
    assert_eq!(why(&executor, &server).await, Some(Reason::Breaker));
    let error = executor.post(server.url("/")).send().await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::Breaker));
    assert!(!error.may_have_arrived());
    assert!(error.report().attempts.is_empty());
    assert_eq!((error.kind(), error.status()), (None, None));
    let until = error.refused_until().unwrap();
    let seconds = Duration::from_nanos(until.as_nanos().unsigned_abs());
    assert!((Duration::from_millis(2_500)..=Duration::from_secs(5)).contains(&seconds));
    assert_eq!(
        error.to_string(),
        "the first attempt was refused; stopped after 0 attempts within 0 ms: the circuit breaker of this origin is open"
    );
    assert_eq!(server.count(), 1);

    clock.by(5);
    server.then([Act::status(200)]);
    assert_eq!(get(&executor, &server).await, "200");
}

#[tokio::test]
async fn half_open_one_probe_is_out_at_a_time() {
    let heard = Transitions::default();
    let server = answering(503, 1).await;
    let (executor, clock) = executor(|builder| {
        let builder = builder.circuit_breaker(touchy_and_refusing());
        builder.on_breaker(heard.hear())
    });
    why(&executor, &server).await;
    clock.by(5);
    server.then([Act::SlowStatus(Duration::from_millis(50), 200)]);
    let mut calls = at_once(50, &executor, &server).await;
    calls.retain(|outcome| outcome == "200");
    assert_eq!((calls.len(), server.count()), (1, 2));
    assert_eq!(heard.names(), ["opened", "half-open", "closed"]);
    server.then(vec![Act::status(200); 50]);
    assert_eq!(at_once(50, &executor, &server).await, ["200"; 50]);
}

#[tokio::test]
async fn a_probe_whose_future_is_dropped_gives_its_permit_back() {
    let server = answering(503, 1).await;
    let (executor, clock) = executor(|builder| builder.circuit_breaker(touchy_and_refusing()));
    why(&executor, &server).await;
    clock.by(5);
    for _ in 0..20 {
        server.then([Act::Stall]);
        let before = server.count();
        let probe = executor.get(server.url("/")).send();
        let arrived = async {
            while server.count() == before {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = probe => panic!("it never ends"),
            () = arrived => {}
        }
    }
    server.then([Act::status(200)]);
    assert_eq!(get(&executor, &server).await, "200");
}

#[tokio::test]
async fn a_dead_radio_opens_no_breaker_and_empties_no_budget() {
    let clock = Moved::default();
    let hub = Connectivity::with_clock(clock).with_loopback();
    hub.available(Network::usable(1));
    let policy = soon().max_attempts(2).offline_probe(None);
    let executor = with(policy, |builder| {
        let builder = builder.connectivity(hub.clone()).circuit_breaker(touchy());
        builder.retry_budget(RetryBudget::new(1).unwrap())
    });
    let mut server = Server::closed();
    for _ in 0..3 {
        hub.lost(1);
        // Never sent, for as long as the network is away.
        let (call, ()) = tokio::join!(executor.get(server.url("/")).send(), async {
            while hub.waiting() == 0 {
                tokio::task::yield_now().await;
            }
            server.then([Act::status(200)]);
            server.open();
            hub.available(Network::usable(1));
        });
        assert!(outcome(&call).starts_with("200 after"));
        server.close().await;
        server.close_connections();
    }
    server.open();
    hub.lost(1);
    hub.available(Network::usable(1)); // another path, so fresh connections
    // The network is lost under the attempt: in doubt.
    for _ in 0..3 {
        server.then([
            Act::SlowStatus(Duration::from_millis(10), 503),
            Act::status(200),
        ]);
        let before = server.count();
        let (call, ()) = tokio::join!(executor.get(server.url("/")).send(), async {
            while server.count() == before {
                tokio::task::yield_now().await;
            }
            hub.lost(1);
            server.close_connections();
            tokio::time::sleep(Duration::from_millis(50)).await; // until it has parked
            hub.available(Network::usable(1));
        });
        assert!(
            outcome(&call).starts_with("200 after"),
            "{}",
            outcome(&call)
        );
    }
    // Nothing was taken, nothing is open.
    server.then([Act::status(500), Act::status(200)]);
    assert!(get(&executor, &server).await.starts_with("200 after"));
}

#[tokio::test]
async fn each_origin_has_a_state_of_its_own() {
    let (down, up) = (answering(503, 10).await, answering(500, 0).await);
    let (executor, _) = executor(|builder| {
        let builder = builder.circuit_breaker(touchy_and_refusing());
        builder.retry_budget(RetryBudget::new(1).unwrap())
    });
    why(&executor, &down).await;
    assert_eq!(why(&executor, &down).await, Some(Reason::Breaker));
    up.then([Act::status(503), Act::status(200)]);
    assert_eq!(why(&executor, &up).await, Some(Reason::Breaker));
    assert_eq!((down.count(), up.count()), (1, 1));
}

#[tokio::test]
async fn behind_a_redirect_the_origin_is_the_one_that_answered() {
    let target = answering(503, 10).await;
    let door = Server::start(vec![Act::redirect(307, &target.url("/")); 10]).await;
    let (executor, _) = executor(|builder| {
        let builder = builder.circuit_breaker(
            CircuitBreaker::builder()
                .window(2)
                .failures(2)
                .build()
                .unwrap(),
        );
        builder.retry_budget(RetryBudget::new(9).unwrap())
    });
    assert_eq!(why(&executor, &door).await, Some(Reason::Breaker));
    assert_eq!((door.count(), target.count()), (2, 2));
    assert_eq!(why(&executor, &target).await, Some(Reason::Breaker));
}

#[tokio::test]
async fn a_request_that_stands_down_asks_nothing_and_tells_what_it_found() {
    let server = answering(503, 8).await;
    let (executor, _) = executor(|builder| {
        let builder = builder.circuit_breaker(
            CircuitBreaker::builder()
                .refuse_first(true)
                .build()
                .unwrap(),
        );
        builder.retry_budget(RetryBudget::new(1).unwrap())
    });
    let load = async || {
        let response = executor
            .get(server.url("/"))
            .send()
            .await
            .map_err(|error| error.to_string())?;
        response
            .error_for_status()
            .map_err(|error| error.to_string())
    };
    let policy = soon().max_attempts(8).build().unwrap();
    let error = load.retry(&policy).await.unwrap_err();
    // The outer call decides: neither budget nor breaker of the inner one ended it.
    assert_eq!((error.reason(), server.count()), (Reason::Attempts, 8));
    // But the breaker has heard of it.
    let refused = executor.get(server.url("/")).send().await.unwrap_err();
    assert!(refused.refused_until().is_some());
    assert_eq!(server.count(), 8);
    // And hears that the server is back.
    server.then(vec![Act::status(200); 2]);
    load.retry(&policy).await.unwrap();
    assert_eq!(get(&executor, &server).await, "200");
}
