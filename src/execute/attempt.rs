//! One attempt, as the operation that makes it sees it: its number, and keys that are the same in every attempt of its call.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::drive::AttemptStart;
use super::layer::OuterAttempt;

/// An attempt of a call, handed to operations that ask for it: see [`Retryable`](crate::Retryable) and [`Round`](crate::Round).
///
/// ```
/// use comeback::{Attempt, RetryPolicy, Retryable};
///
/// async fn order(key: String) -> Result<(), std::io::Error> {
///     # let _ = key;
///     Ok(()) // a POST with `Idempotency-Key: {key}`
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let place = async |attempt: Attempt| order(attempt.key("order")).await;
/// place.retry(&RetryPolicy::payment()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Attempt {
    number: u32,
    keys: Arc<Keys>,
}

/// The keys of one call.
pub(super) struct Keys {
    /// By the names they were asked for.
    made: Mutex<Vec<(String, String)>>,
    /// A call within another call's attempt makes one attempt. The next time it is a new call, with new keys.
    above: Option<Arc<OuterAttempt>>,
}

impl Attempt {
    /// `keys` are the call's, once there are any.
    pub(super) fn of_call(keys: &mut Option<Arc<Keys>>, start: &AttemptStart) -> Attempt {
        let keys = keys.get_or_insert_with(|| {
            Arc::new(Keys {
                made: Mutex::default(),
                above: start.above.clone(),
            })
        });
        Attempt {
            number: start.resends.saturating_add(1),
            keys: keys.clone(),
        }
    }

    /// The attempt's number, from 1. Attempts that were begun anew are numbered too.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// An idempotency key, a random UUID. It is the same for this name in every attempt of the call, and differs for every other name and every other
    /// call. A request with such a key may be repeated, if the server supports keys.
    ///
    /// A key that the operation makes by itself differs in each attempt, and so does a key that an `Executor` makes for a request: to the
    /// server these are two orders. Within another call's attempt the outer call decides and this call's keys change too: ask the outer call's attempt.
    pub fn key(&self, name: &str) -> String {
        let mut made = self
            .keys
            .made
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((_, key)) = made.iter().find(|(known, _)| known == name) {
            return key.clone();
        }
        let key = uuid::Uuid::new_v4().to_string();
        if let Some(above) = &self.keys.above {
            above.note_key(&key);
        }
        made.push((name.to_owned(), key.clone()));
        key
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Attempt")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
