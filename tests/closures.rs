//! What `.retry` is called on, as programs write it: compiled and run. A closure may borrow and capture, and the call may be spawned.

#![allow(clippy::unwrap_used)] // a test says no by panicking

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use comeback::{Attempt, Connectivity, RetryEvent, RetryPolicy, Retryable, TokioClock, Verdict};
use tokio::sync::Mutex;
use tokio::task::LocalSet;

/// Fails once.
#[derive(Debug, Default)]
struct Shelf {
    asked: AtomicU32,
}

impl Shelf {
    async fn load(&self, name: &str) -> io::Result<String> {
        tokio::task::yield_now().await;
        match self.asked.fetch_add(1, Ordering::Relaxed) {
            0 => Err(ErrorKind::ConnectionReset.into()),
            _ => Ok(name.to_owned()),
        }
    }
}

/// A program's own client.
struct Library {
    hub: Connectivity,
    policy: RetryPolicy,
    shelf: Shelf,
}

impl Library {
    fn new() -> Arc<Library> {
        Arc::new(Library {
            hub: Connectivity::with_clock(TokioClock::new()),
            policy: RetryPolicy::default(),
            shelf: Shelf::default(),
        })
    }

    /// Borrows `self` and an argument, with every hook there is.
    async fn borrow(&self, name: &str) -> io::Result<String> {
        let load = || self.shelf.load(name);
        let call = load
            .retry(&self.policy)
            .connectivity(&self.hub)
            .when(|error| error.kind() != ErrorKind::PermissionDenied)
            .notify(|event: &RetryEvent<'_>| assert_eq!(event.label, None));
        call.await.map_err(|error| error.into_error())
    }

    async fn borrow_in_an_async_closure(self: Arc<Self>, name: String) -> io::Result<String> {
        let load = async |attempt: Attempt| {
            let loaded = self.shelf.load(&name).await?;
            Ok(format!("{loaded} {}", attempt.number()))
        };
        let call = load.retry(&self.policy).connectivity(&self.hub);
        let call = call.classify(|result: &io::Result<String>| Verdict::of_io(result));
        call.await.map_err(|error| error.into_error())
    }

    async fn capture(self: Arc<Self>, name: String) -> io::Result<String> {
        let load = || {
            let (library, name) = (self.clone(), name.clone());
            async move { library.shelf.load(&name).await }
        };
        let call = load.retry(&self.policy).connectivity(&self.hub);
        call.await.map_err(|error| error.into_error())
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_that_borrows_itself_and_its_argument_can_be_spawned() {
    let library = Library::new();
    let spawned = tokio::spawn(async move { library.borrow("maps").await });
    assert_eq!(spawned.await.unwrap().unwrap(), "maps");
}

#[tokio::test(start_paused = true)]
async fn a_method_on_arc_self_can_be_spawned() {
    let library = Library::new();
    let spawned = tokio::spawn(library.capture("maps".to_owned()));
    assert_eq!(spawned.await.unwrap().unwrap(), "maps");
}

#[tokio::test(start_paused = true)]
async fn an_async_closure_that_borrows_can_be_spawned() {
    let library = Library::new();
    let spawned = tokio::spawn(library.borrow_in_an_async_closure("maps".to_owned()));
    assert_eq!(spawned.await.unwrap().unwrap(), "maps 2");
}

#[tokio::test(start_paused = true)]
async fn a_closure_that_borrows_what_the_task_owns_can_be_spawned() {
    let spawned = tokio::spawn(async {
        let (shelf, policy) = (Shelf::default(), RetryPolicy::default());
        let names = ["maps".to_owned(), "tales".to_owned()];
        let mut loaded = Vec::new();
        for name in &names {
            let load = || async { shelf.load(name).await };
            loaded.push(load.retry(&policy).await.unwrap());
        }
        loaded
    });
    assert_eq!(spawned.await.unwrap(), ["maps", "tales"]);
}

#[tokio::test(start_paused = true)]
async fn a_mutable_context_is_lent_to_one_attempt_after_the_other() {
    async fn dial(numbers: &mut Vec<u32>) -> io::Result<u32> {
        numbers.push(7);
        tokio::task::yield_now().await;
        match numbers.len() {
            1 => Err(ErrorKind::ConnectionReset.into()),
            length => Ok(length as u32),
        }
    }
    async fn call(numbers: &mut Vec<u32>) -> u32 {
        let policy = RetryPolicy::default();
        // An attempt that is dropped gives it back.
        let context = Mutex::new(numbers);
        let dial = async || {
            let mut numbers = context.lock().await;
            dial(&mut numbers).await
        };
        dial.retry(&policy).await.unwrap()
    }
    let spawned = tokio::spawn(async {
        let mut numbers = Vec::new();
        (call(&mut numbers).await, numbers)
    });
    assert_eq!(spawned.await.unwrap(), (2, vec![7, 7]));
}

#[tokio::test(start_paused = true)]
async fn data_of_one_thread_is_used_on_a_local_set() {
    let made = Rc::new(Cell::new(0));
    let local = LocalSet::new();
    let counted = made.clone();
    let call = local.spawn_local(async move {
        let policy = RetryPolicy::default();
        let load = async || {
            counted.set(counted.get() + 1);
            tokio::task::yield_now().await;
            match counted.get() {
                1 => Err(io::Error::from(ErrorKind::ConnectionReset)),
                made => Ok(made),
            }
        };
        load.retry(&policy).await.unwrap()
    });
    local.await;
    assert_eq!((call.await.unwrap(), made.get()), (2, 2));
}
