//! One layer acts, the outermost, on what the layers further in know. A call that begins within another call's attempt makes one attempt and leaves the
//! rest to the outer call; otherwise layers would multiply: 16 requests instead of 4. Before it sends anything it reports the request; otherwise the
//! outer layer would repeat what it must not.
//!
//! What is polled by an attempt, on its task, is within it. A spawned task is not, not even on a [`LocalSet`](tokio::task::LocalSet) that the attempt
//! runs.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use smallvec::SmallVec;
use tokio::task;

use crate::outcome::{Evidence, InnerRequest};
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;

/// The requests of one attempt. Those that are the same to the core are counted once.
pub(super) type InnerRequests = SmallVec<[InnerRequest; 3]>;

thread_local! {
    /// The attempt that this thread is polling.
    static HERE: RefCell<Option<Here>> = const { RefCell::new(None) };
}

struct Here {
    task: Option<task::Id>,
    attempt: Attempting,
}

/// A call's place among the layers.
#[derive(Default)]
pub(super) struct Attempting {
    /// The attempt that this call is part of.
    above: Option<Arc<OuterAttempt>>,
    /// The attempt of this call that is in flight, once a layer further in has asked for it.
    own: Option<Arc<OuterAttempt>>,
}

/// An attempt, as the layers further in see it.
#[derive(Debug, Default)]
pub(super) struct OuterAttempt {
    /// The attempt around it. Its layer acts, or reports further out.
    above: Option<Arc<OuterAttempt>>,
    requests: Mutex<Requests>,
    ended_by_time: AtomicBool,
    /// Keys that calls further in made. They will differ in the next attempt.
    made_keys: Mutex<Vec<String>>,
}

/// What was reported, separately for requests that may be repeated and those that may not.
#[derive(Debug, Default)]
struct Requests {
    /// Requests whose end has not been reported yet.
    open: [u32; 2],
    /// Whether there was one that may have gone out, and one that provably did not.
    sent: [bool; 2],
    unsent: bool,
    /// The longest that a server asked for.
    retry_after: Option<Duration>,
}

/// A request, as the attempts around it know it. Until its end is reported, it may have gone out.
#[derive(Debug)]
pub(super) struct OuterEntry {
    above: Arc<OuterAttempt>,
    may_repeat: bool,
}

impl Attempting {
    /// A call that begins here, on this thread.
    pub(super) fn begin() -> Attempting {
        let own = HERE.with_borrow_mut(|here| {
            let here = here.as_mut()?;
            (here.task == task::try_id()).then(|| here.attempt.own())
        });
        Attempting {
            above: own,
            own: None,
        }
    }

    /// Whether another call decides what goes again.
    pub(super) fn stands_down(&self) -> bool {
        self.above.is_some()
    }

    pub(super) fn above(&self) -> Option<&Arc<OuterAttempt>> {
        self.above.as_ref()
    }

    /// An attempt begins. What was reported to the one before is forgotten.
    pub(super) fn begin_attempt(&mut self) {
        self.own = None;
    }

    /// Polls the attempt.
    pub(super) fn within<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        struct Entered<'a> {
            attempting: &'a mut Attempting,
            before: Option<Here>,
        }
        impl Drop for Entered<'_> {
            fn drop(&mut self) {
                // After a panic too.
                if let Some(here) = HERE.replace(self.before.take()) {
                    *self.attempting = here.attempt;
                }
            }
        }
        let here = Here {
            task: task::try_id(),
            attempt: std::mem::take(self),
        };
        let before = HERE.replace(Some(here));
        let _entered = Entered {
            attempting: self,
            before,
        };
        poll()
    }

    /// What the layers further in told of the attempt in flight.
    pub(super) fn inner_requests(&self) -> (InnerRequests, Option<Duration>) {
        match &self.own {
            None => (InnerRequests::new(), None),
            Some(attempt) => attempt.requests().inner_requests(),
        }
    }

    /// The attempt in flight ends by time, so that what layers further in have open ends by time too.
    pub(super) fn end_by_time(&self) {
        if let Some(attempt) = &self.own {
            attempt.ended_by_time.store(true, Ordering::Release);
        }
    }

    /// Whether the call ends with an attempt around it that ended by time.
    pub(super) fn is_ended_by_time(&self) -> bool {
        let all = std::iter::successors(self.above.as_ref(), |attempt| attempt.above.as_ref());
        { all }.any(|attempt| attempt.ended_by_time.load(Ordering::Acquire))
    }

    fn own(&mut self) -> Arc<OuterAttempt> {
        let above = &self.above;
        let made = || {
            Arc::new(OuterAttempt {
                above: above.clone(),
                ..OuterAttempt::default()
            })
        };
        self.own.get_or_insert_with(made).clone()
    }
}

impl OuterAttempt {
    /// A layer further in makes a request, of these facts as it was before that layer made a key for it.
    pub(super) fn note(self: &Arc<Self>, policy: &RetryPolicy, facts: &RequestFacts) -> OuterEntry {
        let may_repeat = InnerRequest::of(policy, facts, false).may_repeat;
        self.tell_all(|requests| {
            let open = &mut requests.open[usize::from(may_repeat)];
            *open = open.saturating_add(1);
        });
        OuterEntry {
            above: self.clone(),
            may_repeat,
        }
    }

    /// A call further in made this key. It is the same for all attempts of that call, which makes no more than this one.
    pub(super) fn note_key(&self, key: &str) {
        lock(&self.made_keys).push(key.to_owned());
    }

    /// Whether a key that a call further in made, here or in an attempt around this one, is in this line of a header.
    #[cfg(feature = "reqwest")]
    pub(super) fn has_made_key_in(&self, line: &str) -> bool {
        let all = std::iter::successors(Some(self), |attempt| attempt.above.as_deref());
        { all }.any(|attempt| {
            lock(&attempt.made_keys)
                .iter()
                .any(|made| line.contains(made))
        })
    }

    fn tell_all(&self, change: impl Fn(&mut Requests)) {
        let all = std::iter::successors(Some(self), |attempt| attempt.above.as_deref());
        { all }.for_each(|attempt| change(&mut attempt.requests()));
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        lock(&self.requests)
    }
}

impl OuterEntry {
    /// What became of it, and how long its server asked not to be tried again.
    pub(super) fn ended(self, sent_nothing: bool, retry_after: Option<Duration>) {
        let place = usize::from(self.may_repeat);
        self.above.tell_all(|requests| {
            let open = &mut requests.open[place];
            *open = open.saturating_sub(1);
            if sent_nothing {
                requests.unsent = true;
            } else {
                requests.sent[place] = true;
            }
            requests.retry_after = requests.retry_after.max(retry_after);
        });
    }
}

impl Requests {
    fn inner_requests(&self) -> (InnerRequests, Option<Duration>) {
        let mut inner = InnerRequests::new();
        for may_repeat in [false, true] {
            let place = usize::from(may_repeat);
            if self.open[place] > 0 || self.sent[place] {
                inner.push(InnerRequest {
                    may_repeat,
                    sent_nothing: false,
                });
            }
        }
        if self.unsent {
            inner.push(InnerRequest {
                may_repeat: false,
                sent_nothing: true,
            });
        }
        (inner, self.retry_after)
    }
}

/// What a driver knows of an attempt, with what the layers further in told.
pub(super) fn with_inner<'a>(known: &Evidence<'_>, inner: &'a [InnerRequest]) -> Evidence<'a> {
    Evidence {
        sent_nothing: known.sent_nothing,
        body_untouched: known.body_untouched,
        body_spent: known.body_spent,
        went_out: known.went_out,
        inner,
    }
}

fn lock<T>(behind: &Mutex<T>) -> MutexGuard<'_, T> {
    behind.lock().unwrap_or_else(PoisonError::into_inner)
}
