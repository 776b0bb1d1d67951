//! Retries on a thread that waits: no runtime is there.

#![allow(clippy::unwrap_used)] // a test says no by panicking

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use comeback::{
    Connectivity, Event, FailureKind, Jitter, Method, Reason, RequestFacts, RetryPolicy, Retryable,
    RetryableBlocking, Verdict, What,
};

fn every(wait: Duration) -> RetryPolicy {
    let builder = RetryPolicy::builder().base(wait).cap(wait);
    builder.jitter(Jitter::None).build().unwrap()
}

fn reset() -> io::Error {
    ErrorKind::ConnectionReset.into()
}

#[test]
fn an_operation_goes_again_until_it_succeeds() {
    let made = Cell::new(0);
    let mut resumed = 0;
    let load = || {
        made.set(made.get() + 1);
        if made.get() < 3 {
            Err(reset())
        } else {
            Ok(made.get())
        }
    };
    let answer = load
        .retry_blocking(&every(Duration::from_millis(1)))
        .notify(|event| resumed += u32::from(matches!(event.event, Event::Resumed(_))))
        .call();
    assert_eq!((answer.unwrap(), resumed), (3, 2));
}

#[test]
fn an_edge_ends_a_wait_of_a_thread() {
    let hub = Connectivity::new();
    let (planned, is_planned) = mpsc::channel();
    let waiting = hub.clone();
    let call = thread::spawn(move || {
        let made = Cell::new(0);
        let load = || {
            made.set(made.get() + 1);
            if made.get() == 1 {
                Err(reset())
            } else {
                Ok(())
            }
        };
        let policy = every(Duration::from_secs(3_600))
            .to_builder()
            .max_elapsed(Duration::from_secs(86_400));
        let mut by = None;
        let answer = load
            .retry_blocking(&policy.build().unwrap())
            .connectivity(&waiting)
            .notify(|event| match event.event {
                Event::WaitPlanned(_) => planned.send(()).unwrap(),
                Event::Resumed(resumed) => by = Some(resumed.by),
                _ => {}
            })
            .call();
        (answer.is_ok(), by)
    });
    is_planned.recv().unwrap();
    hub.restored();
    // An hour, but for the edge.
    assert_eq!(call.join().unwrap(), (true, Some(comeback::WokenBy::Edge)));
    assert_eq!(hub.waiting(), 0);
}

#[test]
fn a_post_that_may_have_arrived_is_made_once() {
    let made = Cell::new(0);
    let post = || {
        made.set(made.get() + 1);
        Err::<(), _>(reset())
    };
    let error = post
        .retry_blocking(&every(Duration::from_millis(1)))
        .classify(Verdict::of_io)
        .request(RequestFacts::new(Method::Post))
        .call()
        .unwrap_err();
    assert_eq!((made.get(), error.reason()), (1, Reason::NotRepeatable));
    let what = What::Failure(FailureKind::Reset);
    assert_eq!(error.report().attempts[0].what, what);
    assert_eq!(error.into_error().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn an_error_not_worth_another_try_stops_at_once() {
    let load = || Err::<(), _>(reset());
    let policy = RetryPolicy::default();
    let call = load.retry_blocking(&policy).when(|_| false);
    assert_eq!(call.call().unwrap_err().reason(), Reason::Permanent);
}

#[test]
fn a_classifier_that_panics_ends_the_call_with_what_there_is() {
    #[allow(clippy::panic)]
    fn panics(_: &io::Result<()>) -> Verdict {
        panic!("an app's own fault")
    }
    let load = || Err(reset());
    let policy = RetryPolicy::default();
    let call = load.retry_blocking(&policy).classify(panics);
    assert_eq!(call.call().unwrap_err().reason(), Reason::Internal);
}

#[tokio::test(start_paused = true)]
async fn within_an_attempt_a_call_on_a_thread_is_made_once_and_tells_what_it_sends() {
    let (made, policy) = (Cell::new(0), RetryPolicy::default());
    let post = async || {
        let post = || {
            made.set(made.get() + 1);
            Err::<(), _>(reset())
        };
        let call = post.retry_blocking(&policy);
        call.request(RequestFacts::new(Method::Post)).call()
    };
    let error = post.retry(&policy).await.unwrap_err();
    assert_eq!((made.get(), error.reason()), (1, Reason::NotRepeatable));
    let get = async || {
        let get = || {
            made.set(made.get() + 1);
            Err::<(), _>(reset())
        };
        get.retry_blocking(&policy).call()
    };
    made.set(0);
    let error = get.retry(&policy).await.unwrap_err();
    assert_eq!((made.get(), error.reason()), (4, Reason::Attempts));
}
