//! 100,000 calls wait on one hub; a task tells of the edge. How long until the last of them begins its next attempt, which then stays in
//! flight, and what does one take in memory? Beside them tokio's own `Notify` and `watch`, which wake and know nothing of attempts: `cargo bench --features tokio --bench
//! waiters`.
//!
//! Memory is what the allocator has handed out while all wait, less what there was before, by 100,000: once with the runtime's task around
//! each, once of the calls alone (future, timer, history, waker).

#![allow(clippy::expect_used)] // a bench says no by panicking

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use comeback::*;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, watch};

const CALLS: usize = 100_000;
const WORKERS: usize = 2;
const ROUNDS: usize = 9;

struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

#[allow(unsafe_code)] // it hands everything on
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// When each waiter came back after the edge, and what one took while it waited.
struct Measured {
    delays: Vec<Duration>,
    told: Duration,
    /// What all threads of the process worked from the edge to the last of them back: what is left when the machine is not ours alone.
    worked: Duration,
    bytes: i64,
}

/// Processor time of all threads so far; nothing where the system does not tell.
fn worked() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let nanos = threads.flatten().filter_map(|thread| {
        let line = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        line.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// Where waiters write down that they came back.
#[derive(Default)]
struct Book {
    back: Vec<AtomicI64>,
    count: AtomicUsize,
}

impl Book {
    fn new() -> Arc<Book> {
        Arc::new(Book {
            back: (0..CALLS).map(|_| AtomicI64::new(-1)).collect(),
            ..Book::default()
        })
    }

    /// Nanoseconds on the standard library's clock since the process's first question.
    fn now() -> i64 {
        static ORIGIN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        ORIGIN.elapsed().as_nanos() as i64
    }

    fn came_back(&self, number: usize) {
        self.back[number].store(Book::now(), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Release);
    }
}

fn measure<W>(
    wait: impl Fn(usize, Arc<Book>) -> W,
    all_wait: impl Fn() -> bool,
    edge: impl FnOnce() + Send + 'static,
) -> Measured
where
    W: Future<Output = ()> + Send + 'static,
{
    let runtime = runtime();
    let book = Book::new();
    let before = LIVE.load(Ordering::Relaxed);
    for number in 0..CALLS {
        runtime.spawn(wait(number, book.clone())); // its handle is dropped: nobody waits for it by itself
    }
    while !all_wait() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(200)); // the workers are idle again
    let bytes = (LIVE.load(Ordering::Relaxed) - before) / CALLS as i64;
    let before_edge = worked();
    let start = Book::now();
    let telling = runtime.spawn(async move {
        edge();
        Duration::from_nanos((Book::now() - start) as u64)
    });
    let told = runtime.block_on(telling).expect("told");
    while book.count.load(Ordering::Acquire) < CALLS {
        std::thread::sleep(Duration::from_millis(1));
    }
    let worked = worked().saturating_sub(before_edge);
    let back = book.back.iter().map(|at| at.load(Ordering::Relaxed));
    let mut delays: Vec<Duration> = back
        .map(|at| Duration::from_nanos((at - start) as u64))
        .collect();
    delays.sort_unstable();
    Measured {
        delays,
        told,
        worked,
        bytes,
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_time()
        .build()
        .expect("threads")
}

fn policy(spread: Duration) -> RetryPolicy {
    let hour = Duration::from_secs(3_600);
    let policy = RetryPolicy::builder().base(hour).cap(hour);
    let policy = policy.jitter(Jitter::None).max_elapsed(4 * hour);
    policy.wake_spread(spread).build().expect("valid")
}

fn calls(spread: Duration) -> Measured {
    let hub = Connectivity::new();
    let policy = Arc::new(policy(spread));
    let call = {
        let hub = hub.clone();
        move |number, book: Arc<Book>| {
            let (hub, policy) = (hub.clone(), policy.clone());
            async move {
                let mut made = false;
                let attempt = || {
                    let again = std::mem::replace(&mut made, true);
                    if again {
                        book.came_back(number);
                    }
                    async move {
                        if again {
                            pending::<()>().await; // it goes on
                        }
                        Err::<(), ()>(())
                    }
                };
                let _ = attempt.retry(&policy).connectivity(&hub).await;
            }
        }
    };
    let told = hub.clone();
    measure(
        call,
        || hub.waiting() == CALLS,
        move || {
            told.restored();
        },
    )
}

/// What a call takes that waits outside any task.
fn bytes_alone() -> i64 {
    let runtime = runtime();
    let _entered = runtime.enter();
    let hub = Connectivity::new();
    let policy = policy(Duration::ZERO);
    let fail = || async { Err::<(), ()>(()) };
    let before = LIVE.load(Ordering::Relaxed);
    let mut calls = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        calls.push(Box::pin(
            fail.retry(&policy).connectivity(&hub).into_future(),
        ));
    }
    let mut context = Context::from_waker(Waker::noop());
    for call in &mut calls {
        assert!(call.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(hub.waiting(), CALLS);
    (LIVE.load(Ordering::Relaxed) - before) / CALLS as i64
}

fn hub_alone() -> Measured {
    let hub = Connectivity::new();
    let wait = {
        let hub = hub.clone();
        move |number, book: Arc<Book>| {
            let hub = hub.clone();
            async move {
                hub.edge_after(0).await;
                book.came_back(number);
                pending::<()>().await; // as an attempt does
            }
        }
    };
    let told = hub.clone();
    measure(
        wait,
        || hub.waiting() == CALLS,
        move || {
            told.restored();
        },
    )
}

fn notify(with_timer: bool) -> Measured {
    let notify = Arc::new(Notify::new());
    let waiting = Arc::new(AtomicUsize::new(0));
    let wait = {
        let (notify, waiting) = (notify.clone(), waiting.clone());
        move |number, book: Arc<Book>| {
            let (notify, waiting) = (notify.clone(), waiting.clone());
            async move {
                waiting.fetch_add(1, Ordering::Relaxed);
                if with_timer {
                    let hour = Duration::from_secs(3_600);
                    let _ = tokio::time::timeout(hour, notify.notified()).await;
                } else {
                    notify.notified().await;
                }
                book.came_back(number);
                pending::<()>().await; // as an attempt does
            }
        }
    };
    measure(
        wait,
        || waiting.load(Ordering::Relaxed) == CALLS,
        move || notify.notify_waiters(),
    )
}

fn watch() -> Measured {
    let (sender, receiver) = watch::channel(0_u64);
    let waiting = Arc::new(AtomicUsize::new(0));
    let wait = {
        let waiting = waiting.clone();
        move |number, book: Arc<Book>| {
            let (mut receiver, waiting) = (receiver.clone(), waiting.clone());
            async move {
                waiting.fetch_add(1, Ordering::Relaxed);
                let _ = receiver.changed().await;
                book.came_back(number);
                pending::<()>().await; // as an attempt does
            }
        }
    };
    measure(
        wait,
        || waiting.load(Ordering::Relaxed) == CALLS,
        move || {
            let _ = sender.send(1);
        },
    )
}

fn main() {
    println!("{CALLS} waiters, {WORKERS} workers, the median of {ROUNDS} rounds");
    println!(
        "{:<44} {:>12} {:>10} {:>10} {:>10} {:>12}",
        "", "edge told in", "p50 back", "last back", "processor", "bytes each"
    );
    let none = Duration::ZERO;
    row("calls of `retry`, with timer and history", || calls(none));
    row("`Connectivity::edge_after` alone", hub_alone);
    row("tokio `Notify`", || notify(false));
    row("tokio `Notify` in a `timeout`", || notify(true));
    row("tokio `watch`", watch);

    println!("\na call alone, without a task: {} bytes", bytes_alone());

    let spread = Duration::from_secs(2);
    let delays = calls(spread).delays;
    let at = |part: usize| delays[(delays.len() - 1) * part / 100];
    println!("\ncalls with a `wake_spread` of {spread:?}: back by");
    for part in [1, 25, 50, 75, 99, 100] {
        println!("  {part:>3} %  {:?}", at(part));
    }
}

fn row(name: &str, measure: impl Fn() -> Measured) {
    let mut rounds: Vec<Measured> = (0..ROUNDS).map(|_| measure()).collect();
    rounds.sort_by_key(|round| round.delays[CALLS - 1]);
    let median = &rounds[ROUNDS / 2];
    println!(
        "{name:<44} {:>12.1?} {:>10.1?} {:>10.1?} {:>10.1?} {:>12}",
        median.told,
        median.delays[CALLS / 2],
        median.delays[CALLS - 1],
        median.worked,
        median.bytes
    );
}
