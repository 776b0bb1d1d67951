//! The hub's lock and waiters under a model checker: interleavings of edges, waits and drops. No wake-up is lost, no attempt is made twice,
//! nobody is left behind.
//!
//! It compiles `src/execute/waiters.rs` itself over the checker's lock.

#![allow(clippy::unwrap_used)] // a test says no by panicking

use std::future::poll_fn;
use std::task::Poll;

use comeback::*;
use loom::future::block_on;
use loom::sync::Arc;
use loom::thread;

use waiters::{Waiters, WakerSlot};

mod sync {
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
}

#[path = "../src/execute/waiters.rs"]
mod waiters;

type Shared = Arc<Waiters<Hub>>;

fn restored(hub: &Waiters<Hub>) {
    hub.change(|hub| (hub.restored(Instant::from_nanos(2)), true));
}

fn snapshot(hub: &Waiters<Hub>) -> Snapshot {
    hub.change(|hub| (hub.snapshot(), false))
}

/// Waits as the executor does: asks first, listens, and looks again at what came in between.
async fn wait(hub: &Waiters<Hub>, slot: &mut WakerSlot, mut is_over: impl FnMut(Snapshot) -> bool) {
    poll_fn(|context| {
        loop {
            let seen = snapshot(hub);
            if is_over(seen) {
                return Poll::Ready(());
            }
            let now = hub.listen(slot, context.waker(), Hub::snapshot);
            if now.epoch == seen.epoch {
                return Poll::Pending;
            }
        }
    })
    .await;
}

/// A call whose first attempt fails on an instant at which its clock stands: only an edge lets it go on. Answers with the attempts it made.
fn call(hub: &Waiters<Hub>, noted: &Snapshot) -> u32 {
    let signals = |network| Signals {
        now: Instant::from_nanos(1),
        network,
        wall_ms: None,
        allowed: Allowed::ALL,
    };
    let policy = RetryPolicy::builder().jitter(Jitter::None).build().unwrap();
    let request = RequestFacts::new(Method::Get);
    let begun = Call::begin(request, 1, Instant::from_nanos(1), None);
    let mut attempts = 1;
    let failed = Outcome::failure(FailureKind::Reset);
    let answer = decide(&policy, begun, noted, &failed, &signals(snapshot(hub)));
    let Decision::Sleep(sleep) = answer.decision else {
        unreachable!("a GET goes again")
    };
    let mut slot = WakerSlot::default();
    let mut waiting = Some(sleep.waiting);
    block_on(wait(hub, &mut slot, |network| {
        match resume(&policy, waiting.take().unwrap(), &signals(network)).decision {
            Resumed::Go(_) => {
                attempts += 1;
                true
            }
            Resumed::Sleep(sleep) => {
                waiting = Some(sleep.waiting);
                false
            }
            Resumed::Stop(reason) => unreachable!("{reason:?}"),
        }
    }));
    hub.leave(&mut slot);
    attempts
}

/// With three threads not every interleaving, which takes minutes, but every one with at most two preemptions.
fn three_threads(test: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(test);
}

#[test]
fn an_edge_is_never_lost_and_makes_one_attempt() {
    loom::model(|| {
        let hub: Shared = Arc::new(Waiters::new(Hub::new()));
        let noted = snapshot(&hub);
        let teller = {
            let hub = hub.clone();
            thread::spawn(move || restored(&hub))
        };
        let mut slot = WakerSlot::default();
        let mut woken = 0;
        block_on(wait(&hub, &mut slot, |seen| {
            let over = seen.epoch > noted.epoch;
            woken += u32::from(over);
            over
        }));
        hub.leave(&mut slot);
        teller.join().unwrap();
        assert_eq!(woken, 1);
        assert_eq!(hub.count(), 0);
    });
}

#[test]
fn a_call_that_only_an_edge_can_wake_makes_exactly_one_more_attempt() {
    three_threads(|| {
        let hub: Shared = Arc::new(Waiters::new(Hub::new()));
        let noted = snapshot(&hub); // before the attempt: both edges are news to it
        let tellers: Vec<_> = (0..2)
            .map(|_| {
                let hub = hub.clone();
                thread::spawn(move || restored(&hub))
            })
            .collect();
        let attempts = call(&hub, &noted);
        for teller in tellers {
            teller.join().unwrap();
        }
        assert_eq!(attempts, 2);
        assert_eq!(hub.count(), 0);
    });
}

#[test]
fn a_waiter_that_leaves_while_the_edge_comes_takes_nobody_elses_place() {
    three_threads(|| {
        let hub: Shared = Arc::new(Waiters::new(Hub::new()));
        let leaving = {
            let hub = hub.clone();
            thread::spawn(move || {
                let mut slot = WakerSlot::default();
                let mut polled = false;
                block_on(poll_fn(|context| {
                    if polled {
                        return Poll::Ready(());
                    }
                    polled = true;
                    hub.listen(&mut slot, context.waker(), Hub::snapshot);
                    context.waker().wake_by_ref();
                    Poll::Pending
                }));
                hub.leave(&mut slot);
            })
        };
        let teller = {
            let hub = hub.clone();
            thread::spawn(move || restored(&hub))
        };
        let mut slot = WakerSlot::default();
        block_on(wait(&hub, &mut slot, |seen| seen.epoch > 0));
        hub.leave(&mut slot);
        leaving.join().unwrap();
        teller.join().unwrap();
        assert_eq!(hub.count(), 0);
    });
}
