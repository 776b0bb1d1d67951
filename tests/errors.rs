//! What a program does with the error of a call that stopped: `?`, texts, chains of causes, kinds.

#![allow(clippy::unwrap_used)] // a test says no by panicking

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::sync::LazyLock;
use std::time::Duration;

use comeback::{
    AnyError, AttemptTimedOut, Connectivity, FailureKind, Jitter, Method, Reason, RequestFacts,
    RetryError, RetryPolicy, Retryable, TokioClock, Verdict, What,
};

type Boxed = Box<dyn Error + Send + Sync>;

/// An error with a cause of its own.
#[derive(Debug)]
struct Unreadable(io::Error);

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the page is unreadable")
    }
}

impl Error for Unreadable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

fn hub() -> Connectivity {
    Connectivity::with_clock(TokioClock::new())
}

static POLICY: LazyLock<RetryPolicy> = LazyLock::new(|| {
    let builder = RetryPolicy::builder().max_attempts(2);
    builder.jitter(Jitter::None).build().unwrap()
});

async fn unreadable() -> Result<(), Unreadable> {
    Err(Unreadable(ErrorKind::UnexpectedEof.into()))
}

/// Each error's text, from the outermost to the last cause.
fn chain(error: &(dyn Error + 'static)) -> Vec<String> {
    std::iter::successors(Some(error), |error| (*error).source())
        .map(ToString::to_string)
        .collect()
}

const TEXT: &str =
    "the page is unreadable; stopped after 2 attempts within 1000 ms: all attempts are used up";

#[tokio::test(start_paused = true)]
async fn the_text_names_the_cause_and_a_chain_of_causes_says_nothing_twice() {
    let call = unreadable.retry(&POLICY).connectivity(&hub()).await;
    let error = call.unwrap_err();
    assert_eq!(chain(&error), [TEXT, "unexpected end of file"]);
    let error = anyhow::Error::from(error);
    assert_eq!(
        format!("{error:#}"),
        format!("{TEXT}: unexpected end of file")
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_mark_takes_it_into_a_boxed_error_and_into_anyhow() {
    async fn boxed() -> Result<(), Box<dyn Error>> {
        Ok(unreadable.retry(&POLICY).connectivity(&hub()).await?)
    }
    async fn sendable() -> Result<(), Boxed> {
        Ok(unreadable.retry(&POLICY).connectivity(&hub()).await?)
    }
    async fn any() -> anyhow::Result<()> {
        Ok(unreadable.retry(&POLICY).connectivity(&hub()).await?)
    }
    assert_eq!(boxed().await.unwrap_err().to_string(), TEXT);
    assert_eq!(sendable().await.unwrap_err().to_string(), TEXT);
    let error = any().await.unwrap_err();
    let kept = error.downcast_ref::<RetryError<Unreadable>>().unwrap();
    assert_eq!(kept.reason(), Reason::Attempts);
    assert_eq!(kept.report().attempts.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_adapter_takes_it_into_the_operations_own_error() {
    async fn io() -> io::Result<()> {
        let load = async || Err(io::Error::from(ErrorKind::ConnectionReset));
        let call = load.retry(&POLICY).connectivity(&hub());
        call.await.map_err(RetryError::into_error)
    }
    async fn any() -> anyhow::Result<()> {
        let load = async || anyhow::bail!("no page");
        let call = load.retry(&POLICY).connectivity(&hub());
        call.await.map_err(RetryError::into_error)
    }
    assert_eq!(io().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(any().await.unwrap_err().to_string(), "no page");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_none_by_its_type_goes_on_with_reason_and_report() {
    async fn any() -> anyhow::Result<()> {
        let load = async || unreadable().await.map_err(anyhow::Error::from);
        let call = load.retry(&POLICY).connectivity(&hub());
        Ok(call.await.map_err(RetryError::erased)?)
    }
    async fn boxed() -> Result<(), RetryError<AnyError>> {
        let load = async || Err::<(), Boxed>(Unreadable(ErrorKind::UnexpectedEof.into()).into());
        let call = load.retry(&POLICY).connectivity(&hub());
        call.await.map_err(RetryError::erased)
    }
    async fn text() -> Result<(), Boxed> {
        let load = async || Err(String::from("the page is unreadable"));
        let call = load.retry(&POLICY).connectivity(&hub());
        Ok(call.await.map_err(RetryError::erased)?)
    }
    let error = any().await.unwrap_err();
    assert_eq!(chain(&*error), [TEXT, "unexpected end of file"]);
    let kept = error.downcast_ref::<RetryError<AnyError>>().unwrap();
    assert_eq!(kept.report().attempts.len(), 2);
    let last = boxed().await.unwrap_err().into_last().unwrap();
    assert!(last.into_inner().is::<Unreadable>());
    assert_eq!(text().await.unwrap_err().to_string(), TEXT);
}

/// Fails once, and then takes for ever.
async fn first_failing_then_hanging(failures: u32) -> RetryError<Unreadable> {
    let limit = Duration::from_secs(3);
    let policy = POLICY.to_builder().attempt_timeout(limit).build();
    let made = Cell::new(0);
    let load = async || {
        made.set(made.get() + 1);
        if made.get() > failures {
            pending::<()>().await;
        }
        unreadable().await
    };
    let call = load.retry(policy.as_ref().unwrap()).connectivity(&hub());
    call.await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_last_attempt_that_timed_out_keeps_the_error_before_it() {
    let error = first_failing_then_hanging(1).await;
    assert!(error.last().is_none());
    assert!(error.earlier().is_some());
    assert_eq!(
        chain(&error),
        [
            "the attempt reached its time limit (before it: the page is unreadable); \
             stopped after 2 attempts within 4000 ms: all attempts are used up",
            "unexpected end of file"
        ]
    );
    let error = first_failing_then_hanging(0).await;
    assert!(error.last().is_none() && error.earlier().is_none());
    assert!(error.source().is_none());
    assert_eq!(
        error.to_string(),
        "the attempt reached its time limit; stopped after 2 attempts within 7000 ms: all attempts are used up"
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_timed_out_is_a_time_out_in_the_operations_own_error() {
    let limit = Duration::from_secs(3);
    let policy = POLICY.to_builder().attempt_timeout(limit).build();
    let made = Cell::new(0);
    let load = async || {
        made.set(made.get() + 1);
        if made.get() > 1 {
            pending::<()>().await;
        }
        Err::<(), _>(io::Error::from(ErrorKind::ConnectionRefused))
    };
    let call = load.retry(policy.as_ref().unwrap()).connectivity(&hub());
    let error = call.await.unwrap_err().into_error();
    // Not the earlier error: "refused" would say that nothing was sent.
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.get_ref().unwrap().is::<AttemptTimedOut>());
}

#[test]
fn an_io_error_has_the_kind_of_what_it_wraps() {
    let kind = |error: ErrorKind| FailureKind::of_io(&error.into());
    assert_eq!(
        kind(ErrorKind::ConnectionRefused),
        FailureKind::ConnectRefused
    );
    assert_eq!(
        kind(ErrorKind::NetworkUnreachable),
        FailureKind::ConnectUnreachable
    );
    assert_eq!(kind(ErrorKind::TimedOut), FailureKind::ReadTimeout);
    assert_eq!(kind(ErrorKind::BrokenPipe), FailureKind::Reset);
    assert_eq!(kind(ErrorKind::UnexpectedEof), FailureKind::UnexpectedEnd);
    assert_eq!(kind(ErrorKind::NotFound), FailureKind::LocalFile);
    assert_eq!(kind(ErrorKind::PermissionDenied), FailureKind::OtherIo);
    let twice = io::Error::other(io::Error::other(io::Error::from(ErrorKind::TimedOut)));
    assert_eq!(FailureKind::of_io(&twice), FailureKind::ReadTimeout);
}

#[tokio::test(start_paused = true)]
async fn the_kind_of_an_io_error_is_told_and_proves_nothing_about_what_was_sent() {
    let connect = async || Err::<(), _>(io::Error::from(ErrorKind::ConnectionRefused));
    let call = connect
        .retry(&POLICY)
        .connectivity(&hub())
        .classify(Verdict::of_io)
        .request(RequestFacts::new(Method::Post));
    let error = call.await.unwrap_err();
    let what = What::Failure(FailureKind::ConnectRefused);
    assert_eq!(error.report().attempts[0].what, what);
    assert_eq!(error.reason(), Reason::NotRepeatable);
    assert!(error.may_have_arrived());
}
