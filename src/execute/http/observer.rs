//! What is observed of one attempt inside the client, because its error does not say it: whether there was a connection, whether a server had
//! already answered, whether the request's body failed by itself.
//!
//! Many attempts share a client, so each observation must find its attempt: the attempt runs in the scope of a task-local, and the client's layers
//! are polled within it.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use reqwest::{ClientBuilder, StatusCode};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

type BoxError = Box<dyn Error + Send + Sync>;

/// What TCP sends before the first answer of the other side: ten segments (RFC 6928).
const SENT_AT_ONCE: usize = 14_600;

/// What more a request's body has lies in buffers whose end nobody sees. It is given the time that a poor link of the second generation takes
/// for it, in bytes a second, before it counts as standing still.
const LEAST_RATE: u64 = 8 * 1_024;

tokio::task_local! {
    static ATTEMPT: Arc<AttemptObserver>;
}

/// One attempt, as its client sees it.
#[derive(Debug)]
pub(super) struct AttemptObserver {
    /// The longest a connect may take, the TLS handshake included.
    connect_limit: Option<Duration>,
    /// reqwest shows no first hop of a request whose body cannot be cloned.
    hides_first_hop: bool,
    answered: AtomicBool,
    body_failed: AtomicBool,
    /// The origin whose response head it has, if somebody wants to know.
    origin: OnceLock<Arc<str>>,
    movement: Mutex<Movement>,
}

#[derive(Clone, Copy, Debug)]
struct Movement {
    last: Instant,
    /// A connect has a limit of its own.
    connecting: bool,
    /// Of the request's body, in bytes.
    handed_out: usize,
}

impl AttemptObserver {
    /// `at_once` is what the client is handed of the request's body from the start; `None`: a stream.
    pub(super) fn new(at_once: Option<usize>, connect_limit: Option<Duration>) -> AttemptObserver {
        AttemptObserver {
            connect_limit,
            hides_first_hop: at_once.is_none(),
            answered: AtomicBool::new(false),
            body_failed: AtomicBool::new(false),
            origin: OnceLock::new(),
            movement: Mutex::new(Movement {
                last: Instant::now(),
                connecting: false,
                handed_out: at_once.unwrap_or(0),
            }),
        }
    }

    /// Runs an attempt whose client's layers find this observer.
    pub(super) fn watch<F: Future>(self: Arc<Self>, attempt: F) -> impl Future<Output = F::Output> {
        ATTEMPT.scope(self, attempt)
    }

    /// Whether a server answered in this attempt. An error after that (the next hop of a redirect was refused) says nothing about the
    /// request itself: it may have taken effect.
    pub(super) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    /// The response head came from this origin.
    pub(super) fn answered_by(&self, origin: Arc<str>) {
        let _ = self.origin.set(origin);
    }

    pub(super) fn origin(&self) -> Option<&Arc<str>> {
        self.origin.get()
    }

    /// Whether the request's body failed by itself.
    pub(super) fn has_body_failed(&self) -> bool {
        self.body_failed.load(Ordering::Acquire)
    }

    pub(super) fn body_failed(&self) {
        self.body_failed.store(true, Ordering::Release);
    }

    /// Something of the attempt moved: the body is at its end, a hop was answered.
    pub(super) fn moved(&self) {
        self.movement().last = Instant::now();
    }

    /// The client took a piece of the body.
    pub(super) fn handed_out(&self, bytes: usize) {
        let mut movement = self.movement();
        movement.last = Instant::now();
        movement.handed_out = movement.handed_out.saturating_add(bytes);
    }

    /// Since when nothing has moved, as far as that is seen; later than now while it may be moving unseen.
    pub(super) fn still_since(&self) -> Instant {
        let movement = *self.movement();
        if movement.connecting {
            return Instant::now();
        }
        let unseen = movement.handed_out.saturating_sub(SENT_AT_ONCE) as u64;
        movement.last + Duration::from_millis(unseen.saturating_mul(1_000) / LEAST_RATE)
    }

    fn connecting(&self, connecting: bool) {
        let mut movement = self.movement();
        movement.last = Instant::now();
        movement.connecting = connecting;
    }

    fn movement(&self) -> MutexGuard<'_, Movement> {
        self.movement.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One hop came back, with this status or without an answer. If the first is hidden, one that is shown is a later one.
    fn hop(&self, status: Option<StatusCode>) {
        if status.is_some() || self.hides_first_hop {
            self.answered.store(true, Ordering::Release);
            self.moved();
        }
    }

    /// Whether every hop is seen here, the first one too.
    pub(super) fn shows_all_hops(&self) -> bool {
        !self.hides_first_hop
    }
}

/// A connect took longer than the attempt allows.
#[derive(Debug)]
pub(super) struct ConnectTimedOut;

impl fmt::Display for ConnectTimedOut {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the connection was not established in time")
    }
}

impl Error for ConnectTimedOut {}

/// Passes the client's observations on to the attempts, and turns the client's own retries off, because the outermost layer acts.
pub(super) fn listen(builder: ClientBuilder, connected: &Arc<Connected>) -> ClientBuilder {
    let hops = reqwest::retry::never().classify_fn(|hop| {
        let _ = ATTEMPT.try_with(|attempt| attempt.hop(hop.status()));
        hop.success()
    });
    builder
        .retry(hops)
        .connector_layer(ConnectLayer(connected.clone()))
}

/// Whether a client ever had a connection. While it has not, nothing it was given was sent.
#[derive(Debug, Default)]
pub(super) struct Connected(AtomicBool);

impl Connected {
    /// Of a client of which no more is known.
    pub(super) fn since_ever() -> Connected {
        Connected(AtomicBool::new(true))
    }

    pub(super) fn ever(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

#[derive(Clone)]
struct ConnectLayer(Arc<Connected>);

impl<S> Layer<S> for ConnectLayer {
    type Service = Connect<S>;

    fn layer(&self, inner: S) -> Connect<S> {
        Connect {
            inner,
            connected: self.0.clone(),
        }
    }
}

/// A connector, TLS included, that is heard and may take no longer than its attempt allows.
#[derive(Clone)]
struct Connect<S> {
    inner: S,
    connected: Arc<Connected>,
}

impl<S, D> Service<D> for Connect<S>
where
    S: Service<D, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, destination: D) -> Self::Future {
        let connect = self.inner.call(destination);
        let connected = self.connected.clone();
        // A connect that another request overtook goes on in a task of its own, without its attempt.
        let attempt = ATTEMPT.try_with(Arc::clone).ok();
        Box::pin(async move {
            if let Some(attempt) = &attempt {
                attempt.connecting(true);
            }
            let limit = attempt.as_ref().and_then(|attempt| attempt.connect_limit);
            let connection = match limit {
                None => connect.await,
                Some(limit) => match tokio::time::timeout(limit, connect).await {
                    Ok(connection) => connection,
                    Err(_) => Err(Box::new(ConnectTimedOut) as BoxError),
                },
            };
            if let Some(attempt) = &attempt {
                attempt.connecting(false);
            }
            if connection.is_ok() {
                // Before the request can go out.
                connected.0.store(true, Ordering::SeqCst);
            }
            connection
        })
    }
}
