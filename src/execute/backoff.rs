//! A backoff for loops that never end: a relay, a reconnecting socket. It is kept across rounds and starts over after success.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use super::connectivity::{Connectivity, Waiter};
use super::session::{CallSession, NextStep};
use super::timer::Timer;
use super::verdict::Verdict;
use super::wait::poll_wait;
use crate::event::{Event, WokenBy};
use crate::outcome::OutcomeClass;
use crate::policy::{Offline, Repeat, RetryPolicy, Statuses};
use crate::request::{Method, RequestFacts};

/// The longest wait, even if a server asks for more.
const LONGEST_FLOOR: Duration = Duration::from_secs(24 * 3_600);

/// The waits of a long-lived loop between its rounds.
///
/// It waits as a call with the same policy would (window, jitter, `wake`, `wake_spread`, `offline_probe`), but has no last attempt and no
/// deadline: `max_attempts`, `max_elapsed`, `cut_at_deadline`, `repeat` and `retry_statuses` do not apply, and known offline it always parks. An edge ends a
/// wait. After an edge while the link was up, or during the failed round, the next round begins at once. Rounds that edges began are at least 1 s
/// apart, so that a flapping link does not become a hot loop.
///
/// ```no_run
/// # async fn connect() -> Result<(), std::io::Error> { Ok(()) }
/// # async fn relay(_link: ()) {}
/// # async fn run() {
/// use comeback::{Backoff, Connectivity, RetryPolicy};
///
/// let hub = Connectivity::new();
/// let mut backoff = Backoff::new(&RetryPolicy::default(), &hub);
/// loop {
///     if let Ok(link) = connect().await {
///         backoff.start_over(); // better only once the link has proved itself
///         relay(link).await;
///     }
///     backoff.wait().await;
/// }
/// # }
/// ```
pub struct Backoff {
    policy: RetryPolicy,
    session: CallSession,
    waiter: Waiter,
}

impl Backoff {
    /// A backoff at its beginning. The first round counts as begun now.
    pub fn new(policy: &RetryPolicy, connectivity: &Connectivity) -> Backoff {
        let policy = RetryPolicy {
            max_attempts: u32::MAX,
            max_elapsed: i64::MAX,
            cut_at_deadline: false,
            repeat: Repeat::Always,
            offline: match policy.offline {
                Offline::Ignore => Offline::Ignore,
                _ => Offline::Park,
            },
            retry_statuses: const { Statuses::of(&[429, 503]) }, // those that `heeded` lets through
            ..policy.clone()
        };
        let mut session = new_session();
        let connectivity = connectivity.known_to(&policy, false);
        session.note_attempt(connectivity.snapshot());
        Backoff {
            policy,
            session,
            waiter: Waiter::new(connectivity),
        }
    }

    /// The seed of the waits, to replay them; else from the operating system.
    pub fn seed(mut self, seed: u64) -> Backoff {
        self.session.seed(seed);
        self
    }

    /// The round succeeded: the next wait is drawn from the first window again.
    pub fn start_over(&mut self) {
        self.session.start_over();
    }

    /// Waits after a round that failed or a link that broke, and returns what ended the wait. The next round begins then. If the future is dropped, the
    /// wait is over, and the next one counts as a wait after another failure.
    pub async fn wait(&mut self) -> WokenBy {
        self.wait_after(Verdict::IN_DOUBT).await
    }

    /// The same after a failure that says more, for instance [`Verdict::overloaded`]: then nothing begins before the server's time is up, at most
    /// 24 h. Whether a failure is worth another round at all is the loop's own decision.
    pub async fn wait_after(&mut self, verdict: Verdict) -> WokenBy {
        // Whatever ends the wait, or drops it, begins the next round.
        let round = NextRound(self);
        let Backoff {
            policy,
            session,
            waiter,
        } = &mut *round.0;
        let connectivity = waiter.connectivity().clone();
        session.begin_round(&connectivity);
        let (next, _) = session.failed(policy, &heeded(verdict).outcome(), &connectivity);
        let mut by = WokenBy::Timer;
        let next = match next {
            NextStep::Sleep { .. } => {
                let mut timer = pin!(Timer::new());
                poll_fn(|context| {
                    poll_wait(
                        session,
                        policy,
                        waiter,
                        timer.as_mut(),
                        context,
                        &mut |_| true,
                        &mut |_, events| {
                            for event in events {
                                if let Event::Resumed(resumed) = event {
                                    by = resumed.by;
                                }
                            }
                        },
                    )
                })
                .await
            }
            next => next,
        };
        if next != NextStep::Go {
            *session = new_session(); // nothing stops such a call; were it so, the loop goes on
        }
        by
    }
}

/// Notes the network that the next round begins on; an edge after that will not have been missed.
struct NextRound<'a>(&'a mut Backoff);

impl Drop for NextRound<'_> {
    fn drop(&mut self) {
        let Backoff {
            session, waiter, ..
        } = &mut *self.0;
        waiter.leave();
        session.give_up_wait();
        session.note_attempt(waiter.connectivity().snapshot());
    }
}

fn new_session() -> CallSession {
    CallSession::new(RequestFacts::new(Method::Get), None, None, None)
}

/// What a loop uses of a verdict: overload, and how long the server asked for. Everything else is a round that failed.
fn heeded(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Status {
            status: status @ (429 | 503),
            retry_after,
        } => Verdict::Status {
            status,
            retry_after: retry_after.map(|length| length.min(LONGEST_FLOOR)),
        },
        Verdict::Failed(kind) if kind.class() == OutcomeClass::NeverSent => verdict,
        _ => Verdict::IN_DOUBT,
    }
}

impl fmt::Debug for Backoff {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Backoff")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
