//! One round, as the operation sees it: its records, and its attempt.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::super::attempt::Attempt;

/// The records that go with one round of a [`batch`](fn@crate::batch), as the slice that they are.
///
/// ```
/// use comeback::{batch, RetryPolicy, Round};
///
/// async fn post(orders: &[u32], keys: Vec<String>) -> Result<Vec<Result<(), String>>, String> {
///     # let _ = keys;
///     Ok(orders.iter().map(|_| Ok(())).collect())
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let policy = RetryPolicy::batch();
/// let sent = batch(&policy, vec![17, 18], async |orders: Round<u32>| {
///     // An order's key is the same in whatever rounds it is part of.
///     let keys = orders.iter().map(|order| orders.attempt().key(&order.to_string()));
///     post(&orders, keys.collect()).await
/// });
/// assert!(sent.await.is_complete());
/// # }
/// ```
#[derive(Clone)]
pub struct Round<R> {
    records: Arc<[R]>,
    attempt: Attempt,
}

/// Makes the rounds of a batch: any function over a [`Round`] as [`batch`](fn@crate::batch) takes it. Not to be implemented.
pub trait RoundOperation<R> {
    /// Of one record.
    type Answer;
    /// Of one record, or of a whole round.
    type Error;
    /// A round.
    type Future: Future<Output = Results<Self::Answer, Self::Error>>;

    /// Makes a round.
    fn make(&mut self, round: Round<R>) -> Self::Future;
}

/// What a round answers with: one result for each record, or one error for all.
type Results<T, E> = Result<Vec<Result<T, E>>, E>;

impl<R, F, A, T, E> RoundOperation<R> for F
where
    F: FnMut(Round<R>) -> A,
    A: Future<Output = Results<T, E>>,
{
    type Answer = T;
    type Error = E;
    type Future = A;

    fn make(&mut self, round: Round<R>) -> A {
        self(round)
    }
}

impl<R> Round<R> {
    pub(super) fn new(records: Arc<[R]>, attempt: Attempt) -> Round<R> {
        Round { records, attempt }
    }

    /// Its number, and keys that are the same in every round. The records of a round differ from those of the one before: a key for a request with more
    /// than one of them would name another request each time.
    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }
}

impl<R> Deref for Round<R> {
    type Target = [R];

    fn deref(&self) -> &[R] {
        &self.records
    }
}

impl<R: fmt::Debug> fmt::Debug for Round<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Round")
            .field("records", &&self.records)
            .field("attempt", &self.attempt)
            .finish()
    }
}
