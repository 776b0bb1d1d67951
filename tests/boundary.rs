//! What crosses to Kotlin says what the vectors say, and calls get seeds of their own. Kotlin's own tests go on from here.

#![cfg(feature = "uniffi")]

mod support;

use std::collections::HashSet;

use comeback::ffi::{
    BeginInput, DecideInput, PolicyProblem, RequestHead, begin, compile_policy, decide,
    policy_from_json_or,
};
use comeback::{FailureKind, Snapshot};
use support::*;

#[test]
fn a_policy_crosses_whole_or_is_refused_with_its_field() {
    each("policy.json", "valid", |case| {
        let compiled = compile_policy("default".to_owned(), case["policy"].to_string());
        let compiled = compiled.map_err(|problem| problem.to_string())?;
        same(policy(case).to_string(), compiled.text)?;
        same(policy(case).schedule().to_string(), compiled.schedule)?;
        // As a fallback for what is no policy it comes back as it was.
        let again = policy_from_json_or("<html>".to_owned(), compiled.bytes.clone());
        let again = again.map_err(|problem| problem.to_string())?;
        same(Some("policy"), again.field.as_deref())?;
        same(compiled.bytes, again.policy.bytes)
    });
    each("policy.json", "invalid", |case| {
        match compile_policy("default".to_owned(), case["policy"].to_string()) {
            Err(PolicyProblem::Invalid { field, .. }) => {
                same(case["field"].as_str(), Some(field.as_str()))
            }
            Ok(accepted) => Err(format!("accepted as {}", accepted.text)),
        }
    });
}

#[test]
fn every_call_gets_a_seed_of_its_own_from_the_operating_system() {
    let policy = compile_policy("default".to_owned(), "{}".to_owned()).unwrap();
    let first_wait = |_| {
        let call = begin(BeginInput {
            head: RequestHead {
                method: "GET".to_owned(),
                ..RequestHead::default()
            },
            has_body: false,
            body_replayable: true,
            seed: None,
            began: 0,
            client_end: None,
        });
        let answer = decide(DecideInput {
            policy: policy.bytes.clone(),
            call: call.unwrap(),
            noted: Snapshot::UNKNOWN.into(),
            now: 0,
            wall_ms: None,
            network: Snapshot::UNKNOWN.into(),
            status: 0,
            failure: Some(FailureKind::Reset),
            retry_after: Vec::new(),
            date: None,
            should_retry: None,
            look_up: 0,
            sent_nothing: false,
            body_untouched: false,
            body_spent: false,
            went_out: None,
            inner: Vec::new(),
            overrule: None,
        });
        answer.unwrap().wait.unwrap().planned
    };
    let waits: HashSet<i64> = (0..1_000).map(first_wait).collect();
    assert!(
        waits.len() > 990,
        "only {} waits of 1000 calls differ",
        waits.len()
    );
}
