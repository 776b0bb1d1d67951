//! Any future: `operation.retry(&policy).await`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::aggregates::Aggregates;
use super::attempt::{Attempt, Keys};
use super::connectivity::Connectivity;
use super::drive::{AttemptStart, Attempts, Drive, Driven, Ended};
use super::hooks::{
    By, CallSite, Classify, EveryError, Nobody, Notify, To, When, call_site_setters,
};
use super::layer::OuterAttempt;
use super::listener::RetryEvent;
use super::operation::{ByAttempt, ByItself, Operation};
use super::retry_error::RetryError;
use super::verdict::Verdict;
use crate::event::{Event, Reason};
use crate::outcome::{InnerRequest, Outcome};
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;

/// Gives every function or closure `FnMut() -> impl Future<Output = Result<T, E>>` the method [`retry`](Retryable::retry), and every
/// `FnMut(Attempt) -> ...` too. An operation that makes orders asks its [`Attempt`] for a key.
///
/// ```
/// use comeback::{Connectivity, Retryable, RetryPolicy};
///
/// async fn load() -> Result<String, std::io::Error> {
///     Ok("here".to_owned())
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let hub = Connectivity::new();
/// let text = load
///     .retry(&RetryPolicy::read())
///     .connectivity(&hub)
///     .when(|error| error.kind() != std::io::ErrorKind::PermissionDenied)
///     .notify(|event| println!("{event:?}"))
///     .await?;
/// assert_eq!(text, "here");
/// # Ok(())
/// # }
/// ```
///
/// # What is within an attempt
///
/// Calls of ours that are awaited within an attempt (an `Executor`'s, another `.retry`, a batch) stand down: they make one attempt and tell
/// what they send before they do. The operation is repeated only if every request that may have gone out may be repeated; what a server asked one of
/// them to wait is waited. [`Repeat::Always`](crate::Repeat::Always) in this call's policy is your word for the operation as a whole.
///
/// Comeback does not see what goes through no layer of ours (a bare `reqwest::Client`, a database): say what it is with [`request`](Retry::request). Nor does
/// it see a task that is spawned within the attempt, on a [`LocalSet`](tokio::task::LocalSet) either: such a task is outside of the attempt, retries by
/// itself, reports nothing, does not end with the attempt, and is spawned once more by the next one.
pub trait Retryable<M = ByItself>: Sized {
    /// What makes the attempts.
    type Operation;

    /// A call that makes this operation's attempts as `policy` says. Nothing happens before it is awaited.
    ///
    /// By calling this you say that the operation **may be repeated**, because a future does not say what it does. Every error counts as in doubt (`OtherIo` in
    /// events and report) and is tried again. Restrict this with [`when`](Retry::when), [`classify`](Retry::classify), or, for an operation that must not be
    /// repeated once it may have had an effect, [`request`](Retry::request).
    fn retry(self, policy: &RetryPolicy) -> Retry<'_, Self::Operation>;
}

impl<F, A, T, E> Retryable<ByItself> for F
where
    F: FnMut() -> A,
    A: Future<Output = Result<T, E>>,
{
    type Operation = ByItself<F>;

    fn retry(self, policy: &RetryPolicy) -> Retry<'_, ByItself<F>> {
        Retry::new(ByItself(self), policy)
    }
}

impl<F, A, T, E> Retryable<ByAttempt> for F
where
    F: FnMut(Attempt) -> A,
    A: Future<Output = Result<T, E>>,
{
    type Operation = ByAttempt<F>;

    fn retry(self, policy: &RetryPolicy) -> Retry<'_, ByAttempt<F>> {
        Retry::new(ByAttempt(self), policy)
    }
}

/// A call to be awaited, see [`Retryable`].
///
/// - `Ok` is the answer, unless [`classify`](Retry::classify) says otherwise. If a call stops with an `Ok` that was classified as a failure, it returns that
///   `Ok`: the last result, as it came.
/// - An attempt that takes longer than the policy's `attempt_timeout` is dropped, and is in doubt.
/// - A change of the network under an attempt leaves the attempt alone, unless [`restart`](Retry::restart) was asked for.
/// - Within another call's attempt it makes one attempt, and the outer call decides; otherwise layers would multiply. See [`Retryable`].
/// - Dropping the call ends it, and whatever it has in flight, at once.
/// - If it has to wait, or an attempt has a limit, it needs a tokio runtime with time enabled; without one it panics then.
/// - It uses the hub's clock, or the system's without a hub. Where a test pauses tokio's time, its waits end at once in any case. With a hub on a
///   [`TokioClock`](crate::TokioClock) the time that its attempts take counts too.
#[must_use = "a call does nothing unless awaited"]
pub struct Retry<'p, O, C = EveryError, N = Nobody> {
    operation: O,
    policy: &'p RetryPolicy,
    site: CallSite<'p>,
    classify: C,
    notify: N,
}

impl<'p, O> Retry<'p, O> {
    fn new(operation: O, policy: &'p RetryPolicy) -> Retry<'p, O> {
        Retry {
            operation,
            policy,
            site: CallSite::new(),
            classify: EveryError,
            notify: Nobody,
        }
    }
}

impl<'p, O, T, E, C, N> Retry<'p, O, C, N>
where
    O: Operation<Output = Result<T, E>>,
{
    call_site_setters!(with restart);

    /// Which errors are worth another attempt. Any other error stops the call with `permanent`.
    pub fn when<W: FnMut(&E) -> bool>(self, when: W) -> Retry<'p, O, When<W>, N> {
        self.classified(When(when))
    }

    /// What each result means. Replaces [`when`](Retry::when).
    ///
    /// Events and report then say so too. Without it every failure is [`OtherIo`](crate::FailureKind::OtherIo) there, because nothing is known about the
    /// error's type:
    ///
    /// ```
    /// use comeback::{FailureKind, RetryPolicy, Retryable, Verdict, What};
    /// use std::io::ErrorKind;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// let connect = async || Err::<(), _>(std::io::Error::from(ErrorKind::ConnectionRefused));
    /// let error = connect
    ///     .retry(&RetryPolicy::default())
    ///     .classify(|result| match result {
    ///         Err(error) if error.kind() == ErrorKind::PermissionDenied => Verdict::PERMANENT,
    ///         result => Verdict::of_io(result),
    ///     })
    ///     .await
    ///     .unwrap_err();
    /// assert_eq!(error.report().attempts[0].what, What::Failure(FailureKind::ConnectRefused));
    /// # }
    /// ```
    ///
    /// A kind that means "never sent" must be true of the whole attempt ([`Verdict::Unproven`] where it is not known to be). For example, `reqwest::Error::is_connect` is no proof if a redirect may have been
    /// followed. An `Executor` knows the kinds of reqwest's errors, and notices redirects.
    pub fn classify<V: FnMut(&Result<T, E>) -> Verdict>(
        self,
        classify: V,
    ) -> Retry<'p, O, By<V>, N> {
        self.classified(By(classify))
    }

    /// Hears the call's events in order: attempts that failed, waits, the end. To have the whole history of a call that went well too, fold
    /// them: `|event| report.hear(&event.event)`.
    pub fn notify<L: FnMut(&RetryEvent<'_>)>(self, notify: L) -> Retry<'p, O, C, To<L>> {
        Retry {
            operation: self.operation,
            policy: self.policy,
            site: self.site,
            classify: self.classify,
            notify: To(notify),
        }
    }

    /// To an attempt around the call the request has no key: whoever made the call does not know whether its next request has the same one.
    #[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
    pub(super) fn without_key_outside(mut self) -> Self {
        self.site.shows_key = false;
        self
    }

    pub(super) fn classified<V>(self, classify: V) -> Retry<'p, O, V, N> {
        Retry {
            operation: self.operation,
            policy: self.policy,
            site: self.site,
            classify,
            notify: self.notify,
        }
    }
}

impl<'p, O, T, E, C, N> IntoFuture for Retry<'p, O, C, N>
where
    O: Operation<Output = Result<T, E>>,
    C: Classify<Result<T, E>>,
    N: Notify,
{
    type Output = Result<T, RetryError<E>>;
    type IntoFuture = Retrying<'p, O, C, N>;

    fn into_future(self) -> Retrying<'p, O, C, N> {
        let block = Block {
            operation: self.operation,
            keys: None,
            earlier: None,
            as_inner: self.site.as_inner(self.policy),
            label: self.site.label,
            classify: self.classify,
            notify: self.notify,
        };
        Retrying {
            drive: Drive::new(block, self.policy, self.site.setting()),
        }
    }
}

pin_project! {
    /// A call under way, see [`Retryable`].
    #[must_use = "a call does nothing unless awaited"]
    pub struct Retrying<'p, O, C, N>
    where
        O: Operation,
        C: Classify<O::Output>,
        N: Notify,
    {
        #[pin]
        drive: Drive<Block<'p, O, C, N>, &'p RetryPolicy>,
    }
}

impl<O, T, E, C, N> Future for Retrying<'_, O, C, N>
where
    O: Operation<Output = Result<T, E>>,
    C: Classify<Result<T, E>>,
    N: Notify,
{
    type Output = Result<T, RetryError<E>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, RetryError<E>>> {
        let mut drive = self.project().drive;
        let Driven {
            ended,
            reason,
            history,
        } = ready!(drive.as_mut().poll(context));
        let (last, earlier) = match ended {
            Ended::CameBack(Ok(answer)) => return Poll::Ready(Ok(answer)),
            Ended::CameBack(Err(error)) => (Some(error), None),
            Ended::TimedOut => (None, drive.project_attempts().earlier.take()),
            Ended::Refused { until } => {
                return Poll::Ready(Err(RetryError::refused(until, history.report())));
            }
        };
        // An error that was classified as the answer is not worth another attempt.
        let reason = reason.unwrap_or(Reason::Permanent);
        let earlier = earlier.and_then(Result::err);
        let report = history.report();
        Poll::Ready(Err(RetryError::new(last, earlier, reason, report)))
    }
}

/// The operation with what the app says of it and wants to hear.
struct Block<'p, O: Operation, C, N> {
    operation: O,
    /// What the latest attempt before the one in flight came back with.
    earlier: Option<O::Output>,
    /// Of the call, once an attempt was asked for.
    keys: Option<Arc<Keys>>,
    as_inner: Option<RequestFacts>,
    label: Option<&'p str>,
    classify: C,
    notify: N,
}

impl<O, C, N> Attempts for Block<'_, O, C, N>
where
    O: Operation,
    C: Classify<O::Output>,
    N: Notify,
{
    type Output = O::Output;
    type Future = O::Future;

    fn attempt(&mut self, start: &AttemptStart) -> O::Future {
        let keys = &mut self.keys;
        self.operation.make(|| Attempt::of_call(keys, start))
    }

    fn as_inner(&self, _above: &OuterAttempt) -> Option<RequestFacts> {
        self.as_inner
    }

    fn outcome<T>(
        &mut self,
        output: &mut O::Output,
        _inner: &[InnerRequest],
        decide: impl FnOnce(&Outcome<'_>) -> T,
    ) -> T {
        decide(&self.classify.verdict(output).outcome())
    }

    fn superseded(&mut self, output: O::Output) {
        self.earlier = Some(output);
    }

    fn hear(&mut self, call_id: u64, event: Event) {
        self.notify.hear(&RetryEvent {
            call_id,
            label: self.label,
            event,
        });
    }
}
