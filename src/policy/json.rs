//! A policy as a serde value: strict for what an app ships, forgiving for what it fetches.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::de::{self, Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::builder::{ATTEMPTS, BODY_BYTES, STATUSES, length_rule, whole};
use super::twice::Read;
use super::{
    ClientResends, Jitter, KeyRule, Offline, PolicyBuilder, PolicyError, Repeat, RetryPolicy, Wake,
    Window,
};
use crate::instant::MILLISECOND;

/// What [`RetryPolicy::from_json_or`] made of a text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Forgiving {
    /// The policy the text describes, or the whole fallback.
    pub policy: RetryPolicy,
    /// Names that no field has, with a dot for a part. They were ignored. One that differs from a field's only in case and underscores says which was meant.
    pub ignored: Vec<String>,
    /// Why the fallback was taken; `None` if it was not.
    pub problem: Option<PolicyError>,
}

impl RetryPolicy {
    /// Reads a JSON object: `snake_case` names, milliseconds; a missing field means its default, null means none.
    ///
    /// ```
    /// use comeback::RetryPolicy;
    ///
    /// let policy = RetryPolicy::from_json(r#"{"max_attempts": 6, "base": 100, "factor": 1.5}"#)?;
    /// assert_eq!(policy.max_attempts(), 6);
    /// let error = RetryPolicy::from_json(r#"{"max_elapsed": 50}"#).unwrap_err();
    /// assert_eq!((error.field(), error.value()), ("max_elapsed", "50 ms"));
    /// # Ok::<(), comeback::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// No JSON object, an unknown field, a field that is there twice, or an invalid value: field, value and rule.
    pub fn from_json(json: &str) -> Result<RetryPolicy, PolicyError> {
        strict(RetryPolicy::builder(), read_text(json)?)
    }

    /// This policy with the fields of a JSON object set over it, strictly.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn with_json(&self, json: &str) -> Result<RetryPolicy, PolicyError> {
        strict(self.to_builder(), read_text(json)?)
    }

    /// Reads remote configuration; never fails, and says what it did. Unknown fields are ignored; of a field that is there twice the later one counts. The JSON
    /// starts from the defaults, not from `fallback`. The fallback is used, as a whole, only if a value is invalid or the text is no JSON object.
    pub fn from_json_or(json: &str, fallback: &RetryPolicy) -> Forgiving {
        let mut ignored = Vec::new();
        let read = read_text(json)
            .and_then(|read| object_of(read.value))
            .and_then(|document| {
                let pass_over = &mut |name: String, _: &Value| {
                    ignored.push(match meant(&name) {
                        Some(field) => format!("{name} (did you mean {field}?)"),
                        None => name,
                    });
                    Ok(())
                };
                read(RetryPolicy::builder(), &document, pass_over).build()
            });
        let (policy, problem) = match read {
            Ok(policy) => (policy, None),
            Err(problem) => (fallback.clone(), Some(problem)),
        };
        Forgiving {
            policy,
            ignored,
            problem,
        }
    }
}

/// What is done about a name that no field has: an error, if it is refused.
type Unknown<'a> = &'a mut dyn FnMut(String, &Value) -> Result<(), PolicyError>;

pub(super) fn read_text(json: &str) -> Result<Read, PolicyError> {
    serde_json::from_str(json).map_err(|error| PolicyError::no_json(json, &error))
}

pub(super) fn object_of(value: Value) -> Result<Map<String, Value>, PolicyError> {
    match value {
        Value::Object(document) => Ok(document),
        other => Err(PolicyError::new("policy", other, "must be a JSON object")),
    }
}

fn strict(builder: PolicyBuilder, read_in: Read) -> Result<RetryPolicy, PolicyError> {
    let document = object_of(read_in.once()?)?;
    let refuse = &mut |name: String, value: &Value| {
        let rule = match meant(&name) {
            Some(field) => format!("is not a field of a policy; did you mean {field}?"),
            None => {
                "is not a field of a policy; see the table of RetryPolicy for their names".into()
            }
        };
        Err(PolicyError::new(name, value, rule))
    };
    read(builder, &document, refuse).build()
}

/// The field whose name is this one but for case and underscores: `maxAttempts` is `max_attempts`.
fn meant(name: &str) -> Option<&'static str> {
    fn plain(name: &str) -> impl Iterator<Item = u8> {
        let bytes = name.bytes().filter(|byte| !b"_- ".contains(byte));
        bytes.map(|byte| byte.to_ascii_lowercase())
    }
    NAMES.into_iter().find(|field| plain(field).eq(plain(name)))
}

/// Every name that [`read`] knows.
const NAMES: [&str; 26] = [
    "max_attempts",
    "max_elapsed",
    "cut_at_deadline",
    "attempt_timeout",
    "connect_timeout",
    "base",
    "factor",
    "cap",
    "overload",
    "overload.base",
    "overload.factor",
    "overload.cap",
    "jitter",
    "retry_statuses",
    "repeat",
    "key",
    "key.header",
    "key.form",
    "key.make",
    "client_resends",
    "should_retry_header",
    "wake",
    "wake_spread",
    "offline",
    "offline_probe",
    "read_body",
];

/// Reads on after an invalid value, so that every unknown name is found; the builder remembers the first problem.
fn read(
    mut builder: PolicyBuilder,
    document: &Map<String, Value>,
    unknown: Unknown<'_>,
) -> PolicyBuilder {
    for (name, value) in document {
        let field = name.as_str();
        let timeout = || optional(field, value, milliseconds);
        builder = match field {
            "max_attempts" => {
                builder.take(small(field, value, ATTEMPTS), PolicyBuilder::max_attempts)
            }
            "max_elapsed" => builder.take(milliseconds(field, value), PolicyBuilder::max_elapsed),
            "cut_at_deadline" => {
                builder.take(boolean(field, value), PolicyBuilder::cut_at_deadline)
            }
            "attempt_timeout" => builder.take(timeout(), PolicyBuilder::attempt_timeout),
            "connect_timeout" => builder.take(timeout(), PolicyBuilder::connect_timeout),
            "base" => builder.take(milliseconds(field, value), PolicyBuilder::base),
            "factor" => builder.take(number(field, value), PolicyBuilder::factor),
            "cap" => builder.take(milliseconds(field, value), PolicyBuilder::cap),
            "overload" => {
                builder.take(
                    optional(field, value, object),
                    |builder, window| match window {
                        Some(window) => read_overload(builder, window, unknown),
                        None => builder.no_overload(),
                    },
                )
            }
            "jitter" => builder.take(
                one_of(field, value, "full, equal, decorrelated, none"),
                PolicyBuilder::jitter,
            ),
            "retry_statuses" => builder.take(statuses(field, value), PolicyBuilder::retry_statuses),
            "repeat" => builder.take(
                one_of(field, value, "auto, always, never"),
                PolicyBuilder::repeat,
            ),
            "key" => builder.take(object(field, value), |builder, key| {
                read_key(builder, key, unknown)
            }),
            "client_resends" => builder.take(
                one_of(field, value, "keep, off"),
                PolicyBuilder::client_resends,
            ),
            "should_retry_header" => builder
                .take(optional(field, value, text), |builder, header| {
                    builder.should_retry_header(header.as_deref())
                }),
            "wake" => builder.take(
                one_of(field, value, "any, transport, none"),
                PolicyBuilder::wake,
            ),
            "wake_spread" => builder.take(milliseconds(field, value), PolicyBuilder::wake_spread),
            "offline" => builder.take(
                one_of(field, value, "auto, park, fail_fast, ignore"),
                PolicyBuilder::offline,
            ),
            "offline_probe" => builder.take(timeout(), PolicyBuilder::offline_probe),
            "read_body" => builder.take(
                optional(field, value, |field, value| small(field, value, BODY_BYTES)),
                PolicyBuilder::read_body,
            ),
            _ => builder.take(unknown(name.clone(), value), |builder, ()| builder),
        };
    }
    builder
}

fn read_overload(
    mut builder: PolicyBuilder,
    window: &Map<String, Value>,
    unknown: Unknown<'_>,
) -> PolicyBuilder {
    let missing = || {
        PolicyError::new(
            "overload",
            Value::Object(window.clone()),
            "must have base, factor and cap",
        )
    };
    for (name, value) in window {
        if !["base", "factor", "cap"].contains(&name.as_str()) {
            builder = builder.take(unknown(format!("overload.{name}"), value), |builder, ()| {
                builder
            });
        }
    }
    let part = |name: &str| window.get(name).ok_or_else(missing);
    let read = || {
        let (base, factor, cap) = (part("base")?, part("factor")?, part("cap")?);
        Ok((
            milliseconds("overload.base", base)?,
            number("overload.factor", factor)?,
            milliseconds("overload.cap", cap)?,
        ))
    };
    builder.take(read(), |builder, (base, factor, cap)| {
        builder.overload(base, factor, cap)
    })
}

fn read_key(
    mut builder: PolicyBuilder,
    key: &Map<String, Value>,
    unknown: Unknown<'_>,
) -> PolicyBuilder {
    for (name, value) in key {
        let field = format!("key.{name}");
        builder = match name.as_str() {
            "header" => builder.take(text(&field, value), |builder, header| {
                builder.key_header(&header)
            }),
            "form" => builder.take(
                one_of(&field, value, "bare, quoted"),
                PolicyBuilder::key_form,
            ),
            "make" => builder.take(boolean(&field, value), PolicyBuilder::make_key),
            _ => builder.take(unknown(field, value), |builder, ()| builder),
        };
    }
    builder
}

fn wrong<T>(field: &str, value: &Value, rule: &str) -> Result<T, PolicyError> {
    Err(PolicyError::new(field, value, rule))
}

fn optional<'v, T>(
    field: &str,
    value: &'v Value,
    read: impl FnOnce(&str, &'v Value) -> Result<T, PolicyError>,
) -> Result<Option<T>, PolicyError> {
    if value.is_null() {
        Ok(None)
    } else {
        read(field, value).map(Some)
    }
}

pub(super) fn small<T: TryFrom<i64>>(
    field: &str,
    value: &Value,
    allowed: RangeInclusive<i64>,
) -> Result<T, PolicyError> {
    let (low, high) = (allowed.start(), allowed.end());
    let rule = format!("must be a whole number from {low} to {high}");
    let given = value
        .as_i64()
        .map_or_else(|| wrong(field, value, &rule), Ok)?;
    T::try_from(whole(field, given, allowed)?).or_else(|_| wrong(field, value, &rule))
}

fn milliseconds(field: &str, value: &Value) -> Result<Duration, PolicyError> {
    match value.as_u64() {
        Some(given) => Ok(Duration::from_millis(given)),
        None => wrong(field, value, &length_rule(field)),
    }
}

fn number(field: &str, value: &Value) -> Result<f64, PolicyError> {
    value
        .as_f64()
        .map_or_else(|| wrong(field, value, "must be a number"), Ok)
}

pub(super) fn boolean(field: &str, value: &Value) -> Result<bool, PolicyError> {
    value
        .as_bool()
        .map_or_else(|| wrong(field, value, "must be true or false"), Ok)
}

fn text(field: &str, value: &Value) -> Result<String, PolicyError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        _ => wrong(field, value, "must be a string"),
    }
}

fn object<'v>(field: &str, value: &'v Value) -> Result<&'v Map<String, Value>, PolicyError> {
    value
        .as_object()
        .map_or_else(|| wrong(field, value, "must be an object"), Ok)
}

fn statuses(field: &str, value: &Value) -> Result<Vec<u16>, PolicyError> {
    match value {
        Value::Array(statuses) => statuses
            .iter()
            .map(|status| small(field, status, STATUSES))
            .collect(),
        _ => wrong(field, value, "must be a list of statuses from 400 to 599"),
    }
}

fn one_of<T: DeserializeOwned>(field: &str, value: &Value, names: &str) -> Result<T, PolicyError> {
    let named = value.as_str().and_then(|_| T::deserialize(value).ok());
    named.map_or_else(
        || wrong(field, value, &format!("must be one of {names}")),
        Ok,
    )
}

/// A policy as it is written. The compact form of the boundary is the same struct in a format without names.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Document {
    max_attempts: u32,
    max_elapsed: u64,
    cut_at_deadline: bool,
    attempt_timeout: Option<u64>,
    connect_timeout: Option<u64>,
    base: u64,
    factor: f64,
    cap: u64,
    overload: Option<WindowDocument>,
    jitter: Jitter,
    retry_statuses: Vec<u16>,
    repeat: Repeat,
    key: KeyRule,
    client_resends: ClientResends,
    should_retry_header: Option<String>,
    wake: Wake,
    wake_spread: u64,
    offline: Offline,
    offline_probe: Option<u64>,
    read_body: Option<u32>,
}

impl Default for Document {
    fn default() -> Document {
        Document::from(&RetryPolicy::default())
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowDocument {
    base: u64,
    factor: f64,
    cap: u64,
}

/// The length was checked and is not negative.
fn milliseconds_of(nanos: i64) -> u64 {
    nanos.unsigned_abs() / MILLISECOND.unsigned_abs()
}

impl From<&Window> for WindowDocument {
    fn from(window: &Window) -> WindowDocument {
        WindowDocument {
            base: milliseconds_of(window.base),
            factor: window.factor(),
            cap: milliseconds_of(window.cap),
        }
    }
}

impl From<&RetryPolicy> for Document {
    fn from(policy: &RetryPolicy) -> Document {
        let window = WindowDocument::from(&policy.window);
        Document {
            max_attempts: policy.max_attempts,
            max_elapsed: milliseconds_of(policy.max_elapsed),
            cut_at_deadline: policy.cut_at_deadline,
            attempt_timeout: policy.attempt_timeout.map(milliseconds_of),
            connect_timeout: policy.connect_timeout.map(milliseconds_of),
            base: window.base,
            factor: window.factor,
            cap: window.cap,
            overload: policy.overload.as_ref().map(WindowDocument::from),
            jitter: policy.jitter,
            retry_statuses: policy.retry_statuses().collect(),
            repeat: policy.repeat,
            key: policy.key.clone(),
            client_resends: policy.client_resends,
            should_retry_header: policy.should_retry_header.clone(),
            wake: policy.wake,
            wake_spread: milliseconds_of(policy.wake_spread),
            offline: policy.offline,
            offline_probe: policy.offline_probe.map(milliseconds_of),
            read_body: policy.read_body,
        }
    }
}

impl TryFrom<Document> for RetryPolicy {
    type Error = PolicyError;

    fn try_from(written: Document) -> Result<RetryPolicy, PolicyError> {
        let length = Duration::from_millis;
        let builder = RetryPolicy::builder()
            .max_attempts(written.max_attempts)
            .max_elapsed(length(written.max_elapsed))
            .cut_at_deadline(written.cut_at_deadline)
            .attempt_timeout(written.attempt_timeout.map(length))
            .connect_timeout(written.connect_timeout.map(length))
            .base(length(written.base))
            .factor(written.factor)
            .cap(length(written.cap))
            .jitter(written.jitter)
            .retry_statuses(written.retry_statuses)
            .repeat(written.repeat)
            .key(written.key)
            .client_resends(written.client_resends)
            .should_retry_header(written.should_retry_header.as_deref())
            .wake(written.wake)
            .wake_spread(length(written.wake_spread))
            .offline(written.offline)
            .offline_probe(written.offline_probe.map(length))
            .read_body(written.read_body);
        match written.overload {
            Some(window) => {
                builder.overload(length(window.base), window.factor, length(window.cap))
            }
            None => builder,
        }
        .build()
    }
}

impl Serialize for RetryPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Document::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RetryPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RetryPolicy, D::Error> {
        if deserializer.is_human_readable() {
            let document = Read::deserialize(deserializer)?;
            strict(RetryPolicy::builder(), document).map_err(de::Error::custom)
        } else {
            Document::deserialize(deserializer)?
                .try_into()
                .map_err(de::Error::custom)
        }
    }
}

/// The fields that differ from their default, as JSON with units; without the two that the text always names.
pub(super) fn differences(policy: &RetryPolicy) -> Vec<(String, String)> {
    let written = |policy: &RetryPolicy| match serde_json::to_value(policy) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let default = written(&RetryPolicy::default());
    written(policy)
        .into_iter()
        .filter(|(name, value)| default.get(name) != Some(value))
        .filter(|(name, _)| name != "max_attempts" && name != "max_elapsed")
        .map(|(name, value)| {
            let text = with_unit(&name, &value);
            (name, text)
        })
        .collect()
}

/// A field's value as it is printed: `500 ms`. A window's fields have units of their own.
fn with_unit(name: &str, value: &Value) -> String {
    const LENGTHS: [&str; 6] = [
        "attempt_timeout",
        "connect_timeout",
        "base",
        "cap",
        "wake_spread",
        "offline_probe",
    ];
    match value {
        Value::Number(length) if LENGTHS.contains(&name) => format!("{length} ms"),
        Value::Object(window) => {
            let fields = window
                .iter()
                .map(|(name, value)| format!("{name} = {}", with_unit(name, value)));
            format!("({})", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_name_without_underscores() {
        let Ok(Value::Object(default)) = serde_json::to_value(RetryPolicy::default()) else {
            unreachable!("a policy is an object");
        };
        for field in default.keys() {
            assert_eq!(
                meant(&field.replace('_', "").to_uppercase()),
                Some(&**field)
            );
        }
        assert_eq!(meant("retries"), None);
    }
}
