//! Calls in flight, and the news about them for Kotlin. Every call that was entered ends exactly once, whatever happens to its task.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

use crate::told::{End, EndKind, Told};

#[derive(Default)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    closed: bool,
    /// Without a handle while its task is being made.
    in_flight: HashMap<i64, Option<AbortHandle>>,
    told: Vec<Told>,
}

/// Why a call could not be entered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotEntered {
    Closed,
    NumberInUse,
}

impl Mailbox {
    /// A call begins. Its task owns the returned value; if that is dropped without an end, it reports an end.
    pub(crate) fn enter(self: &Arc<Self>, call: i64) -> Result<Ending, NotEntered> {
        let mut state = self.lock();
        if state.closed {
            return Err(NotEntered::Closed);
        }
        if state.in_flight.contains_key(&call) {
            return Err(NotEntered::NumberInUse);
        }
        state.in_flight.insert(call, None);
        Ok(Ending {
            mailbox: self.clone(),
            call,
            is_told: false,
        })
    }

    /// By this handle the call's task can be ended. It may have ended by itself.
    pub(crate) fn runs(&self, call: i64, task: AbortHandle) {
        if let Some(place) = self.lock().in_flight.get_mut(&call) {
            *place = Some(task);
        }
    }

    /// Ends a call's task; the call's end is told when the task is gone. A call that is over stays over.
    pub(crate) fn cancel(&self, call: i64) {
        // Not under the lock: a task that ends in here tells its end.
        let task = self.lock().in_flight.get(&call).cloned().flatten();
        if let Some(task) = task {
            task.abort();
        }
    }

    pub(crate) fn tell(&self, told: Told) {
        self.lock().told.push(told);
        self.arrived.notify_one();
    }

    /// From now on no call is entered. The owner of the runtime has to end those in flight. True the first time.
    pub(crate) fn close(&self) -> bool {
        let was_closed = std::mem::replace(&mut self.lock().closed, true);
        self.arrived.notify_all();
        !was_closed
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.lock().in_flight.len()
    }

    /// Blocks until something is there to tell. Nothing: closed, and every call has ended.
    pub(crate) fn receive(&self) -> Vec<Told> {
        let is_idle = |state: &mut State| {
            state.told.is_empty() && !(state.closed && state.in_flight.is_empty())
        };
        let mut state = self
            .arrived
            .wait_while(self.lock(), is_idle)
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.told)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic runs under it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a call, still to be told.
pub(crate) struct Ending {
    mailbox: Arc<Mailbox>,
    call: i64,
    is_told: bool,
}

impl Ending {
    pub(crate) fn tell(mut self, end: End) {
        self.is_told = true;
        self.over(end);
    }

    fn over(&self, end: End) {
        let mut state = self.mailbox.lock();
        state.in_flight.remove(&self.call);
        state.told.push(Told::end(self.call, end));
        drop(state);
        self.mailbox.arrived.notify_all();
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if self.is_told {
            return;
        }
        self.over(if std::thread::panicking() {
            End::of_kind(EndKind::Panicked, "something of ours panicked")
        } else if self.mailbox.is_closed() {
            End::of_kind(EndKind::Closed, "the client was closed")
        } else {
            End::of_kind(EndKind::Cancelled, "the caller ended it")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::told::{End, EndKind};

    fn kinds(told: &[Told]) -> Vec<(i64, EndKind)> {
        let end = |told: &Told| told.end.as_ref().map(|end| (told.call, end.kind));
        told.iter().filter_map(end).collect()
    }

    #[test]
    fn a_call_that_is_dropped_without_an_end_says_why() {
        let mailbox = Arc::new(Mailbox::default());
        drop(mailbox.enter(1).unwrap());
        let ending = mailbox.enter(2).unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _ending = ending;
            panic!("for the test");
        }));
        assert!(panicked.is_err());
        let ending = mailbox.enter(3).unwrap();
        mailbox.close();
        drop(ending);
        assert_eq!(
            kinds(&mailbox.receive()),
            [
                (1, EndKind::Cancelled),
                (2, EndKind::Panicked),
                (3, EndKind::Closed)
            ]
        );
    }

    #[test]
    fn an_end_is_told_once() {
        let mailbox = Arc::new(Mailbox::default());
        mailbox
            .enter(1)
            .unwrap()
            .tell(End::of_kind(EndKind::Invalid, ""));
        assert_eq!(kinds(&mailbox.receive()), [(1, EndKind::Invalid)]);
        assert_eq!(mailbox.in_flight(), 0);
    }

    #[test]
    fn a_number_in_use_is_refused_and_may_be_used_again_after_the_end() {
        let mailbox = Arc::new(Mailbox::default());
        let ending = mailbox.enter(1).unwrap();
        assert_eq!(mailbox.enter(1).err(), Some(NotEntered::NumberInUse));
        drop(ending);
        mailbox.enter(1).unwrap();
    }

    #[test]
    fn nothing_is_the_last_word_and_comes_when_all_calls_have_ended() {
        let mailbox = Arc::new(Mailbox::default());
        let ending = mailbox.enter(1).unwrap();
        assert!(mailbox.close());
        assert!(!mailbox.close());
        assert_eq!(mailbox.enter(2).err(), Some(NotEntered::Closed));
        let hears = std::thread::spawn({
            let mailbox = mailbox.clone();
            move || (mailbox.receive(), mailbox.receive())
        });
        drop(ending);
        let (news, last) = hears.join().unwrap();
        assert_eq!(kinds(&news), [(1, EndKind::Closed)]);
        assert_eq!(last, []);
    }
}
