//! A value behind a lock, and those who wait for it to change. No wake-up is lost, because a waiter reads the value under the same lock.
//!
//! It knows no runtime and no retrying; `tests/lost_wakeups.rs` runs it under a model checker.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use slab::Slab;

use super::sync::{AtomicU32, Mutex, Ordering};

/// The value and the wakers.
#[derive(Debug)]
pub(super) struct Waiters<V> {
    inner: Mutex<Inner<V>>,
    /// A wrapping generation counter: it grows with each wake, and a slot of an older generation is empty. It is changed under the lock, so the holder of
    /// the lock can rely on it.
    round: AtomicU32,
}

#[derive(Debug)]
struct Inner<V> {
    value: V,
    wakers: Slab<Waker>,
}

/// Where a waiter's waker lies. A waiter that has listened must [`leave`](Waiters::leave) in the end.
#[derive(Debug, Default)]
pub(super) struct WakerSlot(Option<Held>);

#[derive(Debug)]
struct Held {
    round: u32,
    key: u32,
}

impl<V> Waiters<V> {
    pub(super) fn new(value: V) -> Waiters<V> {
        let wakers = Slab::new();
        Waiters {
            inner: Mutex::new(Inner { value, wakers }),
            round: AtomicU32::new(0),
        }
    }

    /// Changes the value; wakes everyone if `change` says so beside its answer. The wakers run after the lock is released, for one of
    /// them may end a task that waits here.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut V) -> (T, bool)) -> T {
        let (answer, woken) = self.with(|inner| {
            let (answer, wakes) = change(&mut inner.value);
            let woken = if wakes {
                self.round.fetch_add(1, Ordering::Release);
                // Most of them will listen again, in their next attempts.
                let room = Slab::with_capacity(inner.wakers.len());
                mem::replace(&mut inner.wakers, room)
            } else {
                Slab::new()
            };
            (answer, woken)
        });
        for (_, waker) in woken {
            // If one of them panics, the others are woken all the same.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
        answer
    }

    /// Reads the value, and from now on the next wake reaches `waker`.
    pub(super) fn listen<T>(
        &self,
        slot: &mut WakerSlot,
        waker: &Waker,
        read: impl FnOnce(&V) -> T,
    ) -> T {
        let (answer, _replaced) = self.with(|inner| {
            let round = self.round.load(Ordering::Relaxed);
            let replaced = match &slot.0 {
                Some(held) if held.round == round => {
                    let known = &mut inner.wakers[held.key as usize];
                    (!known.will_wake(waker)).then(|| mem::replace(known, waker.clone()))
                }
                _ => {
                    let key = inner.wakers.insert(waker.clone()) as u32; // 24 bytes each: never so many
                    slot.0 = Some(Held { round, key });
                    None
                }
            };
            (read(&inner.value), replaced) // dropped without the lock: it may be the last of its task
        });
        answer
    }

    /// Takes the waker back; without one nothing happens.
    pub(super) fn leave(&self, slot: &mut WakerSlot) {
        let Some(held) = slot.0.take() else { return };
        let is_there = || held.round == self.round.load(Ordering::Acquire);
        if !is_there() {
            return; // it was woken, so it need not queue for the lock
        }
        let _left = self.with(|inner| {
            is_there().then(|| inner.wakers.try_remove(held.key as usize)) // dropped without the lock too
        });
    }

    /// How many wait.
    pub(super) fn count(&self) -> usize {
        self.with(|inner| inner.wakers.len())
    }

    fn with<T>(&self, access: impl FnOnce(&mut Inner<V>) -> T) -> T {
        // Poisoned: the clone of a waker panicked. The value and the wakers are valid all the same.
        let mut inner = self
            .inner
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        access(&mut inner)
    }
}
