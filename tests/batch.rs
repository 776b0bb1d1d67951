//! Batches: what goes again, what is told of each record, how rounds wait. Time is tokio's and paused.

#![allow(clippy::unwrap_used, clippy::panic)] // a test says no by panicking

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use comeback::*;
use tokio::sync::Semaphore;

/// What a server says of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    Overloaded(Option<u64>),
    Reset,
    ConnectRefused,
    Malformed,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{self:?}")
    }
}

impl Error for Problem {}

fn verdict(problem: &Problem) -> Verdict {
    match problem {
        Problem::Overloaded(retry_after) => Verdict::Status {
            status: 429,
            retry_after: retry_after.map(Duration::from_secs),
        },
        Problem::Reset => Verdict::Failed(FailureKind::Reset),
        Problem::ConnectRefused => Verdict::Failed(FailureKind::ConnectRefused),
        Problem::Malformed => Verdict::PERMANENT,
    }
}

type Answers = Result<Vec<Result<u32, Problem>>, Problem>;

/// A server that answers by script, and writes down the rounds.
struct Server {
    script: RefCell<Vec<Answers>>,
    rounds: RefCell<Vec<Vec<u32>>>,
}

impl Server {
    fn saying(script: Vec<Answers>) -> Server {
        Server {
            script: RefCell::new(script),
            rounds: RefCell::default(),
        }
    }

    /// Without a script every record is doubled.
    async fn put(&self, records: &[u32]) -> Answers {
        self.rounds.borrow_mut().push(records.to_vec());
        let mut script = self.script.borrow_mut();
        if script.is_empty() {
            Ok(records.iter().map(|record| Ok(record * 2)).collect())
        } else {
            script.remove(0)
        }
    }
}

fn hub() -> Connectivity {
    Connectivity::with_clock(TokioClock::new())
}

fn steady() -> PolicyBuilder {
    RetryPolicy::builder()
        .base(Duration::from_secs(1))
        .cap(Duration::from_secs(8))
        .jitter(Jitter::None)
}

async fn send(server: &Server, policy: &RetryPolicy, hub: &Connectivity) -> Batched<u32, Problem> {
    batch(policy, vec![1, 2, 3, 4], |records| async move {
        server.put(&records).await
    })
    .connectivity(hub)
    .classify(verdict)
    .await
}

#[tokio::test(start_paused = true)]
async fn only_records_worth_another_try_go_again_and_results_come_in_input_order() {
    let server = Server::saying(vec![
        Ok(vec![
            Ok(2),
            Err(Problem::Overloaded(None)),
            Err(Problem::Malformed),
            Err(Problem::Reset),
        ]),
        Ok(vec![Err(Problem::Overloaded(None)), Ok(80)]),
    ]);
    let sent = send(&server, &steady().build().unwrap(), &hub()).await;
    assert_eq!(
        *server.rounds.borrow(),
        [vec![1, 2, 3, 4], vec![2, 4], vec![2]]
    );
    assert_eq!(sent.reason, None);
    let answers: Vec<Option<u32>> = sent
        .records
        .iter()
        .map(|record| record.result.as_ref().ok().copied())
        .collect();
    assert_eq!(answers, [Some(2), Some(4), None, Some(80)]);
    let refused = sent.records[2].result.as_ref().unwrap_err();
    assert_eq!(refused.reason, Reason::Permanent);
    assert_eq!(refused.cause.error(), Some(&Problem::Malformed));
    let rounds: Vec<u32> = sent.records.iter().map(|record| record.rounds).collect();
    assert_eq!(rounds, [1, 3, 1, 2]);
    assert!(!sent.is_complete());
}

#[tokio::test(start_paused = true)]
async fn a_record_whose_fate_is_unknown_is_marked_even_if_it_is_done_later() {
    let server = Server::saying(vec![
        Ok(vec![
            Ok(1),
            Err(Problem::Reset),
            Err(Problem::ConnectRefused),
            Ok(1),
        ]),
        Ok(vec![Ok(1), Ok(1)]),
    ]);
    let sent = send(&server, &steady().build().unwrap(), &hub()).await;
    assert!(sent.is_complete());
    let marks: Vec<bool> = sent.records.iter().map(|record| record.in_doubt).collect();
    assert_eq!(marks, [false, true, false, false]);
}

#[tokio::test(start_paused = true)]
async fn records_wait_together_once_per_round() {
    let reset = || Err(Problem::Reset);
    let server = Server::saying(vec![
        Ok(vec![reset(), reset(), reset(), reset()]),
        Ok(vec![reset(), reset(), reset(), reset()]),
    ]);
    let hub = hub();
    let sent = send(&server, &steady().build().unwrap(), &hub).await;
    assert!(sent.is_complete());
    assert_eq!(
        hub.now().as_nanos(),
        3_000_000_000,
        "1 s and 2 s, not eight waits"
    );
    assert_eq!(sent.report.attempts.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn overload_has_a_backoff_of_its_own_even_if_one_record_alone_met_it() {
    let server = Server::saying(vec![Ok(vec![
        Ok(1),
        Err(Problem::Reset),
        Err(Problem::Overloaded(None)),
        Err(Problem::Reset),
    ])]);
    let hub = hub();
    let slow = Duration::from_secs(5);
    let policy = steady().overload(slow, 2.0, slow).build().unwrap();
    assert!(send(&server, &policy, &hub).await.is_complete());
    assert_eq!(hub.now().as_nanos(), 5_000_000_000);
}

#[tokio::test(start_paused = true)]
async fn the_longest_wish_of_all_records_is_the_floor() {
    let server = Server::saying(vec![Ok(vec![
        Err(Problem::Overloaded(Some(3))),
        Err(Problem::Reset),
        Err(Problem::Overloaded(Some(7))),
        Err(Problem::Overloaded(None)),
    ])]);
    let hub = hub();
    let policy = steady().build().unwrap();
    assert!(send(&server, &policy, &hub).await.is_complete());
    assert_eq!(
        hub.now().as_nanos(),
        8_000_000_000,
        "7 s, then the drawn 1 s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cap_ends_a_batch_with_what_it_has() {
    let server = Server::saying(vec![
        Ok(vec![
            Ok(10),
            Err(Problem::Reset),
            Ok(30),
            Err(Problem::Reset),
        ]),
        Ok(vec![Err(Problem::Reset), Ok(40)]),
    ]);
    let policy = steady().max_attempts(2).build().unwrap();
    let sent = send(&server, &policy, &hub()).await;
    assert_eq!(sent.reason, Some(Reason::Attempts));
    let done: Vec<bool> = sent
        .records
        .iter()
        .map(|record| record.result.is_ok())
        .collect();
    assert_eq!(done, [true, false, true, true]);
    let error = sent.records[1].result.as_ref().unwrap_err();
    assert_eq!(error.reason, Reason::Attempts);
    assert_eq!(
        error.to_string(),
        "the record failed: all attempts are used up"
    );
    assert_eq!(error.source().unwrap().to_string(), "Reset");
}

#[tokio::test(start_paused = true)]
async fn a_round_that_fails_as_a_whole_goes_again_whole() {
    let server = Server::saying(vec![Err(Problem::ConnectRefused), Err(Problem::Reset)]);
    let sent = send(&server, &steady().build().unwrap(), &hub()).await;
    assert!(sent.is_complete());
    assert_eq!(server.rounds.borrow().len(), 3);
    assert!(
        sent.records
            .iter()
            .all(|record| record.in_doubt && record.rounds == 3)
    );
}

#[tokio::test(start_paused = true)]
async fn results_of_another_number_are_no_results_and_nothing_goes_again() {
    let server = Server::saying(vec![Ok(vec![Ok(1), Ok(2), Ok(3)])]);
    let sent = send(&server, &steady().build().unwrap(), &hub()).await;
    assert_eq!(server.rounds.borrow().len(), 1);
    assert_eq!(sent.reason, Some(Reason::Permanent));
    for record in &sent.records {
        let error = record.result.as_ref().unwrap_err();
        assert!(matches!(
            error.cause,
            RecordFailure::WrongLength {
                sent: 4,
                returned: 3
            }
        ));
        assert!(record.in_doubt);
    }
}

#[tokio::test(start_paused = true)]
async fn records_that_must_not_be_repeated_go_again_only_when_they_were_never_sent() {
    let server = Server::saying(vec![Ok(vec![
        Ok(1),
        Err(Problem::Reset),
        Err(Problem::ConnectRefused),
        Err(Problem::Overloaded(None)),
    ])]);
    let policy = steady().build().unwrap();
    let sent = batch(&policy, vec![1, 2, 3, 4], |records| {
        let server = &server;
        async move { server.put(&records).await }
    })
    .connectivity(&hub())
    .request(RequestFacts::new(Method::Post))
    .classify(verdict)
    .await;
    assert_eq!(*server.rounds.borrow(), [vec![1, 2, 3, 4], vec![3]]);
    let error = sent.records[1].result.as_ref().unwrap_err();
    assert_eq!(error.reason, Reason::NotRepeatable);
    assert!(sent.records[1].in_doubt && !sent.records[3].in_doubt);
}

#[tokio::test(start_paused = true)]
async fn a_round_that_takes_too_long_is_dropped_and_leaves_its_records_in_doubt() {
    let policy = steady()
        .max_attempts(2)
        .attempt_timeout(Duration::from_secs(3))
        .build()
        .unwrap();
    let sent = batch(&policy, vec![1, 2], |_| pending::<Answers>())
        .connectivity(&hub())
        .await;
    assert_eq!(sent.reason, Some(Reason::Attempts));
    for record in &sent.records {
        let error = record.result.as_ref().unwrap_err();
        assert!(matches!(error.cause, RecordFailure::TimedOut));
        assert!(record.in_doubt);
        assert_eq!(record.rounds, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_batch_holds_no_permit() {
    let limit = Arc::new(Semaphore::new(1));
    let hub = hub();
    let policy = steady().build().unwrap();
    let failing = Server::saying(vec![Err(Problem::Reset)]);
    let healthy = Server::saying(Vec::new());
    let one = |server| {
        batch(&policy, vec![1], move |records: Round<u32>| async move {
            let server: &Server = server;
            tokio::time::sleep(Duration::from_millis(100)).await;
            server.put(&records).await
        })
        .connectivity(&hub)
        .limit(&limit)
    };
    let finished = |sent: Batched<u32, Problem>| (sent.is_complete(), hub.now().as_nanos());
    let first = async { finished(one(&failing).await) };
    let second = async { finished(one(&healthy).await) };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(
        second,
        (true, 200_000_000),
        "it ran while the first one slept"
    );
    assert_eq!(first, (true, 1_200_000_000));
    assert_eq!(limit.available_permits(), 1);
}

#[tokio::test(start_paused = true)]
async fn rounds_under_way_are_never_more_than_the_limit() {
    let limit = Arc::new(Semaphore::new(3));
    let hub = hub();
    let policy = steady().build().unwrap();
    let (under_way, most) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let one = |number: u32| {
        let (under_way, most, mut made) = (&under_way, &most, 0);
        batch(&policy, vec![number], move |_| {
            made += 1;
            let answers: Answers = if made < 3 {
                Err(Problem::Reset)
            } else {
                Ok(vec![Ok(1)])
            };
            async move {
                under_way.set(under_way.get() + 1);
                most.set(most.get().max(under_way.get()));
                tokio::time::sleep(Duration::from_millis(50)).await;
                under_way.set(under_way.get() - 1);
                answers
            }
        })
        .connectivity(&hub)
        .limit(&limit)
        .into_future()
    };

    let done = futures_of((0..20).map(one).collect()).await;

    assert!(done.iter().all(Batched::is_complete));
    assert_eq!(most.get(), 3);
    assert_eq!(limit.available_permits(), 3);
    assert_eq!(hub.waiting(), 0);
}

/// Polls them all until all are ready.
async fn futures_of<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none() {
                if let std::task::Poll::Ready(output) = future.as_mut().poll(context) {
                    *done = Some(output);
                }
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test(start_paused = true)]
async fn no_records_are_no_trouble() {
    let policy = RetryPolicy::batch();
    let sent = batch(&policy, Vec::<u32>::new(), |_| async {
        Answers::Ok(Vec::new())
    })
    .connectivity(&hub())
    .await;
    assert!(sent.is_complete() && sent.records.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_classifier_that_panics_stops_its_record() {
    let server = Server::saying(vec![Ok(vec![Ok(1), Err(Problem::Reset)])]);
    let policy = steady().build().unwrap();
    let sent = batch(&policy, vec![1, 2], |records| {
        let server = &server;
        async move { server.put(&records).await }
    })
    .connectivity(&hub())
    .classify(|_| panic!("the app's own"))
    .await;
    assert!(sent.records[0].result.is_ok());
    let error = sent.records[1].result.as_ref().unwrap_err();
    assert_eq!(error.reason, Reason::Internal);
}

#[tokio::test]
async fn a_batch_without_records_makes_no_call() {
    let made = Cell::new(0);
    let events = Cell::new(0);
    let none = Arc::new(Semaphore::new(0)); // nor does it wait for a permit
    let policy = RetryPolicy::batch();
    let sent = batch(&policy, Vec::<u32>::new(), |_| {
        made.set(made.get() + 1);
        async { Ok::<Vec<Result<(), ()>>, ()>(Vec::new()) }
    });
    let sent = sent.limit(&none).notify(|_| events.set(events.get() + 1));
    let sent = sent.await;
    assert!(sent.is_complete() && sent.reason.is_none());
    assert_eq!((made.get(), events.get()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_round_is_begun_anew_on_the_next_network_only_if_that_was_asked_for() {
    for restart in [false, true] {
        let hub = Connectivity::with_clock(TokioClock::new());
        hub.available(Network::usable(1));
        let made = Cell::new(0);
        let policy = RetryPolicy::batch();
        let slow_first = |_| {
            made.set(made.get() + 1);
            let length = if made.get() == 1 { 5 } else { 0 };
            async move {
                tokio::time::sleep(Duration::from_secs(length)).await;
                Ok::<_, ()>(vec![Ok::<_, ()>(())])
            }
        };
        let sent = batch(&policy, vec![1], slow_first);
        let sent = sent.connectivity(&hub).restart(restart);
        let (sent, ()) = tokio::join!(sent.into_future(), async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            hub.available(Network::usable(2));
        });
        assert!(sent.is_complete());
        assert_eq!(made.get(), if restart { 2 } else { 1 });
        assert_eq!(sent.records[0].in_doubt, restart);
    }
}
