//! No decision allocates: counted by an allocator that notes what this thread asks of it.

#![allow(clippy::panic)] // a test says no by panicking

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use comeback::*;

struct Counting;

thread_local!(static COUNT: Cell<usize> = const { Cell::new(0) });

// SAFETY: every request is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often `work` asks for memory.
fn allocations<T>(work: impl FnOnce() -> T) -> usize {
    let before = COUNT.with(Cell::get);
    let result = work();
    let asked = COUNT.with(Cell::get) - before;
    drop(result);
    asked
}

fn signals(seconds: i64, network: Snapshot) -> Signals {
    Signals {
        now: Instant::from_nanos(seconds * 1_000_000_000),
        network,
        wall_ms: Some(0),
        allowed: Allowed::ALL,
    }
}

fn call() -> Call {
    Call::begin(
        RequestFacts::new(Method::Get),
        42,
        Instant::from_nanos(0),
        None,
    )
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| vec![1_u8]), 1);
}

#[test]
fn a_decision_allocates_nothing() {
    let policy = RetryPolicy::default();
    let mut asked = Outcome::response(503);
    asked.retry_after = &[
        "2",
        "Sun, 06 Nov 1994 08:49:40 GMT",
        "99999999999999999999999",
    ];
    asked.date = Some("Sunday, 06-Nov-94 08:49:37 GMT");
    let mut dns = Outcome::failure(FailureKind::Dns);
    dns.look_up = Duration::from_secs(2);
    for outcome in [
        Outcome::failure(FailureKind::Reset),
        Outcome::failure(FailureKind::Certificate),
        Outcome::response(200),
        Outcome::response(503),
        asked,
        dns,
    ] {
        for network in [Snapshot::UNKNOWN, away()] {
            let asked = allocations(|| {
                decide(
                    &policy,
                    call(),
                    &Snapshot::UNKNOWN,
                    &outcome,
                    &signals(1, network),
                )
            });
            assert_eq!(asked, 0, "{outcome:?}");
        }
    }
}

fn away() -> Snapshot {
    Snapshot {
        state: NetworkState::Offline,
        since: Instant::from_nanos(0),
        ..Snapshot::UNKNOWN
    }
}

fn back() -> Snapshot {
    Snapshot {
        state: NetworkState::Online,
        epoch: 1,
        path: 1,
        ..away()
    }
}

#[test]
fn neither_a_resume_nor_an_interrupt_nor_a_hub_event_allocates() {
    let policy = RetryPolicy::default();
    let outcome = Outcome::failure(FailureKind::Reset);
    let now = signals(1, Snapshot::UNKNOWN);
    let Decision::Sleep(sleep) =
        decide(&policy, call(), &Snapshot::UNKNOWN, &outcome, &now).decision
    else {
        panic!("no sleep");
    };
    for signals in [
        now,
        signals(3, back()),
        signals(1, away()),
        signals(900, back()),
    ] {
        let waiting = sleep.waiting.clone();
        assert_eq!(
            allocations(|| resume(&policy, waiting, &signals)),
            0,
            "{signals:?}"
        );
    }
    for sent_nothing in [true, false] {
        let asked = allocations(|| {
            interrupt(
                &policy,
                call(),
                &away(),
                &signals(1, back()),
                &Evidence {
                    sent_nothing,
                    ..Evidence::NONE
                },
            )
        });
        assert_eq!(asked, 0);
    }
    let mut hub = Hub::new();
    let events = allocations(|| {
        hub.available(Instant::from_nanos(0), Network::usable(1));
        hub.lost(Instant::from_nanos(1), 1);
        hub.available(Instant::from_nanos(2), Network::usable(2))
    });
    assert_eq!(events, 0);
}

#[test]
fn the_states_stay_small() {
    // They are copied at every step; the binding carries them as bytes.
    assert!(size_of::<Call>() <= 128, "{}", size_of::<Call>());
    assert!(size_of::<Waiting>() <= 256, "{}", size_of::<Waiting>());
}

#[cfg(feature = "tokio")]
mod executor {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
        let mut context = Context::from_waker(Waker::noop());
        pin!(future).as_mut().poll(&mut context)
    }

    #[test]
    fn a_call_that_succeeds_allocates_nothing_and_within_another_call_what_it_tells_that_one() {
        let (policy, hub) = (RetryPolicy::default(), Connectivity::new());
        let succeeds = async || Ok::<_, ()>(());
        let within = async || {
            let call = succeeds.retry(&policy).connectivity(&hub);
            let asked = allocations(|| poll_once(call.into_future()));
            Ok::<_, ()>(asked)
        };
        assert_eq!(poll_once(within()), Poll::Ready(Ok(0)), "by itself");
        let outer = within.retry(&policy).connectivity(&hub);
        let Poll::Ready(Ok(asked)) = poll_once(outer.into_future()) else {
            panic!("nothing is waited for");
        };
        assert_eq!(asked, 1, "within another");
    }
}
