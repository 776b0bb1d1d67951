//! What an app decides about its retries: the policy, its presets and its validation.
//!
//! A policy is data. It is built once, checked once, and from then on nothing about it can fail:
//!
//! ```
//! use comeback::{Jitter, RetryPolicy};
//! use std::time::Duration;
//!
//! let policy = RetryPolicy::builder()
//!     .max_attempts(5)
//!     .max_elapsed(Duration::from_secs(30))
//!     .jitter(Jitter::Equal)
//!     .build()?;
//! assert_eq!(policy.max_attempts(), 5);
//!
//! let error = RetryPolicy::builder().max_attempts(0).build().unwrap_err();
//! assert_eq!(error.to_string(), "max_attempts = 0: must be from 1 to 100");
//! # Ok::<(), comeback::PolicyError>(())
//! ```

mod aggregates;
mod builder;
mod error;
mod json;
mod twice;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use aggregates::{CircuitBreaker, CircuitBreakerBuilder, Forgiven, RetryBudget};
pub use builder::PolicyBuilder;
pub use error::PolicyError;
pub use json::Forgiving;

use crate::instant::{MILLISECOND, Milliseconds, SECOND, duration};

/// The last start is this long before the deadline: no sliver of an attempt is made.
pub(crate) const BEFORE_DEADLINE: i64 = 100 * MILLISECOND;

/// How a wait is drawn from its window `w`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// U\[0, w\]: spreads a herd best (AWS Architecture Blog, "Exponential Backoff And Jitter").
    #[default]
    Full,
    /// ⌊w/2⌋ + U over the rest.
    Equal,
    /// U\[base, max(base, min(cap, 3·previous))\], previous = the last drawn value, at first the base.
    Decorrelated,
    /// w itself.
    None,
}

/// Whether a request that may have reached the server may be sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// It depends on method and idempotency key.
    #[default]
    Auto,
    /// Always: the app vouches for every request.
    Always,
    /// Never. A request that was provably not sent goes again all the same.
    Never,
}

/// How a made idempotency key is written into its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyForm {
    /// As it is.
    #[default]
    Bare,
    /// In double quotes: a structured-field string, as in the IETF draft for `Idempotency-Key`.
    Quoted,
}

/// What becomes of the HTTP client's own silent re-sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientResends {
    /// They stay as the client is set up.
    #[default]
    Keep,
    /// The server sees exactly one request per attempt.
    Off,
}

/// Which drawn waits a restored edge ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// Any drawn wait.
    #[default]
    Any,
    /// Only a wait after a transport failure.
    Transport,
    /// None. A park ends all the same.
    None,
}

/// What a call does if it fails on transport while the network is known to be away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offline {
    /// Park while the loss is younger than ten minutes, then fail fast. A loss counts as old where there was no network when the monitor
    /// began, and while the network is off on purpose (airplane mode).
    #[default]
    Auto,
    /// Wait for the network as long as the caps allow.
    Park,
    /// Stop at once.
    FailFast,
    /// The call does not go over the phone's default network (a LAN, a bound network), so nothing is known of its own: it never parks, and no
    /// edge touches it. Calls to a loopback host are such by themselves.
    Ignore,
}

/// The idempotency key: its header, how it is written, and who makes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KeyRule {
    /// The header's name; an RFC 9110 token. Default `Idempotency-Key`.
    pub header: String,
    /// How a made key is written. Default bare.
    pub form: KeyForm,
    /// Make one for every POST and PATCH that has none. The server must support it. Default false.
    pub make: bool,
}

impl Default for KeyRule {
    fn default() -> KeyRule {
        KeyRule {
            header: "Idempotency-Key".to_owned(),
            form: KeyForm::Bare,
            make: false,
        }
    }
}

/// An exponential window: `window(0) = base`, `window(n+1) = min(cap, ⌊window(n)·factor⌋)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    pub(crate) base: i64,
    /// In thousandths.
    pub(crate) factor: u32,
    pub(crate) cap: i64,
}

impl Window {
    /// The first window.
    pub fn base(&self) -> Duration {
        duration(self.base)
    }

    /// What each window is multiplied by, from 1 to 10.
    pub fn factor(&self) -> f64 {
        f64::from(self.factor) / 1_000.0
    }

    /// The longest window.
    pub fn cap(&self) -> Duration {
        duration(self.cap)
    }
}

/// A set of statuses from 400 to 599, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Statuses([u64; 4]);

/// What a server or a proxy before it says when another attempt may well succeed; 520 to 530 are those of the large content delivery networks.
const DEFAULT_STATUSES: [u16; 14] = [
    408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529, 530,
];

impl Statuses {
    const FIRST: u16 = 400;
    const LAST: u16 = 599;

    pub(crate) const fn of(statuses: &[u16]) -> Statuses {
        let mut set = Statuses([0; 4]);
        let mut index = 0;
        while index < statuses.len() {
            set = set.with(statuses[index]);
            index += 1;
        }
        set
    }

    const fn with(mut self, status: u16) -> Statuses {
        let bit = status - Statuses::FIRST;
        self.0[(bit / 64) as usize] |= 1 << (bit % 64);
        self
    }

    pub(crate) fn contains(&self, status: u16) -> bool {
        (Statuses::FIRST..=Statuses::LAST).contains(&status) && {
            let bit = status - Statuses::FIRST;
            self.0[usize::from(bit / 64)] & (1 << (bit % 64)) != 0
        }
    }

    fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (Statuses::FIRST..=Statuses::LAST).filter(|status| self.contains(*status))
    }
}

impl fmt::Debug for Statuses {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.iter()).finish()
    }
}

/// When, how often and for how long a failed request goes again. Always valid: see [`RetryPolicy::builder`].
///
/// | field | meaning | default | valid |
/// | --- | --- | --- | --- |
/// | `max_attempts` | counted attempts, the first included | 4 | 1 to 100 |
/// | `max_elapsed` | no attempt starts later than this (less 100 ms) after the call began | 20 s | 100 ms to 24 h |
/// | `cut_at_deadline` | also end an attempt in flight then | false | |
/// | `attempt_timeout` | one attempt until its response head, hard | none | 100 ms to 24 h |
/// | `connect_timeout` | one route's connect | none | 100 ms to 24 h |
/// | `base`, `factor`, `cap` | the window, see [`Window`] | 1 s, 2, 8 s | 1 ms ≤ base ≤ cap ≤ 24 h; 1 ≤ factor ≤ 10, at most three decimals |
/// | `overload` | another window after 429 and 503 | none | the same rules |
/// | `jitter` | how a wait is drawn from its window | full | |
/// | `retry_statuses` | the whole set of transient statuses | 408 425 429 500 502 503 504 520 521 522 523 524 529 530 | 400 to 599 |
/// | `repeat` | may what perhaps arrived go again | auto | |
/// | `key` | the idempotency key | `Idempotency-Key`, bare, not made | a header name |
/// | `client_resends` | the client's own silent re-sends | keep | |
/// | `should_retry_header` | name of a server's explicit word | none | a header name |
/// | `wake` | which drawn waits an edge ends | any | |
/// | `wake_spread` | a woken call waits U\[0, spread\] more | 0 | 0 to `cap` |
/// | `offline` | known offline: park or stop; or ignore what is known | auto | |
/// | `offline_probe` | while parked, one attempt after this long | 10 s | 1 s to 24 h, or none |
/// | `read_body` | read the response's body within the attempt, up to so many bytes | none | 0 to 16 MiB (16777216), or none |
///
/// Durations are whole milliseconds. As a serde value a policy is an object with these names in `snake_case`, durations as
/// numbers of milliseconds; a missing field means its default, null means none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetryPolicy {
    pub(crate) max_attempts: u32,
    pub(crate) max_elapsed: i64,
    pub(crate) cut_at_deadline: bool,
    pub(crate) attempt_timeout: Option<i64>,
    pub(crate) connect_timeout: Option<i64>,
    pub(crate) window: Window,
    pub(crate) overload: Option<Window>,
    pub(crate) jitter: Jitter,
    pub(crate) retry_statuses: Statuses,
    pub(crate) repeat: Repeat,
    pub(crate) key: KeyRule,
    pub(crate) client_resends: ClientResends,
    pub(crate) should_retry_header: Option<String>,
    pub(crate) wake: Wake,
    pub(crate) wake_spread: i64,
    pub(crate) offline: Offline,
    pub(crate) offline_probe: Option<i64>,
    /// In bytes.
    pub(crate) read_body: Option<u32>,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            max_attempts: 4,
            max_elapsed: 20 * SECOND,
            cut_at_deadline: false,
            attempt_timeout: None,
            connect_timeout: None,
            window: Window {
                base: SECOND,
                factor: 2_000,
                cap: 8 * SECOND,
            },
            overload: None,
            jitter: Jitter::Full,
            retry_statuses: const { Statuses::of(&DEFAULT_STATUSES) },
            repeat: Repeat::Auto,
            key: KeyRule::default(),
            client_resends: ClientResends::Keep,
            should_retry_header: None,
            wake: Wake::Any,
            wake_spread: 0,
            offline: Offline::Auto,
            offline_probe: Some(10 * SECOND),
            read_body: None,
        }
    }
}

impl RetryPolicy {
    /// For what must not happen twice: 3 attempts within 15 s, the client's own re-sends off. A keyed request that the server is still busy
    /// with (409) goes again.
    pub fn payment() -> RetryPolicy {
        RetryPolicy {
            max_attempts: 3,
            max_elapsed: 15 * SECOND,
            retry_statuses: const { Statuses::of(&DEFAULT_STATUSES).with(409) },
            client_resends: ClientResends::Off,
            ..RetryPolicy::default()
        }
    }

    /// For what somebody is waiting to see: 5 attempts within 20 s, and an answer by then in any case.
    pub fn read() -> RetryPolicy {
        RetryPolicy {
            max_attempts: 5,
            cut_at_deadline: true,
            ..RetryPolicy::default()
        }
    }

    /// For many small writes between machines: 8 attempts, windows 20, 40, 80, 160, 320, 500, 500 ms.
    pub fn batch() -> RetryPolicy {
        RetryPolicy {
            max_attempts: 8,
            window: Window {
                base: 20 * MILLISECOND,
                factor: 2_000,
                cap: 500 * MILLISECOND,
            },
            ..RetryPolicy::default()
        }
    }

    /// A builder that starts from the defaults.
    pub fn builder() -> PolicyBuilder {
        RetryPolicy::default().to_builder()
    }

    /// A builder that starts from this policy.
    pub fn to_builder(&self) -> PolicyBuilder {
        PolicyBuilder::over(self.clone())
    }

    /// Counted attempts, the first included.
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// No attempt starts later than this, less 100 ms, after the call began.
    pub fn max_elapsed(&self) -> Duration {
        duration(self.max_elapsed)
    }

    /// Whether an attempt in flight is ended at the deadline too.
    pub fn cut_at_deadline(&self) -> bool {
        self.cut_at_deadline
    }

    /// The longest an attempt may take until its response head.
    pub fn attempt_timeout(&self) -> Option<Duration> {
        self.attempt_timeout.map(duration)
    }

    /// The longest one route's connect may take.
    pub fn connect_timeout(&self) -> Option<Duration> {
        self.connect_timeout.map(duration)
    }

    /// The window waits are drawn from.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The window after 429 and 503, if it is a different one.
    pub fn overload(&self) -> Option<Window> {
        self.overload
    }

    /// How a wait is drawn from its window.
    pub fn jitter(&self) -> Jitter {
        self.jitter
    }

    /// The statuses that are tried again, in ascending order.
    pub fn retry_statuses(&self) -> impl Iterator<Item = u16> + '_ {
        self.retry_statuses.iter()
    }

    /// Whether a request that may have arrived may go again.
    pub fn repeat(&self) -> Repeat {
        self.repeat
    }

    /// The idempotency key's rule.
    pub fn key(&self) -> &KeyRule {
        &self.key
    }

    /// What becomes of the client's own re-sends.
    #[cfg_attr(not(feature = "uniffi"), doc(hidden))] // the Rust executor's client never re-sends by itself
    pub fn client_resends(&self) -> ClientResends {
        self.client_resends
    }

    /// The name of the header in which a server says `true` or `false`.
    pub fn should_retry_header(&self) -> Option<&str> {
        self.should_retry_header.as_deref()
    }

    /// Which drawn waits an edge ends.
    pub fn wake(&self) -> Wake {
        self.wake
    }

    /// A woken call waits a uniform draw from zero to this more.
    pub fn wake_spread(&self) -> Duration {
        duration(self.wake_spread)
    }

    /// What a call does while the network is known to be away.
    pub fn offline(&self) -> Offline {
        self.offline
    }

    /// How long after parking one attempt is made all the same.
    pub fn offline_probe(&self) -> Option<Duration> {
        self.offline_probe.map(duration)
    }

    /// How many bytes of the response's body are read within the attempt, so that an answer that breaks after its head is a failed attempt
    /// too. Of a longer body the rest is handed on unread.
    pub fn read_body(&self) -> Option<u32> {
        self.read_body
    }
}

impl fmt::Display for RetryPolicy {
    /// One line: every field that is not at its default.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "RetryPolicy({} attempts within {}",
            self.max_attempts,
            Milliseconds(self.max_elapsed())
        )?;
        for (name, value) in json::differences(self) {
            write!(out, ", {name} = {value}")?;
        }
        out.write_str(")")
    }
}
