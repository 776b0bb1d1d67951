//! The retry budget: what all calls to one origin together may spend on retries.
//!
//! Backoff spaces the retries of one call. It does not limit what all calls add to the load of a server that is down: with four attempts each, up to four times
//! as much. A budget does. It is a token bucket, as gRPC's retry throttling and smithy's retry quota have it (gRFC A6; smithy-rs, "Retry behavior").
//!
//! ```
//! use comeback::{RetryBudget, TokenBucket};
//!
//! let budget = RetryBudget::new(2)?;
//! let mut tokens = TokenBucket::new(budget);
//! assert!(tokens.take() && tokens.take());
//! assert!(!tokens.take()); // a call stops here, with the reason `budget`
//! tokens.put_back(); // a retry succeeded
//! tokens.first_attempts_succeeded(5); // half a token
//! assert!(tokens.take() && !tokens.has_one());
//! # Ok::<(), comeback::PolicyError>(())
//! ```

use crate::connectivity::{NetworkState, Snapshot};
use crate::outcome::OutcomeClass;
use crate::policy::RetryBudget;

/// A token, in the unit that is counted.
const TOKEN: u32 = 1_000;
/// What a first attempt that succeeds adds.
const FIRST_SUCCESS: u32 = 100;

/// The tokens of one origin. It never holds less than none, nor more than the budget's capacity. So the retries that took a token are never more than the
/// capacity and what was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    capacity: u32,
    /// In thousandths of a token.
    level: u32,
}

impl TokenBucket {
    /// A full one.
    pub fn new(budget: RetryBudget) -> TokenBucket {
        let capacity = u32::from(budget.capacity()) * TOKEN;
        TokenBucket {
            capacity,
            level: capacity,
        }
    }

    /// Whether a whole token is left: what [`decide`](crate::decide) is told.
    pub fn has_one(&self) -> bool {
        self.level >= TOKEN
    }

    /// Takes a token for one retry. False if there is none: then nothing is taken, and the retry is not made.
    ///
    /// Each token that was taken ends once: it is spent by an attempt that fails, or [put back](Self::put_back).
    #[must_use = "a retry without a token is not made"]
    pub fn take(&mut self) -> bool {
        let has_one = self.has_one();
        if has_one {
            self.level -= TOKEN;
        }
        has_one
    }

    /// The retry succeeded, or was not made after all.
    pub fn put_back(&mut self) {
        self.add(TOKEN);
    }

    /// So many first attempts succeeded since this was last said: a tenth of a token each.
    pub fn first_attempts_succeeded(&mut self, count: u64) {
        let added = count.saturating_mul(FIRST_SUCCESS.into());
        self.add(u32::try_from(added).unwrap_or(u32::MAX));
    }

    /// Whether it is full: then it may be forgotten, for a new one is the same.
    pub fn is_full(&self) -> bool {
        self.level == self.capacity
    }

    fn add(&mut self, thousandths: u32) {
        self.level = self.level.saturating_add(thousandths).min(self.capacity);
    }
}

/// Whether the retry after this failure costs a token: the server answered, or may have been reached, on a network that was there all the time. What a dead
/// network does to a call says nothing about the server.
///
/// `noted` is the snapshot before the attempt, `now` the one after it.
pub fn costs_a_token(class: OutcomeClass, noted: &Snapshot, now: &Snapshot) -> bool {
    let may_be_the_server = match class {
        OutcomeClass::TransientStatus | OutcomeClass::InDoubt => true,
        OutcomeClass::NeverSent
        | OutcomeClass::Success
        | OutcomeClass::PermanentStatus
        | OutcomeClass::PermanentFailure => false,
    };
    may_be_the_server && !was_away(noted, now)
}

/// Whether the network is known to have been away at any time from `noted` to `now`, or is another one.
pub(crate) fn was_away(noted: &Snapshot, now: &Snapshot) -> bool {
    // A network that came back is another path. Only where the monitor failed while it was away the path stays as it was.
    let monitor_failed = now.state == NetworkState::Unknown && now.epoch > noted.epoch;
    noted.is_absent() || now.is_absent() || now.path > noted.path || monitor_failed
}
