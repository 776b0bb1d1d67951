//! What `.retry` is called on: a function without arguments, or one that is handed its [`Attempt`].

use super::attempt::Attempt;

/// Makes the attempts of a call. Implemented here only, for what [`Retryable`](crate::Retryable) is implemented for.
pub trait Operation: sealed::Sealed {
    /// What an attempt comes back with.
    type Output;
    /// An attempt.
    type Future: Future<Output = Self::Output>;

    /// Makes an attempt, and asks for its [`Attempt`] only if it wants one.
    fn make(&mut self, attempt: impl FnOnce() -> Attempt) -> Self::Future;
}

mod sealed {
    pub trait Sealed {}
}

/// An operation that takes nothing.
#[derive(Clone, Copy, Debug)]
pub struct ByItself<F = ()>(pub(super) F);

impl<F> sealed::Sealed for ByItself<F> {}

impl<F: FnMut() -> A, A: Future> Operation for ByItself<F> {
    type Output = A::Output;
    type Future = A;

    fn make(&mut self, _attempt: impl FnOnce() -> Attempt) -> A {
        (self.0)()
    }
}

/// An operation that takes its [`Attempt`].
#[derive(Clone, Copy, Debug)]
pub struct ByAttempt<F = ()>(pub(super) F);

impl<F> sealed::Sealed for ByAttempt<F> {}

impl<F: FnMut(Attempt) -> A, A: Future> Operation for ByAttempt<F> {
    type Output = A::Output;
    type Future = A;

    fn make(&mut self, attempt: impl FnOnce() -> Attempt) -> A {
        (self.0)(attempt())
    }
}
