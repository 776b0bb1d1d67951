//! One layer acts, the outermost: a call that begins within another call's attempt makes one attempt, and leaves the rest to that one. Else
//! layers multiply: 16 requests for 4.

use std::cell::Cell;

thread_local! {
    /// Whether this thread is polling an attempt.
    static ATTEMPTING: Cell<bool> = const { Cell::new(false) };
}

/// Whether whoever asks is part of another call's attempt: polled by it, on its task.
pub(super) fn is_above() -> bool {
    ATTEMPTING.get()
}

/// Polls an attempt.
pub(super) fn within<T>(poll: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ATTEMPTING.set(self.0); // after a panic too
        }
    }
    let _before = Before(ATTEMPTING.replace(true));
    poll()
}
