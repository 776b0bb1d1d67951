//! The circuit breaker against `vectors/breaker.json`, and its promises for any order of what happens to it.

#![allow(clippy::unwrap_used)] // a test says no by panicking

mod support;

use std::collections::HashMap;
use std::time::Duration;

use comeback::{
    Admission, Breaker, CircuitBreaker, FailureKind, Instant, Spoken, Ticket, Transition, What,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::*;

fn rules(value: &Value) -> CircuitBreaker {
    CircuitBreaker::from_json(&value.to_string()).unwrap()
}

fn told(transition: Option<Transition>) -> Value {
    match transition {
        None => json!({}),
        Some(Transition::Opened { until }) => json!({"told": "opened", "until": until.as_nanos()}),
        Some(Transition::HalfOpen) => json!({"told": "half_open"}),
        Some(Transition::Closed) => json!({"told": "closed"}),
    }
}

#[test]
fn it_opens_lets_probes_through_and_closes() {
    each("breaker.json", "cases", |case| {
        let mut breaker = Breaker::new(rules(&case["breaker"]), seed(&case["seed"]));
        let mut tickets = HashMap::<&str, Ticket>::new();
        for (index, step) in list(&case["steps"]).iter().enumerate() {
            let got = match step["do"].as_str().unwrap() {
                "admit" => {
                    let (admission, transition) =
                        breaker.admit(instant(&step["now"]), step["first"] == true);
                    let mut got = told(transition);
                    match admission {
                        Admission::Go(ticket) => {
                            tickets.insert(step["ticket"].as_str().unwrap_or(""), ticket);
                        }
                        Admission::Refused { until } => {
                            got["refused_until"] = json!(until.as_nanos());
                        }
                    }
                    got
                }
                "end" => {
                    let retry_after = step["retry_after"].as_u64().unwrap_or(0);
                    let spoken = match step["spoken"].as_str().unwrap() {
                        "success" => Spoken::Success,
                        "failure" => Spoken::Failure {
                            retry_after: Duration::from_nanos(retry_after),
                        },
                        _ => Spoken::Nothing,
                    };
                    let ticket = tickets[step["ticket"].as_str().unwrap()].clone();
                    told(breaker.end(ticket, instant(&step["now"]), spoken))
                }
                "allows_retry" => json!(breaker.allows_retry(instant(&step["now"]))),
                "is_at_rest" => json!(breaker.is_at_rest()),
                "succeeded" => {
                    breaker.succeeded(seed(&step["count"]));
                    Value::Null
                }
                other => panic!("no step {other}"),
            };
            same(&step["expect"], &got)
                .map_err(|difference| format!("step {index}: {difference}"))?;
        }
        Ok(())
    });
}

#[test]
fn only_some_outcomes_speak_of_the_server() {
    each("breaker.json", "spoken", |case| {
        let what = match &case["what"] {
            Value::String(kind) => What::Failure(FailureKind::from_name(kind).unwrap()),
            status => What::Status(u16::try_from(number(status)).unwrap()),
        };
        let noted = snapshot(&case["noted"]);
        let spoken = match Spoken::of(what, Duration::ZERO, &noted, &snapshot(&case["now"])) {
            Spoken::Success => "success",
            Spoken::Failure { .. } => "failure",
            Spoken::Nothing => "nothing",
        };
        same(case["says"].as_str(), Some(spoken))
    });
}

fn full(rules: CircuitBreaker) -> Value {
    json!({
        "window": rules.window(),
        "failures": rules.failures(),
        "probes": rules.probes(),
        "refuse_first": rules.refuse_first(),
    })
}

#[test]
fn a_breaker_is_read_as_an_app_ships_it() {
    each("breaker.json", "valid", |case| {
        same(&case["full"], &full(rules(&case["breaker"])))
    });
    each("breaker.json", "invalid", |case| {
        let refused = CircuitBreaker::from_json(&case["breaker"].to_string()).unwrap_err();
        same(case["field"].as_str(), Some(refused.field()))
    });
}

#[test]
fn remote_configuration_never_fails() {
    each("breaker.json", "forgiving", |case| {
        let text = case["text"].as_str().unwrap();
        let made = CircuitBreaker::from_json_or(text, rules(&case["fallback"]));
        same(&case["full"], &full(made.value))?;
        same(
            texts(&case["ignored"]),
            made.ignored.iter().map(String::as_str).collect(),
        )?;
        same(
            case["problem"].as_str(),
            made.problem.as_ref().map(|problem| problem.field()),
        )
    });
}

#[derive(Clone, Debug)]
enum Step {
    Admit {
        first: bool,
    },
    /// Ends one of the tickets so far: an old one perhaps, or one that has ended already.
    End {
        which: usize,
        spoken: Spoken,
    },
    Pass(i64),
    Back(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let spoken = prop_oneof![
        2 => Just(Spoken::Success),
        6 => (0_u64..100).prop_map(|seconds| Spoken::Failure { retry_after: Duration::from_secs(seconds) }),
        2 => Just(Spoken::Nothing),
    ];
    let step = prop_oneof![
        5 => any::<bool>().prop_map(|first| Step::Admit { first }),
        5 => (any::<usize>(), spoken).prop_map(|(which, spoken)| Step::End { which, spoken }),
        3 => (0_i64..90_000_000_000).prop_map(Step::Pass),
        1 => (0_i64..90_000_000_000).prop_map(Step::Back),
    ];
    proptest::collection::vec(step, 0..400)
}

proptest! {
    #[test]
    fn with_refuse_first_never_more_than_the_allowed_probes_are_out(
        probes in 1_u8..=10,
        seed: u64,
        steps in steps(),
    ) {
        let rules = CircuitBreaker::builder().window(3).failures(2).probes(probes).refuse_first(true).build().unwrap();
        let mut breaker = Breaker::new(rules, seed);
        let (mut now, mut latest) = (0_i64, i64::MIN);
        let mut tickets = Vec::new();
        let mut is_closed = true;
        // Those of this half-open time: which ticket, and when it was admitted.
        let mut out = Vec::<(usize, i64)>::new();
        for step in steps {
            match step {
                Step::Pass(by) => now += by,
                Step::Back(by) => now -= by,
                Step::Admit { first } => {
                    latest = latest.max(now);
                    let (admission, transition) = breaker.admit(Instant::from_nanos(now), first);
                    if transition == Some(Transition::HalfOpen) {
                        out.clear();
                    }
                    if let Admission::Go(ticket) = admission {
                        if !is_closed {
                            out.retain(|(_, admitted)| latest - admitted < 60_000_000_000);
                            out.push((tickets.len(), latest));
                            prop_assert!(out.len() <= probes.into());
                        }
                        tickets.push(ticket);
                    }
                }
                Step::End { which, spoken } if !tickets.is_empty() => {
                    latest = latest.max(now);
                    let which = which % tickets.len();
                    match breaker.end(tickets[which].clone(), Instant::from_nanos(now), spoken) {
                        Some(Transition::Opened { until }) => {
                            is_closed = false;
                            out.clear();
                            let open_for = until.as_nanos() - latest;
                            prop_assert!((2_500_000_000..=60_000_000_000).contains(&open_for));
                        }
                        Some(Transition::Closed) => {
                            is_closed = true;
                            out.clear();
                        }
                        Some(Transition::HalfOpen) => prop_assert!(false, "an end makes nothing half-open"),
                        None => {}
                    }
                    out.retain(|(ticket, _)| *ticket != which);
                }
                Step::End { .. } => {}
            }
        }
    }

    #[test]
    fn without_refuse_first_no_first_attempt_is_ever_refused(seed: u64, steps in steps()) {
        let rules = CircuitBreaker::builder().window(2).failures(1).build().unwrap();
        let mut breaker = Breaker::new(rules, seed);
        let mut now = 0_i64;
        let mut tickets = Vec::new();
        for step in steps {
            match step {
                Step::Pass(by) => now += by,
                Step::Back(by) => now -= by,
                Step::Admit { first } => match breaker.admit(Instant::from_nanos(now), first).0 {
                    Admission::Go(ticket) => tickets.push(ticket),
                    Admission::Refused { .. } => prop_assert!(!first),
                },
                Step::End { which, spoken } if !tickets.is_empty() => {
                    let _ = breaker.end(tickets[which % tickets.len()].clone(), Instant::from_nanos(now), spoken);
                }
                Step::End { .. } => {}
            }
        }
    }

    #[test]
    fn it_is_never_open_for_ever(seed: u64, steps in steps()) {
        let rules = CircuitBreaker::builder().window(2).failures(1).refuse_first(true).build().unwrap();
        let mut breaker = Breaker::new(rules, seed);
        let mut now = 0_i64;
        let mut latest = i64::MIN;
        let mut tickets = Vec::new();
        for step in steps {
            match step {
                Step::Pass(by) => now += by,
                Step::Back(by) => now -= by,
                Step::Admit { first } => {
                    latest = latest.max(now);
                    if let Admission::Go(ticket) = breaker.admit(Instant::from_nanos(now), first).0 {
                        tickets.push(ticket);
                    }
                }
                Step::End { which, spoken } if !tickets.is_empty() => {
                    latest = latest.max(now);
                    let _ = breaker.end(tickets[which % tickets.len()].clone(), Instant::from_nanos(now), spoken);
                }
                Step::End { .. } => {}
            }
        }
        // Whatever was lost: after a minute somebody may try.
        let later = Instant::from_nanos(latest.saturating_add(60_000_000_000));
        prop_assert!(matches!(breaker.admit(later, true).0, Admission::Go(_)));
    }
}
