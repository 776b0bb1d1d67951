//! What a step costs, in time and allocations, beside the same step in `backon`, `retry-policies` and a hand-written float version, all
//! in one run: `cargo bench`.
//!
//! The others know neither outcomes nor networks: where they answer the question "again, and when?" they stand beside `decide`; for
//! `resume`, `interrupt` and the hub there is nothing to put beside. `decide`, `resume` and `interrupt` consume a state; its copy is
//! part of each figure.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBuilder};
use comeback::draw::{Purpose, bounds, uniform, window_at, word};
use comeback::*;
use divan::{Bencher, black_box};
use retry_policies::{RetryPolicy as _, policies::ExponentialBackoff};

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

const SECOND: i64 = 1_000_000_000;

/// Numbers of counted failures: the first, one in the middle, one at the cap.
const FAILURES: [u32; 3] = [0, 2, 50];

fn backon() -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(Duration::from_secs(1))
        .with_max_delay(Duration::from_secs(8))
        .with_factor(2.0)
        .without_max_times()
}

fn retry_policies(jitter: retry_policies::Jitter, retries: u32) -> ExponentialBackoff {
    ExponentialBackoff::builder()
        .retry_bounds(Duration::from_secs(1), Duration::from_secs(8))
        .jitter(jitter)
        .build_with_max_retries(retries)
}

/// What an app writes by hand.
mod by_hand {
    use super::*;

    pub(super) fn window(n: u32) -> Duration {
        Duration::from_secs_f64((1.0 * 2_f64.powi(n as i32)).min(8.0))
    }

    pub(super) fn wait(n: u32) -> Duration {
        Duration::from_secs_f64((1.0 * 2_f64.powi(n as i32)).min(8.0) * unit())
    }

    /// A thread's own xorshift64* as a float in 0..1.
    fn unit() -> f64 {
        thread_local!(static STATE: Cell<u64> = const { Cell::new(0x9E37_79B9_7F4A_7C15) });
        STATE.with(|state| {
            let mut word = state.get();
            word ^= word >> 12;
            word ^= word << 25;
            word ^= word >> 27;
            state.set(word);
            (word.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
        })
    }

    /// Again, and when? By method, attempts and time; no server's wish, no network.
    pub(super) fn decide(method: &str, sent: u32, elapsed: Duration) -> Option<Duration> {
        let again = matches!(method, "GET" | "HEAD" | "PUT" | "DELETE") && sent < 4;
        let wait = wait(sent - 1);
        (again && elapsed + wait < Duration::from_secs(20)).then_some(wait)
    }

    pub(super) fn retry_after(value: &str) -> Option<Duration> {
        value.parse().ok().map(Duration::from_secs)
    }
}

mod window {
    use super::*;

    #[divan::bench(args = FAILURES)]
    fn comeback(bencher: Bencher, n: u32) {
        let window = RetryPolicy::default().window();
        bencher.bench_local(|| window_at(black_box(&window), black_box(n)));
    }

    #[divan::bench(args = FAILURES)]
    fn by_hand(bencher: Bencher, n: u32) {
        bencher.bench_local(|| super::by_hand::window(black_box(n)));
    }

    #[divan::bench(args = FAILURES)]
    fn backon(bencher: Bencher, n: u32) {
        let mut waits = super::backon().build();
        waits.by_ref().take(n as usize).for_each(|_| ());
        // Its window lives in the iterator, so from here on each is the next one.
        bencher.bench_local(|| black_box(&mut waits).next());
    }
}

mod draw {
    use super::*;

    #[divan::bench(args = FAILURES)]
    fn comeback(bencher: Bencher, n: u32) {
        let window = RetryPolicy::default().window();
        bencher.bench_local(|| {
            let bounds = bounds(Jitter::Full, black_box(&window), black_box(n), None);
            let high = bounds.high.as_nanos() as i64;
            uniform(word(black_box(42), n, Purpose::Wait), 0, high)
        });
    }

    #[divan::bench(args = FAILURES)]
    fn by_hand(bencher: Bencher, n: u32) {
        bencher.bench_local(|| super::by_hand::wait(black_box(n)));
    }

    #[divan::bench(args = FAILURES)]
    fn backon(bencher: Bencher, n: u32) {
        let mut waits = super::backon().with_jitter().build();
        waits.by_ref().take(n as usize).for_each(|_| ());
        bencher.bench_local(|| black_box(&mut waits).next());
    }

    /// Reads the clock too.
    #[divan::bench(args = FAILURES)]
    fn retry_policies(bencher: Bencher, n: u32) {
        let policy = super::retry_policies(retry_policies::Jitter::Full, 100);
        let began = SystemTime::now();
        bencher.bench_local(|| black_box(&policy).should_retry(began, black_box(n)));
    }
}

fn signals(seconds: i64, network: Snapshot) -> Signals {
    Signals {
        now: Instant::from_nanos(seconds * SECOND),
        network,
        wall_ms: None,
        allowed: Allowed::ALL,
    }
}

fn call() -> Call {
    Call::begin(
        RequestFacts::new(Method::Get),
        42,
        Instant::from_nanos(0),
        None,
    )
}

fn bench_decide(bencher: Bencher, policy: &RetryPolicy, outcome: &Outcome<'_>) {
    let (call, now) = (call(), signals(1, Snapshot::UNKNOWN));
    bencher.bench_local(|| {
        let call = black_box(&call).clone();
        let step = decide(
            black_box(policy),
            call,
            &now.network,
            black_box(outcome),
            black_box(&now),
        );
        black_box(&step); // read where it is, as a driver does
    });
}

/// A transport failure, and full jitter.
mod decide_transport_failure {
    use super::*;

    #[divan::bench]
    fn comeback(bencher: Bencher) {
        let outcome = Outcome::failure(FailureKind::Reset);
        bench_decide(bencher, &RetryPolicy::default(), &outcome);
    }

    #[divan::bench]
    fn copying_the_state_alone(bencher: Bencher) {
        let call = call();
        bencher.bench_local(|| {
            let call = black_box(&call).clone();
            black_box(&call);
        });
    }

    #[divan::bench]
    fn by_hand(bencher: Bencher) {
        bencher.bench_local(|| {
            super::by_hand::decide(black_box("GET"), black_box(1), black_box(Duration::ZERO))
        });
    }

    /// Knows nothing but its count; made anew, as for each call.
    #[divan::bench]
    fn backon(bencher: Bencher) {
        let builder = super::backon().with_jitter();
        bencher.bench_local(|| black_box(&builder).build().next());
    }

    /// Knows nothing but its count; reads the clock.
    #[divan::bench]
    fn retry_policies(bencher: Bencher) {
        let policy = super::retry_policies(retry_policies::Jitter::Full, 3);
        let began = SystemTime::now();
        bencher.bench_local(|| black_box(&policy).should_retry(began, black_box(0)));
    }
}

/// A status with `Retry-After`.
mod decide_retry_after {
    use super::*;

    #[divan::bench]
    fn comeback_seconds(bencher: Bencher) {
        let mut outcome = Outcome::response(503);
        outcome.retry_after = &["2"];
        bench_decide(bencher, &RetryPolicy::default(), &outcome);
    }

    #[divan::bench]
    fn comeback_date(bencher: Bencher) {
        let mut outcome = Outcome::response(503);
        outcome.retry_after = &["Sun, 06 Nov 1994 08:49:40 GMT"];
        outcome.date = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        bench_decide(bencher, &RetryPolicy::default(), &outcome);
    }

    #[divan::bench]
    fn by_hand_seconds(bencher: Bencher) {
        bencher.bench_local(|| {
            let wait =
                super::by_hand::decide(black_box("GET"), black_box(1), black_box(Duration::ZERO));
            wait.max(super::by_hand::retry_after(black_box("2")))
        });
    }
}

/// All attempts used up.
mod decide_stop {
    use super::*;

    #[divan::bench]
    fn comeback(bencher: Bencher) {
        let policy = RetryPolicy::builder().max_attempts(1).build();
        let policy = policy.unwrap_or_default();
        bench_decide(bencher, &policy, &Outcome::failure(FailureKind::Reset));
    }

    #[divan::bench]
    fn by_hand(bencher: Bencher) {
        bencher.bench_local(|| {
            super::by_hand::decide(black_box("GET"), black_box(4), black_box(Duration::ZERO))
        });
    }

    #[divan::bench]
    fn backon(bencher: Bencher) {
        let mut waits = super::backon().with_jitter().with_max_times(1).build();
        waits.next();
        bencher.bench_local(|| black_box(&mut waits).next());
    }

    #[divan::bench]
    fn retry_policies(bencher: Bencher) {
        let policy = super::retry_policies(retry_policies::Jitter::Full, 3);
        let began = SystemTime::now();
        bencher.bench_local(|| black_box(&policy).should_retry(began, black_box(3)));
    }
}

/// A call that waits since second 1.
fn waiting(policy: &RetryPolicy, network: Snapshot) -> Option<Waiting> {
    let outcome = Outcome::failure(FailureKind::Reset);
    match decide(policy, call(), &network, &outcome, &signals(1, network)).decision {
        Decision::Sleep(sleep) => Some(sleep.waiting),
        _ => None,
    }
}

fn online(epoch: u64) -> Snapshot {
    Snapshot {
        state: NetworkState::Online,
        since: Instant::from_nanos(0),
        epoch,
        path: epoch,
    }
}

fn bench_resume(bencher: Bencher, noted: Snapshot, asked: Signals) {
    let policy = RetryPolicy::default();
    let Some(waiting) = waiting(&policy, noted) else {
        return;
    };
    bencher.bench_local(|| {
        let waiting = black_box(&waiting).clone();
        let step = comeback::resume(black_box(&policy), waiting, black_box(&asked));
        black_box(&step);
    });
}

mod resume {
    use super::*;

    #[divan::bench]
    fn by_timer(bencher: Bencher) {
        bench_resume(bencher, online(1), signals(3, online(1)));
    }

    #[divan::bench]
    fn by_edge(bencher: Bencher) {
        bench_resume(bencher, online(1), signals(1, online(2)));
    }

    #[divan::bench]
    fn asked_early(bencher: Bencher) {
        bench_resume(bencher, online(1), signals(1, online(1)));
    }

    #[divan::bench]
    fn turns_into_a_park(bencher: Bencher) {
        let offline = Snapshot {
            state: NetworkState::Offline,
            ..online(1)
        };
        bench_resume(bencher, online(1), signals(1, offline));
    }
}

mod interrupt {
    use super::*;

    #[divan::bench]
    fn restart(bencher: Bencher) {
        let (policy, call) = (RetryPolicy::default(), call());
        let now = signals(1, online(2));
        bencher.bench_local(|| {
            let call = black_box(&call).clone();
            let (noted, now) = (online(1), black_box(&now));
            let evidence = comeback::Evidence {
                sent_nothing: true,
                ..comeback::Evidence::NONE
            };
            let step = comeback::interrupt(black_box(&policy), call, &noted, now, &evidence);
            black_box(&step);
        });
    }
}

mod hub {
    use super::*;

    #[divan::bench]
    fn lost_and_available(bencher: Bencher) {
        let mut hub = Hub::new();
        let mut now = 0;
        bencher.bench_local(|| {
            now += SECOND;
            let now = Instant::from_nanos(now);
            black_box(&mut hub).lost(now, 1);
            black_box(&mut hub).available(now, Network::usable(black_box(1)))
        });
    }

    #[divan::bench]
    fn validated(bencher: Bencher) {
        let mut hub = Hub::new();
        hub.available(Instant::from_nanos(0), Network::usable(1));
        let mut validated = false;
        bencher.bench_local(|| {
            validated = !validated;
            black_box(&mut hub).capabilities(Instant::from_nanos(1), 1, false, validated)
        });
    }
}
