//! What README.md and docs/ say of the code is true. Their Rust blocks compile as doctests (`src/lib.rs`), their Kotlin blocks in
//! `bindings/kotlin/comeback-checks`.

#![allow(clippy::expect_used)] // a test says no by panicking

mod support;

use std::collections::BTreeSet;

use comeback::RetryPolicy;
use serde_json::Value;

/// So that they do not grow back: the README is read once, by somebody who wants to begin.
#[test]
fn the_readme_has_at_most_a_hundred_lines() {
    assert!(include_str!("../README.md").lines().count() <= 100);
}

#[test]
fn the_page_of_rust_is_an_example() {
    let example = include_str!("../examples/first.rs");
    let shown = example.split_once("\n\n").expect("a first line").1;
    assert!(
        include_str!("../docs/rust.md").contains(&format!("```rust,no_run\n{shown}```\n")),
        "docs/rust.md does not show examples/first.rs without its first line"
    );
}

/// The cells of a page's table rows whose first cell is a name in backticks.
fn rows(page: &'static str) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    page.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((name, rest.split(" | ").collect()))
    })
}

/// A cell that holds JSON in backticks.
fn json(cell: &str) -> Option<Value> {
    serde_json::from_str(cell.trim_matches([' ', '|', '`'])).ok()
}

#[test]
fn the_page_of_policies_has_every_field_and_its_default() {
    let default = serde_json::to_value(RetryPolicy::default()).expect("a policy is JSON");
    let mut missing: BTreeSet<&str> = default
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    for (field, cells) in rows(include_str!("../docs/policies.md")) {
        if missing.remove(field) {
            assert_eq!(json(cells[0]).as_ref(), Some(&default[field]), "{field}");
        }
    }
    assert!(missing.is_empty(), "not on the page: {missing:?}");
}

#[test]
fn the_page_of_policies_has_every_preset_as_it_is() {
    let mut shown = BTreeSet::new();
    for (name, cells) in rows(include_str!("../docs/policies.md")) {
        let preset = match name {
            "default" => RetryPolicy::default(),
            "read" => RetryPolicy::read(),
            "payment" => RetryPolicy::payment(),
            "batch" => RetryPolicy::batch(),
            _ => continue,
        };
        let over = json(cells[1]).expect(name).to_string();
        assert_eq!(RetryPolicy::from_json(&over), Ok(preset), "{name}");
        shown.insert(name);
    }
    assert_eq!(shown.len(), 4, "{shown:?}");
}

/// Rules have their names in bold at the start of a list item: `"last start"`, or `"last start: a probe is not made"`.
#[test]
fn every_vector_names_a_rule_of_the_design() {
    let listed: Vec<&str> = include_str!("../docs/design.md")
        .lines()
        .filter_map(|line| Some(line.strip_prefix("- **")?.split_once("**")?.0))
        .collect();
    let names: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(names.len(), listed.len(), "two rules have one name");

    let mut strangers = BTreeSet::new();
    for file in std::fs::read_dir(support::path("")).expect("the folder of the vectors") {
        let file = file
            .expect("a file")
            .file_name()
            .into_string()
            .expect("a name");
        if !file.ends_with(".json") {
            continue;
        }
        let document: Value = serde_json::from_str(&support::read(&file)).expect(&file);
        let lists = document.as_object().into_iter().flatten();
        for case in lists.filter_map(|(_, list)| list.as_array()).flatten() {
            let rule = case["rule"].as_str().unwrap_or("none");
            if !names.contains(rule.split(": ").next().unwrap_or(rule)) {
                strangers.insert(format!("{file}, {}: {rule}", case["name"]));
            }
        }
    }
    assert!(
        strangers.is_empty(),
        "docs/design.md has no rule of these names: {strangers:#?}"
    );
}
