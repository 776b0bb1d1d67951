//! What an app decides about all calls to one origin together: the retry budget and the circuit breaker. Off unless configured.
//!
//! ```
//! use comeback::{CircuitBreaker, RetryBudget};
//!
//! let budget = RetryBudget::from_json(r#"{"capacity": 20}"#)?;
//! assert_eq!(budget.capacity(), 20);
//! let breaker = CircuitBreaker::builder().window(20).failures(10).build()?;
//! assert!(!breaker.refuse_first());
//!
//! let error = CircuitBreaker::from_json(r#"{"failures": 11}"#).unwrap_err();
//! assert_eq!(error.to_string(), "failures = 11: must be at most window, which is 10");
//! # Ok::<(), comeback::PolicyError>(())
//! ```

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::PolicyError;
use super::builder::whole;
use super::json::{boolean, object_of, read_text, small};

const CAPACITY: RangeInclusive<i64> = 1..=1_000;
const WINDOW: RangeInclusive<i64> = 1..=100;
const PROBES: RangeInclusive<i64> = 1..=10;

/// How many retries all calls to one origin may make together: see [`TokenBucket`](crate::TokenBucket).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    capacity: u16,
}

impl Default for RetryBudget {
    /// 50 tokens.
    fn default() -> RetryBudget {
        RetryBudget { capacity: 50 }
    }
}

impl RetryBudget {
    /// A budget of `capacity` tokens: 1 to 1000.
    ///
    /// # Errors
    /// Another number: field, value and rule.
    pub fn new(capacity: u16) -> Result<RetryBudget, PolicyError> {
        whole("capacity", capacity.into(), CAPACITY)?;
        Ok(RetryBudget { capacity })
    }

    /// How many retries that cost a token may be made while no request succeeds.
    pub fn capacity(&self) -> u16 {
        self.capacity
    }

    /// Reads a JSON object: `{"capacity": 50}`. A missing field means its default.
    ///
    /// # Errors
    /// No JSON object, an unknown field, a field that is there twice, or an invalid value: field, value and rule.
    pub fn from_json(json: &str) -> Result<RetryBudget, PolicyError> {
        strict(json, RetryBudget::read)
    }

    /// Reads remote configuration; never fails, and says what it did. Unknown fields are ignored. The fallback is used, as a whole, only if a value is
    /// invalid or the text is no JSON object.
    pub fn from_json_or(json: &str, fallback: RetryBudget) -> Forgiven<RetryBudget> {
        forgiving(json, fallback, RetryBudget::read)
    }

    fn read(document: &Map<String, Value>, unknown: Unknown<'_>) -> Result<Self, PolicyError> {
        let mut budget = RetryBudget::default();
        for (name, value) in document {
            match name.as_str() {
                "capacity" => budget = RetryBudget::new(small(name, value, CAPACITY)?)?,
                _ => unknown(name, value)?,
            }
        }
        Ok(budget)
    }
}

/// When the retries to one origin stop for a while: see [`Breaker`](crate::Breaker).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitBreaker {
    window: u8,
    failures: u8,
    probes: u8,
    refuse_first: bool,
}

impl Default for CircuitBreaker {
    /// Opens after 5 failures in the last 10 outcomes, tries again with 1 probe, refuses no first attempt.
    fn default() -> CircuitBreaker {
        CircuitBreaker {
            window: 10,
            failures: 5,
            probes: 1,
            refuse_first: false,
        }
    }
}

impl CircuitBreaker {
    /// Starts from the defaults.
    pub fn builder() -> CircuitBreakerBuilder {
        CircuitBreakerBuilder {
            rules: CircuitBreaker::default(),
            problem: None,
        }
    }

    /// How many outcomes that speak of the server are looked back on.
    pub fn window(&self) -> u8 {
        self.window
    }

    /// So many failures among them open it.
    pub fn failures(&self) -> u8 {
        self.failures
    }

    /// How many attempts may be under way at once when its open time is over.
    pub fn probes(&self) -> u8 {
        self.probes
    }

    /// Whether first attempts are refused too while it is open.
    pub fn refuse_first(&self) -> bool {
        self.refuse_first
    }

    /// Reads a JSON object with the fields `window`, `failures`, `probes` and `refuse_first`. A missing field means its default.
    ///
    /// # Errors
    /// No JSON object, an unknown field, a field that is there twice, or an invalid value: field, value and rule.
    pub fn from_json(json: &str) -> Result<CircuitBreaker, PolicyError> {
        strict(json, CircuitBreaker::read)
    }

    /// Reads remote configuration; never fails, and says what it did. Unknown fields are ignored. The fallback is used, as a whole, only if a value is
    /// invalid or the text is no JSON object.
    pub fn from_json_or(json: &str, fallback: CircuitBreaker) -> Forgiven<CircuitBreaker> {
        forgiving(json, fallback, CircuitBreaker::read)
    }

    fn read(document: &Map<String, Value>, unknown: Unknown<'_>) -> Result<Self, PolicyError> {
        let mut builder = CircuitBreaker::builder();
        for (name, value) in document {
            builder = match name.as_str() {
                "window" => builder.window(small(name, value, WINDOW)?),
                "failures" => builder.failures(small(name, value, WINDOW)?),
                "probes" => builder.probes(small(name, value, PROBES)?),
                "refuse_first" => builder.refuse_first(boolean(name, value)?),
                _ => unknown(name, value).map(|()| builder)?,
            };
        }
        builder.build()
    }
}

/// Collects the fields of a [`CircuitBreaker`]. The first invalid value is remembered and returned by [`build`](Self::build).
#[derive(Clone, Debug)]
#[must_use]
pub struct CircuitBreakerBuilder {
    rules: CircuitBreaker,
    problem: Option<PolicyError>,
}

impl CircuitBreakerBuilder {
    /// How many outcomes that speak of the server are looked back on: 1 to 100.
    pub fn window(self, window: u8) -> Self {
        self.set("window", window, WINDOW, |rules| rules.window = window)
    }

    /// So many failures among them open it: 1 to `window`.
    pub fn failures(self, failures: u8) -> Self {
        self.set("failures", failures, WINDOW, |rules| {
            rules.failures = failures
        })
    }

    /// How many attempts may be under way at once when its open time is over: 1 to 10.
    pub fn probes(self, probes: u8) -> Self {
        self.set("probes", probes, PROBES, |rules| rules.probes = probes)
    }

    /// Whether first attempts are refused too while it is open. Then a call may fail that would have succeeded: only for servers that need it.
    pub fn refuse_first(mut self, refuse: bool) -> Self {
        self.rules.refuse_first = refuse;
        self
    }

    /// # Errors
    /// An invalid value: field, value and rule.
    pub fn build(self) -> Result<CircuitBreaker, PolicyError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let CircuitBreaker {
            window, failures, ..
        } = self.rules;
        if failures > window {
            let rule = format!("must be at most window, which is {window}");
            return Err(PolicyError::new("failures", failures, rule));
        }
        Ok(self.rules)
    }

    fn set(
        mut self,
        field: &str,
        value: u8,
        allowed: RangeInclusive<i64>,
        store: impl FnOnce(&mut CircuitBreaker),
    ) -> Self {
        match whole(field, value.into(), allowed) {
            Ok(_) => store(&mut self.rules),
            Err(problem) => self.problem = self.problem.or(Some(problem)),
        }
        self
    }
}

/// What was made of remote configuration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Forgiven<T> {
    /// What the text describes, or the whole fallback.
    pub value: T,
    /// Names that no field has. They were ignored.
    pub ignored: Vec<String>,
    /// Why the fallback was taken; `None` if it was not.
    pub problem: Option<PolicyError>,
}

/// What is done about a name that no field has: an error, if it is refused.
type Unknown<'a> = &'a mut dyn FnMut(&str, &Value) -> Result<(), PolicyError>;

fn strict<T>(
    json: &str,
    read: impl FnOnce(&Map<String, Value>, Unknown<'_>) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    let document = object_of(read_text(json)?.once()?)?;
    read(&document, &mut |name, value| {
        Err(PolicyError::new(
            name,
            value,
            "is not a field of this object",
        ))
    })
}

fn forgiving<T>(
    json: &str,
    fallback: T,
    read: impl FnOnce(&Map<String, Value>, Unknown<'_>) -> Result<T, PolicyError>,
) -> Forgiven<T> {
    let mut ignored = Vec::new();
    let made = read_text(json)
        .and_then(|text| object_of(text.value))
        .and_then(|document| {
            read(&document, &mut |name, _| {
                ignored.push(name.to_owned());
                Ok(())
            })
        });
    let (value, problem) = match made {
        Ok(value) => (value, None),
        Err(problem) => (fallback, Some(problem)),
    };
    Forgiven {
        value,
        ignored,
        problem,
    }
}
