//! The retry budget against `vectors/budget.json`, and its one promise for any order of what happens to it.

#![allow(clippy::unwrap_used)] // a test says no by panicking

mod support;

use comeback::{RetryBudget, TokenBucket, costs_a_token};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::*;

#[test]
fn what_may_be_the_server_costs_a_token_and_what_may_be_the_network_is_free() {
    each("budget.json", "costs", |case| {
        let class = named(&case["class"]);
        let costs = costs_a_token(class, &snapshot(&case["noted"]), &snapshot(&case["now"]));
        same(case["costs"].as_bool(), Some(costs))
    });
}

#[test]
fn tokens_are_taken_put_back_and_earned() {
    each("budget.json", "buckets", |case| {
        let capacity = u16::try_from(number(&case["capacity"])).unwrap();
        let mut tokens = TokenBucket::new(RetryBudget::new(capacity).unwrap());
        for (index, step) in list(&case["steps"]).iter().enumerate() {
            let got = match step["do"].as_str().unwrap() {
                "take" => json!(tokens.take()),
                "has_one" => json!(tokens.has_one()),
                "is_full" => json!(tokens.is_full()),
                "put_back" => {
                    tokens.put_back();
                    Value::Null
                }
                "first_attempts_succeeded" => {
                    tokens.first_attempts_succeeded(seed(&step["count"]));
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
fn a_budget_is_read_as_an_app_ships_it() {
    each("budget.json", "valid", |case| {
        let budget = RetryBudget::from_json(&case["budget"].to_string());
        same(
            Ok(number(&case["capacity"])),
            budget.map(|budget| budget.capacity().into()),
        )
    });
    each("budget.json", "invalid", |case| {
        let refused = RetryBudget::from_json(&case["budget"].to_string()).unwrap_err();
        same(case["field"].as_str(), Some(refused.field()))
    });
    let twice = RetryBudget::from_json(r#"{"capacity": 1, "capacity": 2}"#).unwrap_err();
    assert_eq!(twice.to_string(), "capacity = 2: must not be there twice");
}

#[test]
fn remote_configuration_never_fails() {
    each("budget.json", "forgiving", |case| {
        let fallback = RetryBudget::from_json(&case["fallback"].to_string()).unwrap();
        let made = RetryBudget::from_json_or(case["text"].as_str().unwrap(), fallback);
        same(number(&case["capacity"]), made.value.capacity().into())?;
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
    Take,
    PutBack,
    Succeeded(u64),
}

proptest! {
    #[test]
    fn retries_that_took_a_token_are_never_more_than_the_capacity_and_what_was_added(
        capacity in 1_u16..=1_000,
        steps in proptest::collection::vec(
            prop_oneof![
                4 => Just(Step::Take),
                1 => Just(Step::PutBack),
                1 => (0_u64..=30).prop_map(Step::Succeeded),
                1 => any::<u64>().prop_map(Step::Succeeded),
            ],
            0..300,
        ),
    ) {
        let mut tokens = TokenBucket::new(RetryBudget::new(capacity).unwrap());
        let (mut taken, mut out, mut added) = (0_u128, 0_u128, 0_u128);
        for step in steps {
            match step {
                Step::Take => {
                    let promised = tokens.has_one();
                    prop_assert_eq!(tokens.take(), promised);
                    taken += u128::from(promised);
                    out += u128::from(promised);
                }
                Step::PutBack if out > 0 => {
                    tokens.put_back();
                    out -= 1;
                    added += 1_000;
                }
                Step::PutBack => {}
                Step::Succeeded(count) => {
                    tokens.first_attempts_succeeded(count);
                    added += u128::from(count) * 100;
                }
            }
            prop_assert!(taken * 1_000 <= u128::from(capacity) * 1_000 + added);
        }
    }
}
