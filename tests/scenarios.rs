//! Random calls with the answers of the project's independent model: the 300 of `vectors/scenarios.jsonl` and, if the environment names
//! a file in `COMEBACK_SCENARIOS`, all of that file too (`cargo xtask oracle` does).

#![allow(clippy::panic)] // a test says no by panicking

mod support;

use serde_json::Value;
use support::replay::replay;

/// How many differences are worth reading.
const SHOWN: usize = 5;

fn replay_all(what: &str, lines: &str) {
    let mut count = 0;
    let mut differences = Vec::new();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let scenario: Value = serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{what}, line {}: {error}", count + 1));
        assert_eq!(scenario["format"], 3, "{what}: another format");
        count += 1;
        if let Err(difference) = replay(&scenario) {
            differences.push(format!("{}, {difference}", scenario["name"]));
        }
    }
    assert!(count > 0, "{what} has no scenario");
    assert!(
        differences.is_empty(),
        "{what}: {} of {count} scenarios differ from the model; the first:\n{}",
        differences.len(),
        differences[..differences.len().min(SHOWN)].join("\n")
    );
    println!("{what}: {count} scenarios replayed, no difference");
}

#[test]
fn the_committed_scenarios_go_as_the_model_says() {
    replay_all("scenarios.jsonl", &support::read("scenarios.jsonl"));
}

#[test]
fn further_scenarios_go_as_the_model_says() {
    let Ok(path) = std::env::var("COMEBACK_SCENARIOS") else {
        println!("COMEBACK_SCENARIOS is not set: no further scenarios");
        return;
    };
    let lines = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    replay_all(&path, &lines);
}

#[test]
#[should_panic(expected = "has no scenario")]
fn an_empty_file_of_scenarios_is_no_success() {
    replay_all("nothing", "\n \n");
}
