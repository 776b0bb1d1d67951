//! What a policy may be, how it is read and what it tells a driver, against `vectors/policy.json`.

mod support;

use comeback::{DriverFacts, RetryPolicy};
use serde_json::{Value, json};
use support::*;

/// A policy as it is written, its factors as plain numbers: 2 and 2.0 are one.
fn written(policy: &RetryPolicy) -> Value {
    plain(name(policy))
}

fn plain(mut policy: Value) -> Value {
    for path in ["/factor", "/overload/factor"] {
        if let Some(factor) = policy.pointer_mut(path) {
            *factor = json!(factor.as_f64());
        }
    }
    policy
}

#[test]
fn presets_are_what_they_are_named_for() {
    each("policy.json", "presets", |case| {
        same(plain(case["full"].clone()), written(&policy(case)))
    });
}

#[test]
fn a_valid_policy_is_read_field_by_field() {
    each("policy.json", "valid", |case| {
        same(plain(case["full"].clone()), written(&policy(case)))
    });
}

#[test]
fn a_policy_written_and_read_again_is_the_same() {
    each("policy.json", "valid", |case| {
        let policy = policy(case);
        let text = serde_json::to_string(&policy).expect("text");
        same(
            &policy,
            &RetryPolicy::from_json(&text).map_err(|error| error.to_string())?,
        )?;
        same(
            &policy,
            &serde_json::from_str(&text).map_err(|error| error.to_string())?,
        )
    });
}

#[test]
fn an_invalid_policy_is_refused_with_field_value_and_rule() {
    each("policy.json", "invalid", |case| {
        let text = case["policy"].to_string();
        let error = match RetryPolicy::from_json(&text) {
            Ok(policy) => return Err(format!("accepted as {policy}")),
            Err(error) => error,
        };
        same(case["field"].as_str(), Some(error.field()))?;
        if error.value().is_empty() || error.rule().is_empty() {
            return Err(format!("no value or no rule: {error:?}"));
        }
        // The value is told as it was given, at least where it is a plain one.
        let given = error
            .field()
            .split('.')
            .fold(&case["policy"], |part, name| &part[name]);
        if given.is_number() || given.is_boolean() || given.is_null() {
            same(number_text(given), number_text(&parsed(error.value())))?;
        }
        if serde_json::from_str::<RetryPolicy>(&text).is_ok() {
            return Err("accepted as a serde value".to_owned());
        }
        Ok(())
    });
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// Numbers compare as numbers: 1e300 may be written with all its zeros.
fn number_text(value: &Value) -> String {
    match value.as_f64() {
        Some(number) => number.to_string(),
        None => value.to_string(),
    }
}

#[test]
fn what_is_no_json_object_is_no_policy() {
    each(
        "policy.json",
        "not_json",
        |case| match RetryPolicy::from_json(case["text"].as_str().expect("a text")) {
            Ok(policy) => Err(format!("accepted as {policy}")),
            Err(error) => same("policy", error.field()),
        },
    );
}

#[test]
fn remote_configuration_never_fails_and_says_what_it_did() {
    each("policy.json", "forgiving", |case| {
        let fallback = preset(case["fallback"].as_str().expect("a preset"));
        let got = RetryPolicy::from_json_or(case["text"].as_str().expect("a text"), &fallback);
        let expected = match &case["full"] {
            Value::Null => written(&fallback),
            full => plain(full.clone()),
        };
        same(expected, written(&got.policy))?;
        same(texts(&case["ignored"]), sorted(&got.ignored))?;
        let problem = got.problem.as_ref().map(|problem| problem.field());
        same(case["problem"].as_str(), problem)
    });
}

fn sorted(names: &[String]) -> Vec<&str> {
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_policy_tells_a_driver_all_it_needs_before_a_first_attempt() {
    each("policy.json", "driver_facts", |case| {
        let facts = DriverFacts::of(&policy(case));
        let names =
            |methods: &[comeback::Method]| methods.iter().map(|m| m.name()).collect::<Vec<_>>();
        let got = json!({
            "repeatable": names(&facts.repeatable),
            "make_key": names(&facts.make_key),
            "key_header": facts.key_header,
            "key_form": name(facts.key_form),
            "should_retry_header": facts.should_retry_header,
            "attempt_timeout": facts.attempt_timeout.map(nanos),
            "connect_timeout": facts.connect_timeout.map(nanos),
            "cut_after": facts.cut_after.map(nanos),
            "client_resends": name(facts.client_resends),
        });
        let expected: serde_json::Map<String, Value> = object(case)
            .iter()
            .filter(|(name, _)| !["name", "rule", "policy"].contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        same(Value::Object(expected), got)
    });
}
