//! What a policy may be, how it is read and what it tells a driver, against `vectors/policy.json`.

#![allow(clippy::expect_used)] // a test says no by panicking

mod support;

use std::time::Duration;

use comeback::{DriverFacts, PolicyBuilder, RetryPolicy};
use serde::de::{Deserialize, Deserializer, Visitor};
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
        // The value is told as it was given, at least where it is a plain one; a length with its unit.
        let given = error
            .field()
            .split('.')
            .fold(&case["policy"], |part, name| &part[name]);
        let told = error.value().trim_end_matches(" ms");
        if given.is_number() || given.is_boolean() || given.is_null() {
            same(number_text(given), number_text(&parsed(told)))?;
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
fn a_field_that_is_there_twice_is_refused() {
    each("policy.json", "duplicates", |case| {
        let text = case["text"].as_str().expect("a text");
        if serde_json::from_str::<RetryPolicy>(text).is_ok() {
            return Err("accepted as a serde value".to_owned());
        }
        match RetryPolicy::from_json(text) {
            Ok(policy) => Err(format!("accepted as {policy}")),
            Err(error) => same(case["field"].as_str(), Some(error.field())),
        }
    });
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
            "read_body": facts.read_body,
            "ignores_network": facts.ignores_network,
            "max_attempts": facts.max_attempts,
        });
        let expected: serde_json::Map<String, Value> = object(case)
            .iter()
            .filter(|(name, _)| !["name", "rule", "policy"].contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        same(Value::Object(expected), got)
    });
}

/// What a builder's value is refused with: field, value and rule.
fn refused(builder: PolicyBuilder) -> [String; 3] {
    let error = builder.build().expect_err("refused");
    [error.field(), error.value(), error.rule()].map(str::to_owned)
}

#[test]
fn what_overflows_later_is_refused_when_a_policy_is_built() {
    let builder = RetryPolicy::builder;
    let day = "must be whole milliseconds from 1 to 86400000 (24 h)";
    for (build, field, value, rule) in [
        (builder().base(Duration::ZERO), "base", "0 ms", day),
        (
            builder().base(Duration::MAX),
            "base",
            "18446744073709551615999.999999 ms",
            day,
        ),
        (
            builder().cap(Duration::MAX),
            "cap",
            "18446744073709551615999.999999 ms",
            day,
        ),
        (
            builder().base(Duration::from_micros(1_500)),
            "base",
            "1.5 ms",
            day,
        ),
        (
            builder().base(Duration::from_secs(9)),
            "base",
            "9000 ms",
            "must be at most cap, which is 8000 ms",
        ),
        (
            builder().max_elapsed(Duration::from_millis(99)),
            "max_elapsed",
            "99 ms",
            "must be whole milliseconds from 100 to 86400000 (24 h)",
        ),
        (
            builder().max_attempts(0),
            "max_attempts",
            "0",
            "must be from 1 to 100",
        ),
        (
            builder().max_attempts(u32::MAX),
            "max_attempts",
            "4294967295",
            "must be from 1 to 100",
        ),
        (
            builder().retry_statuses([503, 399]),
            "retry_statuses",
            "399",
            "must be from 400 to 599",
        ),
    ] {
        assert_eq!(refused(build), [field, value, rule]);
    }
    for factor in [f64::NAN, f64::INFINITY, -2.0, 0.0, 0.999, 10.001, 1.0005] {
        let [field, value, rule] = refused(builder().factor(factor));
        assert_eq!(
            (field.as_str(), value, rule.as_str()),
            (
                "factor",
                factor.to_string(),
                "must be from 1 to 10 with at most three decimals"
            )
        );
    }
}

#[test]
fn the_first_invalid_value_is_the_one_named() {
    let builder = RetryPolicy::builder()
        .max_attempts(0)
        .base(Duration::ZERO)
        .key_header("");
    assert_eq!(refused(builder)[0], "max_attempts");
}

#[test]
fn fields_are_set_in_any_order_and_checked_together() {
    let one = RetryPolicy::builder()
        .base(Duration::from_secs(9))
        .cap(Duration::from_secs(60));
    let other = RetryPolicy::builder()
        .cap(Duration::from_secs(60))
        .base(Duration::from_secs(9));
    assert_eq!(one.build(), other.build());
}

#[test]
fn a_policy_built_over_another_keeps_what_was_not_set() {
    let policy = RetryPolicy::payment().to_builder().max_attempts(7).build();
    let json = RetryPolicy::payment().with_json(r#"{"max_attempts": 7}"#);
    assert_eq!(policy, json);
    let policy = policy.expect("valid");
    assert_eq!(policy.max_attempts(), 7);
    assert_eq!(policy.max_elapsed(), RetryPolicy::payment().max_elapsed());
    let cleared = policy.with_json(r#"{"overload": {"base": 1, "factor": 1, "cap": 1}}"#);
    let cleared = cleared.and_then(|policy| policy.with_json(r#"{"overload": null}"#));
    assert_eq!(cleared, Ok(policy));
}

#[test]
fn a_schedule_is_printed_attempt_by_attempt() {
    let print = |json: &str| {
        let policy = RetryPolicy::from_json(json).expect("a valid policy");
        policy.schedule().to_string()
    };
    assert_eq!(
        print(r#"{"max_attempts": 3}"#),
        "attempt 1: at once\n\
         attempt 2: after up to 1000 ms\n\
         attempt 3: after up to 2000 ms\n\
         no attempt starts later than 19900 ms after the call began"
    );
    assert_eq!(
        print(r#"{"jitter": "none", "base": 100, "cap": 1000, "max_attempts": 6}"#),
        "attempt 1: at once\n\
         attempt 2: after 100 ms\n\
         attempt 3: after 200 ms\n\
         attempt 4: after 400 ms\n\
         attempt 5: after 800 ms\n\
         attempt 6: after 1000 ms\n\
         no attempt starts later than 19900 ms after the call began"
    );
    assert_eq!(
        print(r#"{"jitter": "equal", "max_attempts": 3, "max_elapsed": 100}"#),
        "attempt 1: at once\n\
         attempt 2: after 500 ms to 1000 ms\n\
         attempt 3: after 1000 ms to 2000 ms\n\
         no attempt starts later than 0 ms after the call began"
    );
    assert_eq!(
        print(r#"{"jitter": "decorrelated", "max_attempts": 4}"#),
        "attempt 1: at once\n\
         attempt 2: after 1000 ms to 3000 ms\n\
         attempt 3: after 1000 ms to 8000 ms\n\
         attempt 4: after 1000 ms to 8000 ms\n\
         no attempt starts later than 19900 ms after the call began"
    );
}

#[test]
fn a_schedule_tells_the_window_after_an_overload_too() {
    let print = |jitter: &str| {
        let overload = r#""overload": {"base": 10000, "factor": 3, "cap": 60000}"#;
        let json =
            format!(r#"{{"max_attempts": 3, "cap": 60000, "jitter": "{jitter}", {overload}}}"#);
        let policy = RetryPolicy::from_json(&json).expect("a valid policy");
        policy.schedule().to_string()
    };
    assert_eq!(
        print("full"),
        "attempt 1: at once\n\
         attempt 2: after up to 1000 ms, or up to 10000 ms after 429 and 503\n\
         attempt 3: after up to 2000 ms, or up to 30000 ms after 429 and 503\n\
         no attempt starts later than 19900 ms after the call began"
    );
    // Three times the longest draw so far, whichever window it came from.
    assert_eq!(
        print("decorrelated"),
        "attempt 1: at once\n\
         attempt 2: after 1000 ms to 3000 ms, or 10000 ms to 30000 ms after 429 and 503\n\
         attempt 3: after 1000 ms to 60000 ms, or 10000 ms to 60000 ms after 429 and 503\n\
         no attempt starts later than 19900 ms after the call began"
    );
}

#[test]
fn a_policy_prints_what_is_not_its_default() {
    assert_eq!(
        RetryPolicy::default().to_string(),
        "RetryPolicy(4 attempts within 20000 ms)"
    );
    assert_eq!(
        RetryPolicy::payment().to_string(),
        "RetryPolicy(3 attempts within 15000 ms, client_resends = \"off\", \
         retry_statuses = [408,409,425,429,500,502,503,504,520,521,522,523,524,529,530])"
    );
    assert_eq!(
        RetryPolicy::read().to_string(),
        "RetryPolicy(5 attempts within 20000 ms, cut_at_deadline = true)"
    );
    assert_eq!(
        RetryPolicy::batch().to_string(),
        "RetryPolicy(8 attempts within 20000 ms, base = 20 ms, cap = 500 ms)"
    );
    let overload = r#"{"overload": {"base": 10000, "factor": 3, "cap": 60000}}"#;
    assert_eq!(
        RetryPolicy::from_json(overload).map(|policy| policy.to_string()),
        Ok("RetryPolicy(4 attempts within 20000 ms, \
            overload = (base = 10000 ms, cap = 60000 ms, factor = 3.0))"
            .to_owned())
    );
}

/// A format that names its fields but is not for people, as CBOR is.
struct Binary(Value);

impl<'de> Deserializer<'de> for Binary {
    type Error = serde_json::Error;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.0.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

#[test]
fn a_binary_format_with_names_follows_the_rules_of_json() {
    each("policy.json", "valid", |case| {
        let read = RetryPolicy::deserialize(Binary(case["policy"].clone()));
        same(policy(case), read.map_err(|error| error.to_string())?)
    });
    each("policy.json", "invalid", |case| {
        if case["policy"]["key"].is_array() {
            return Ok(()); // there a list is an object without its names
        }
        match RetryPolicy::deserialize(Binary(case["policy"].clone())) {
            Ok(policy) => Err(format!("accepted as {policy}")),
            Err(_) => Ok(()),
        }
    });
}

#[test]
fn every_factor_of_three_decimals_is_kept_and_none_between() {
    for thousandths in 1_000..=10_000 {
        let factor = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
        let policy = RetryPolicy::from_json(&format!("{{\"factor\": {factor}}}"));
        let kept = policy.expect("a valid factor").window().factor();
        assert_eq!(format!("{kept:.3}"), factor);
        RetryPolicy::from_json(&format!("{{\"factor\": {factor}4}}")).expect_err("four decimals");
    }
}

#[test]
fn a_length_that_is_no_whole_number_is_told_its_own_fields_rule() {
    let shortest = [
        ("max_elapsed", 100),
        ("attempt_timeout", 100),
        ("connect_timeout", 100),
        ("base", 1),
        ("cap", 1),
        ("wake_spread", 0),
        ("offline_probe", 1_000),
    ];
    for (field, low) in shortest {
        for wrong in ["-5", "1.5", "\"1 s\"", "86400001"] {
            let error = RetryPolicy::from_json(&format!("{{\"{field}\": {wrong}}}")).unwrap_err();
            let rule = format!("must be whole milliseconds from {low} to 86400000 (24 h)");
            assert_eq!((error.field(), error.rule()), (field, rule.as_str()));
        }
    }
}

#[test]
fn an_error_stays_short_whatever_it_quotes() {
    let long = "x".repeat(1_000_000);
    for text in [
        format!("{{\"{long}\": 1}}"),
        format!("{{\"key\": {{\"{long}\": 1}}}}"),
        format!("{{\"jitter\": \"{long}\"}}"),
        long,
    ] {
        let error = RetryPolicy::from_json(&text).unwrap_err();
        assert!(error.to_string().len() < 400);
    }
}

#[test]
fn a_text_that_is_no_json_is_told_where_it_goes_wrong() {
    let long = "x".repeat(500);
    for (text, value, place) in [
        ("<html>", "\"<html>\"", (1, 1)),
        ("{\"cap\" 4000}", "\"{\\\"cap\\\" 4000}\"", (1, 8)),
        ("{\n  \"base\": 500,\n  \"cap\": 4000,\n}", "\"}\"", (4, 1)),
        ("{\n  \"base\": 500", "\"  \\\"base\\\": 500\"", (2, 13)),
        (
            &format!("{{\"jitter\": \"{long}\", cap: 4000}}"),
            "…\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\\\", cap: 4000}\"",
            (1, 516),
        ),
        ("", "\"\"", (1, 0)),
    ] {
        let error = RetryPolicy::from_json(text).unwrap_err();
        assert_eq!((error.field(), error.value()), ("policy", value));
        assert_eq!(error.line_and_column(), Some(place), "{error}");
        let (line, column) = place;
        let told = format!("at line {line} column {column})");
        assert!(error.rule().ends_with(&told), "{error}");
    }
    // Where a letter has several bytes, too.
    let umlauts = format!("{{\"{}\" 1}}", "ü".repeat(300));
    let error = RetryPolicy::from_json(&umlauts).unwrap_err();
    assert_eq!(error.line_and_column(), Some((1, 605)), "{error}");
    // What is JSON has no such place.
    for text in ["[]", "{\"cap\": 0}"] {
        let error = RetryPolicy::from_json(text).unwrap_err();
        assert_eq!(error.line_and_column(), None, "{error}");
    }
}

#[test]
fn a_name_in_the_habit_of_another_language_says_which_field_was_meant() {
    let strict = RetryPolicy::from_json(r#"{"maxAttempts": 6}"#).unwrap_err();
    assert_eq!(
        strict.to_string(),
        "maxAttempts = 6: is not a field of a policy; did you mean max_attempts?"
    );
    let text = r#"{"max-attempts": 6, "overload": {"Base": 1, "base": 1, "factor": 2, "cap": 9}, "retries": 3}"#;
    let made = RetryPolicy::from_json_or(text, &RetryPolicy::read());
    assert_eq!(
        made.ignored,
        [
            "max-attempts (did you mean max_attempts?)",
            "overload.Base (did you mean overload.base?)",
            "retries",
        ]
    );
    assert_eq!(made.problem, None);
}
