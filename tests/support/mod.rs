//! Reads the vectors of `tests/vectors` and turns their words into the crate's types. The format is in the folder's README.

#![allow(dead_code)] // each test file uses its part
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)] // a test says no by panicking

pub(crate) mod drive;
pub(crate) mod replay;

use std::path::PathBuf;
use std::time::Duration;

use comeback::draw::Purpose;
use comeback::*;
use serde_json::{Map, Value, json};

pub(crate) fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/vectors")
        .join(file)
}

pub(crate) fn read(file: &str) -> String {
    std::fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Runs every case of a list and fails with all that differ, each with its name and its rule.
pub(crate) fn each(file: &str, list: &str, test: impl Fn(&Value) -> Result<(), String>) {
    let document: Value = serde_json::from_str(&read(file)).expect(file);
    let cases = document[list]
        .as_array()
        .unwrap_or_else(|| panic!("{file} has no list {list}"));
    assert!(!cases.is_empty(), "{file}: {list} is empty");
    let differences: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let difference = test(case).err()?;
            Some(format!(
                "{} [{}]\n  {difference}",
                case["name"], case["rule"]
            ))
        })
        .collect();
    assert!(
        differences.is_empty(),
        "{file}, {list}: {} of {} differ\n{}",
        differences.len(),
        cases.len(),
        differences.join("\n")
    );
}

pub(crate) fn same<T: PartialEq + std::fmt::Debug>(expected: T, got: T) -> Result<(), String> {
    if expected == got {
        Ok(())
    } else {
        Err(format!("expected {expected:?}\n  got      {got:?}"))
    }
}

/// The policy of a case: a preset by name, or an object over the default.
pub(crate) fn policy(case: &Value) -> RetryPolicy {
    if let Some(name) = case["preset"].as_str() {
        return preset(name);
    }
    match &case["policy"] {
        Value::Null => RetryPolicy::default(),
        policy => RetryPolicy::from_json(&policy.to_string()).expect("a valid policy"),
    }
}

/// The window a case asks for: the policy's own or its overload's.
pub(crate) fn window(case: &Value) -> Window {
    let policy = policy(case);
    if case["overload"] == true {
        policy.overload().expect("an overload window")
    } else {
        policy.window()
    }
}

pub(crate) fn preset(name: &str) -> RetryPolicy {
    match name {
        "default" => RetryPolicy::default(),
        "payment" => RetryPolicy::payment(),
        "read" => RetryPolicy::read(),
        "batch" => RetryPolicy::batch(),
        other => panic!("no preset {other}"),
    }
}

pub(crate) fn request(value: &Value) -> RequestFacts {
    let flag = |name: &str| value[name].as_bool();
    RequestFacts {
        method: Method::parse(value["method"].as_str().unwrap_or("GET")),
        has_key: flag("has_key").unwrap_or(false),
        conditional: flag("conditional").unwrap_or(false),
        has_body: flag("has_body").unwrap_or(false),
        body_replayable: flag("body_replayable").unwrap_or(true),
        only_if_cached: flag("only_if_cached").unwrap_or(false),
    }
}

/// What a layer further in tells of one of its requests.
fn told(value: &Value) -> InnerRequest {
    let builder = RetryPolicy::builder();
    let policy = match value["repeat"].as_str() {
        None => builder,
        Some("always") => builder.repeat(Repeat::Always),
        Some("never") => builder.repeat(Repeat::Never),
        Some(other) => panic!("no repeat {other}"),
    };
    let facts = request(value);
    let facts = RequestFacts {
        has_key: facts.has_key && value["key_is_made"] != true,
        ..facts
    };
    let sent_nothing = value["sent_nothing"] == true;
    InnerRequest::of(&policy.build().unwrap(), &facts, sent_nothing)
}

/// Hands the outcome of a step on; it borrows the lines of its headers.
pub(crate) fn with_outcome<T>(value: &Value, use_it: impl FnOnce(&Outcome<'_>) -> T) -> T {
    let lines: Vec<&str> = texts(&value["retry_after"]);
    let mut outcome = match (value["status"].as_u64(), value["error"].as_str()) {
        (Some(status), None) => Outcome::response(status.try_into().expect("a status")),
        (None, Some(kind)) => {
            Outcome::failure(FailureKind::from_name(kind).expect("a failure kind"))
        }
        _ => panic!("neither a status nor an error: {value}"),
    };
    outcome.retry_after = &lines;
    outcome.date = value["date"].as_str();
    outcome.should_retry = value["should_retry"].as_str();
    outcome.look_up = Duration::from_nanos(value["look_up"].as_u64().unwrap_or(0));
    outcome.evidence.body_untouched = value["body_untouched"].as_bool().unwrap_or(false);
    outcome.evidence.body_spent = value["body_spent"].as_bool().unwrap_or(false);
    outcome.overrule = value.get("overrule").map(named);
    if let Some(proof) = value["sent_nothing"].as_bool() {
        outcome.evidence.sent_nothing = proof;
    }
    outcome.evidence.went_out = value.get("went_out").map(request);
    let inner = value["inner"].as_array().map(Vec::as_slice);
    let inner: Vec<InnerRequest> = inner.unwrap_or_default().iter().map(told).collect();
    outcome.evidence.inner = &inner;
    use_it(&outcome)
}

pub(crate) fn texts(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .map(|lines| lines.iter().map(|line| line.as_str().unwrap()).collect())
        .unwrap_or_default()
}

/// An enum by its `snake_case` name.
pub(crate) fn named<T: serde::de::DeserializeOwned>(name: &Value) -> T {
    serde_json::from_value(name.clone()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub(crate) fn name(value: impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("a name")
}

pub(crate) fn nanos(value: Duration) -> i64 {
    i64::try_from(value.as_nanos()).expect("fits")
}

pub(crate) fn number(value: &Value) -> i64 {
    value
        .as_i64()
        .unwrap_or_else(|| panic!("{value} is no 64-bit integer"))
}

pub(crate) fn instant(value: &Value) -> Instant {
    Instant::from_nanos(number(value))
}

/// Seeds are written signed.
pub(crate) fn seed(value: &Value) -> u64 {
    number(value) as u64
}

pub(crate) fn durations(value: &Value) -> Vec<i64> {
    list(value).iter().map(number).collect()
}

pub(crate) fn hex(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().expect("a word"), 16).expect("hexadecimal")
}

pub(crate) fn purpose(value: &Value) -> Purpose {
    match value.as_str() {
        Some("wait") => Purpose::Wait,
        Some("spread") => Purpose::Spread,
        _ => panic!("{value} is no purpose"),
    }
}

pub(crate) fn snapshot(value: &Value) -> Snapshot {
    serde_json::from_value(value.clone()).expect("a snapshot")
}

pub(crate) fn snapshot_json(snapshot: &Snapshot) -> Value {
    json!({
        "state": name(snapshot.state),
        "since": snapshot.since.as_nanos(),
        "epoch": snapshot.epoch,
        "path": snapshot.path,
    })
}

pub(crate) fn reason_name(reason: Option<Reason>) -> (String, Option<i64>) {
    match reason {
        None => ("done".to_owned(), None),
        Some(Reason::ServerWaitTooLong { ms }) => ("server_wait_too_long".to_owned(), Some(ms)),
        Some(other) => (name(other).as_str().expect("a reason").to_owned(), None),
    }
}

pub(crate) fn reason(name: &str, ms: Option<i64>) -> Option<Reason> {
    match (name, ms) {
        ("done", None) => None,
        ("server_wait_too_long", Some(ms)) => Some(Reason::ServerWaitTooLong { ms }),
        (other, None) => Some(named(&Value::from(other))),
        other => panic!("{other:?} is no reason"),
    }
}

pub(crate) fn what_text(what: What) -> String {
    match what {
        What::Status(status) => status.to_string(),
        What::Failure(kind) => kind.name().to_owned(),
    }
}

fn what(text: &str) -> What {
    match text.parse() {
        Ok(status) => What::Status(status),
        Err(_) => What::Failure(FailureKind::from_name(text).expect("a failure kind")),
    }
}

pub(crate) fn event_json(event: &Event) -> Value {
    match *event {
        Event::AttemptFailed {
            class,
            what,
            counted,
        } => {
            json!({"event": "attempt_failed", "class": name(class), "what": what_text(what), "counted": counted})
        }
        Event::AttemptAbandoned => json!({"event": "attempt_abandoned"}),
        Event::WaitPlanned(PlannedWait {
            planned,
            window,
            floor,
            why,
            ..
        }) => {
            json!({"event": "wait_planned", "planned": nanos(planned), "window": nanos(window), "floor": nanos(floor), "why": name(why)})
        }
        Event::Resumed(ResumedWait {
            planned,
            effective,
            by,
            ..
        }) => {
            json!({"event": "resumed", "planned": nanos(planned), "effective": nanos(effective), "by": name(by)})
        }
        Event::Final(End {
            reason,
            counted,
            elapsed,
            ..
        }) => {
            let (reason, ms) = reason_name(reason);
            json!({"event": "final", "reason": reason, "ms": ms, "counted": counted, "elapsed": nanos(elapsed)})
        }
        ref other => panic!("an event that no vector knows: {other:?}"),
    }
}

pub(crate) fn event(value: &Value) -> Event {
    let length = |name: &str| Duration::from_nanos(value[name].as_u64().expect("a length"));
    match value["event"].as_str().expect("an event") {
        "attempt_failed" => Event::AttemptFailed {
            class: named(&value["class"]),
            what: what(value["what"].as_str().expect("a text")),
            counted: value["counted"].as_bool().expect("a flag"),
        },
        "attempt_abandoned" => Event::AttemptAbandoned,
        "wait_planned" => Event::WaitPlanned(named(&json!({
            "planned": length("planned"),
            "window": length("window"),
            "floor": length("floor"),
            "why": value["why"],
        }))),
        "resumed" => Event::Resumed(named(&json!({
            "planned": length("planned"),
            "effective": length("effective"),
            "by": value["by"],
        }))),
        "final" => Event::Final(named(&json!({
            "reason": reason(value["reason"].as_str().unwrap(), value["ms"].as_i64()),
            "counted": value["counted"],
            "elapsed": length("elapsed"),
            "may_have_arrived": value["may_have_arrived"].as_bool().unwrap_or(true),
        }))),
        other => panic!("no event {other}"),
    }
}

pub(crate) fn events_json(events: Events) -> Value {
    events
        .into_iter()
        .map(|event| event_json(&event))
        .collect::<Vec<_>>()
        .into()
}

pub(crate) fn limit_json(limit: &Limit) -> Value {
    json!({"hard": limit.hard.map(nanos), "inactivity": limit.inactivity.map(nanos)})
}

pub(crate) fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}
