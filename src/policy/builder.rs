//! Building a policy: every setter checks its value, `build` checks what fields say of each other.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{
    BEFORE_DEADLINE, ClientResends, Jitter, KeyForm, KeyRule, Offline, PolicyError, Repeat,
    RetryPolicy, Statuses, Wake, Window,
};
use crate::instant::{MILLISECOND, Milliseconds, SECOND, duration, nanos};

pub(super) const ATTEMPTS: RangeInclusive<i64> = 1..=100;
pub(super) const BODY_BYTES: RangeInclusive<i64> = 0..=16 << 20;
pub(super) const STATUSES: RangeInclusive<i64> = Statuses::FIRST as i64..=Statuses::LAST as i64;
const DAY: i64 = 24 * 3_600 * SECOND;

/// The shortest that a length may be.
fn shortest(field: &str) -> i64 {
    match field {
        "max_elapsed" => BEFORE_DEADLINE, // so that there is a moment to start in
        "attempt_timeout" | "connect_timeout" => 100 * MILLISECOND,
        "wake_spread" => 0,
        "offline_probe" => SECOND,
        _ => MILLISECOND, // base and cap
    }
}

/// Collects the fields of a [`RetryPolicy`]. The first invalid value is remembered and returned by [`build`](Self::build).
#[derive(Clone, Debug)]
#[must_use]
pub struct PolicyBuilder {
    policy: RetryPolicy,
    problem: Option<PolicyError>,
}

impl PolicyBuilder {
    pub(super) fn over(policy: RetryPolicy) -> PolicyBuilder {
        PolicyBuilder {
            policy,
            problem: None,
        }
    }

    /// Counted attempts, the first included: 1 to 100.
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.set(
            whole("max_attempts", attempts.into(), ATTEMPTS),
            |policy, attempts| {
                policy.max_attempts = attempts as u32;
            },
        )
    }

    /// No attempt starts later than this, less 100 ms, after the call began: 100 ms to 24 h.
    pub fn max_elapsed(self, elapsed: Duration) -> Self {
        self.set(length("max_elapsed", elapsed), |policy, elapsed| {
            policy.max_elapsed = elapsed
        })
    }

    /// Whether an attempt in flight is ended at the deadline too.
    pub fn cut_at_deadline(mut self, cut: bool) -> Self {
        self.policy.cut_at_deadline = cut;
        self
    }

    /// The longest an attempt may take until its response head: 100 ms to 24 h, or none.
    pub fn attempt_timeout(self, timeout: impl Into<Option<Duration>>) -> Self {
        self.set(
            optional_length("attempt_timeout", timeout.into()),
            |policy, timeout| policy.attempt_timeout = timeout,
        )
    }

    /// The longest one route's connect may take: 100 ms to 24 h, or none.
    pub fn connect_timeout(self, timeout: impl Into<Option<Duration>>) -> Self {
        self.set(
            optional_length("connect_timeout", timeout.into()),
            |policy, timeout| policy.connect_timeout = timeout,
        )
    }

    /// The first window: 1 ms to `cap`.
    pub fn base(self, base: Duration) -> Self {
        self.set(length("base", base), |policy, base| {
            policy.window.base = base;
        })
    }

    /// What each window is multiplied by: 1 to 10, at most three decimals.
    pub fn factor(self, factor: f64) -> Self {
        self.set(thousandths("factor", factor), |policy, factor| {
            policy.window.factor = factor;
        })
    }

    /// The longest window: `base` to 24 h.
    pub fn cap(self, cap: Duration) -> Self {
        self.set(length("cap", cap), |policy, cap| {
            policy.window.cap = cap;
        })
    }

    /// Another window after 429 and 503, under the same rules.
    pub fn overload(self, base: Duration, factor: f64, cap: Duration) -> Self {
        let window = || {
            Ok(Window {
                base: length("overload.base", base)?,
                factor: thousandths("overload.factor", factor)?,
                cap: length("overload.cap", cap)?,
            })
        };
        self.set(window(), |policy, window| policy.overload = Some(window))
    }

    /// The same window after every failure, which is the default.
    pub fn no_overload(mut self) -> Self {
        self.policy.overload = None;
        self
    }

    /// How a wait is drawn from its window.
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.policy.jitter = jitter;
        self
    }

    /// The whole set of transient statuses, each 400 to 599.
    pub fn retry_statuses(self, statuses: impl IntoIterator<Item = u16>) -> Self {
        let checked: Result<Vec<u16>, _> = statuses
            .into_iter()
            .map(|status| whole("retry_statuses", status.into(), STATUSES).map(|_| status))
            .collect();
        self.set(checked, |policy, statuses| {
            policy.retry_statuses = Statuses::of(&statuses);
        })
    }

    /// Whether a request that may have arrived may go again.
    pub fn repeat(mut self, repeat: Repeat) -> Self {
        self.policy.repeat = repeat;
        self
    }

    /// The idempotency key's rule; its header is an RFC 9110 token.
    pub fn key(self, key: KeyRule) -> Self {
        self.key_header(&key.header)
            .key_form(key.form)
            .make_key(key.make)
    }

    /// The header of the idempotency key: an RFC 9110 token.
    pub fn key_header(self, header: &str) -> Self {
        self.set(token("key.header", header), |policy, header| {
            policy.key.header = header;
        })
    }

    /// How a made key is written.
    pub fn key_form(mut self, form: KeyForm) -> Self {
        self.policy.key.form = form;
        self
    }

    /// Whether a key is made for every POST and PATCH that has none.
    pub fn make_key(mut self, make: bool) -> Self {
        self.policy.key.make = make;
        self
    }

    /// What becomes of the client's own silent re-sends.
    #[cfg_attr(not(feature = "uniffi"), doc(hidden))] // the Rust executor's client never re-sends by itself
    pub fn client_resends(mut self, resends: ClientResends) -> Self {
        self.policy.client_resends = resends;
        self
    }

    /// The header in which a server says `true` or `false`: an RFC 9110 token, or none.
    pub fn should_retry_header<'a>(self, header: impl Into<Option<&'a str>>) -> Self {
        let header = header
            .into()
            .map(|header| token("should_retry_header", header));
        self.set(header.transpose(), |policy, header| {
            policy.should_retry_header = header;
        })
    }

    /// Which drawn waits an edge ends.
    pub fn wake(mut self, wake: Wake) -> Self {
        self.policy.wake = wake;
        self
    }

    /// A woken call waits a uniform draw from zero to this more: zero to `cap`.
    pub fn wake_spread(self, spread: Duration) -> Self {
        self.set(length("wake_spread", spread), |policy, spread| {
            policy.wake_spread = spread;
        })
    }

    /// What a call does while the network is known to be away.
    pub fn offline(mut self, offline: Offline) -> Self {
        self.policy.offline = offline;
        self
    }

    /// How long after parking one attempt is made all the same: 1 s to 24 h, or none.
    pub fn offline_probe(self, probe: impl Into<Option<Duration>>) -> Self {
        self.set(
            optional_length("offline_probe", probe.into()),
            |policy, probe| policy.offline_probe = probe,
        )
    }

    /// How many bytes of the response's body are read within the attempt: up to 16 MiB, or none. Drivers never do so with an event stream or
    /// after an upgrade.
    pub fn read_body(self, bytes: impl Into<Option<u32>>) -> Self {
        let checked = bytes
            .into()
            .map(|bytes| whole("read_body", bytes.into(), BODY_BYTES).map(|_| bytes));
        self.set(checked.transpose(), |policy, bytes| {
            policy.read_body = bytes;
        })
    }

    /// The policy.
    ///
    /// # Errors
    /// The first value that was invalid, or two that do not go together: `base` above `cap`, `wake_spread` above `cap`.
    pub fn build(self) -> Result<RetryPolicy, PolicyError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let policy = self.policy;
        at_most_cap("base", policy.window.base, "cap", policy.window.cap)?;
        if let Some(overload) = policy.overload {
            at_most_cap("overload.base", overload.base, "overload.cap", overload.cap)?;
        }
        at_most_cap("wake_spread", policy.wake_spread, "cap", policy.window.cap)?;
        Ok(policy)
    }

    /// Calls a setter with a value that was read, or remembers why it could not be read.
    pub(super) fn take<T>(
        mut self,
        read: Result<T, PolicyError>,
        set: impl FnOnce(Self, T) -> Self,
    ) -> Self {
        match read {
            Ok(value) => set(self, value),
            Err(problem) => {
                self.problem = self.problem.or(Some(problem));
                self
            }
        }
    }

    fn set<T>(
        self,
        checked: Result<T, PolicyError>,
        store: impl FnOnce(&mut RetryPolicy, T),
    ) -> Self {
        self.take(checked, |mut builder, value| {
            store(&mut builder.policy, value);
            builder
        })
    }
}

pub(super) fn whole(
    field: &str,
    value: i64,
    allowed: RangeInclusive<i64>,
) -> Result<i64, PolicyError> {
    if allowed.contains(&value) {
        Ok(value)
    } else {
        let rule = format!("must be from {} to {}", allowed.start(), allowed.end());
        Err(PolicyError::new(field, value, rule))
    }
}

fn length(field: &str, given: Duration) -> Result<i64, PolicyError> {
    let value = nanos(given);
    if value % MILLISECOND == 0 && (shortest(field)..=DAY).contains(&value) {
        Ok(value)
    } else {
        Err(PolicyError::new(
            field,
            Milliseconds(given),
            length_rule(field),
        ))
    }
}

pub(super) fn length_rule(field: &str) -> String {
    format!(
        "must be whole milliseconds from {} to {} (24 h)",
        shortest(field) / MILLISECOND,
        DAY / MILLISECOND
    )
}

fn optional_length(field: &str, given: Option<Duration>) -> Result<Option<i64>, PolicyError> {
    given.map(|given| length(field, given)).transpose()
}

/// A factor is held in thousandths. A double counts as a number of thousandths if it is the double nearest to one.
fn thousandths(field: &str, factor: f64) -> Result<u32, PolicyError> {
    let held = (factor * 1_000.0).round();
    if (1_000.0..=10_000.0).contains(&held) && held / 1_000.0 == factor {
        Ok(held as u32)
    } else {
        Err(PolicyError::new(
            field,
            factor,
            "must be from 1 to 10 with at most three decimals",
        ))
    }
}

/// RFC 9110, 5.6.2.
fn token(field: &str, name: &str) -> Result<String, PolicyError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !name.is_empty() && name.bytes().all(allowed) {
        Ok(name.to_owned())
    } else {
        Err(PolicyError::new(
            field,
            format_args!("{name:?}"),
            "must be a header name: letters, digits and !#$%&'*+-.^_`|~ only (RFC 9110)",
        ))
    }
}

fn at_most_cap(field: &str, value: i64, cap_field: &str, cap: i64) -> Result<(), PolicyError> {
    if value <= cap {
        return Ok(());
    }
    let (value, cap) = (Milliseconds(duration(value)), Milliseconds(duration(cap)));
    let rule = format!("must be at most {cap_field}, which is {cap}");
    Err(PolicyError::new(field, value, rule))
}
