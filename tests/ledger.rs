//! The aggregates' lock under a model checker: whatever the interleaving, no more tokens are taken than there are, no more probes are out than allowed, and
//! what is given back is there again.
//!
//! It compiles `src/execute/ledger.rs` itself over the checker's lock.

#![allow(clippy::unwrap_used, dead_code)] // a test says no by panicking; not all of the ledger is asked here

use std::sync::Arc;
use std::time::Duration;

use comeback::{CircuitBreaker, Instant, RetryBudget, Spoken};
use ledger::{HeldTicket, Ledger, Taken};
use loom::thread;

mod sync {
    pub(crate) use loom::sync::Mutex;
}

mod pure {
    pub(crate) use comeback::{
        Admission, Allowed, Breaker, CircuitBreaker, Instant, RetryBudget, Spoken, Ticket,
        TokenBucket, Transition,
    };
}

#[path = "../src/origins.rs"]
mod origins;

#[path = "../src/execute/ledger.rs"]
mod ledger;

const DOWN: Spoken = Spoken::Failure {
    retry_after: Duration::ZERO,
};

fn at(seconds: i64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn origin() -> Arc<str> {
    "https://example.org:443".into()
}

fn tokens(capacity: u16) -> Arc<Ledger> {
    let budget = RetryBudget::new(capacity).unwrap();
    Arc::new(Ledger::new(Some(budget), None, || 7))
}

/// A breaker whose open time is over.
fn half_open() -> Arc<Ledger> {
    let rules = { CircuitBreaker::builder().window(1).failures(1) }
        .refuse_first(true)
        .build()
        .unwrap();
    let ledger = Arc::new(Ledger::new(None, Some(rules), || 7));
    admitted(&ledger, 0).unwrap().end(at(0), DOWN).unwrap();
    assert!(admitted(&ledger, 0).is_none());
    ledger
}

fn admitted(ledger: &Arc<Ledger>, seconds: i64) -> Option<HeldTicket> {
    let asked = ledger.admit(&origin(), at(seconds), true).unwrap();
    asked.admitted.ok()
}

#[test]
fn two_threads_never_take_the_same_token() {
    loom::model(|| {
        let ledger = tokens(1);
        let take = |ledger: Arc<Ledger>| match ledger.take(&origin()) {
            Taken::Token(mut token) => {
                token.made();
                1
            }
            Taken::Free | Taken::Empty => 0,
        };
        let other = {
            let ledger = ledger.clone();
            thread::spawn(move || take(ledger))
        };
        let taken = take(ledger.clone()) + other.join().unwrap();
        assert_eq!(taken, 1);
        assert!(!ledger.allowed(&origin(), at(0)).budget);
    });
}

#[test]
fn a_token_that_is_given_back_is_there_again_once() {
    loom::model(|| {
        let ledger = tokens(2);
        let Taken::Token(dropped) = ledger.take(&origin()) else {
            panic!("there are two");
        };
        let Taken::Token(put_back) = ledger.take(&origin()) else {
            panic!("there are two");
        };
        let other = thread::spawn(move || drop(dropped));
        put_back.put_back();
        other.join().unwrap();
        let mut kept = Vec::new();
        while let Taken::Token(token) = ledger.take(&origin()) {
            kept.push(token);
        }
        assert_eq!(kept.len(), 2);
    });
}

#[test]
fn half_open_two_threads_get_one_probe_between_them() {
    loom::model(|| {
        let ledger = half_open();
        let other = {
            let ledger = ledger.clone();
            thread::spawn(move || admitted(&ledger, 5))
        };
        let mine = admitted(&ledger, 5);
        let theirs = other.join().unwrap();
        assert_eq!(
            [&mine, &theirs]
                .iter()
                .filter(|ticket| ticket.is_some())
                .count(),
            1
        );
        drop((mine, theirs));
        assert!(
            admitted(&ledger, 5).is_some(),
            "a dropped probe gives its permit back"
        );
    });
}

#[test]
fn a_late_end_of_an_earlier_generation_opens_and_closes_nothing() {
    loom::model(|| {
        let ledger = half_open();
        let probe = admitted(&ledger, 5).unwrap();
        let late = ledger.watch(&origin()).unwrap();
        let other = thread::spawn(move || late.end(at(6), DOWN));
        let closed = probe.end(at(6), Spoken::Success);
        let opened = other.join().unwrap();
        // Whichever came first was of its generation, the other one is late.
        assert_ne!(closed.is_some(), opened.is_some());
    });
}
