//! What README.md and docs/ say of the code is true. Their Rust blocks compile as doctests (`src/lib.rs`), their Kotlin blocks in
//! `bindings/kotlin/comeback-checks`.

mod support;

use std::collections::BTreeSet;

use serde_json::Value;

#[test]
fn the_readme_s_page_of_rust_is_an_example() {
    let example = include_str!("../examples/first.rs");
    let page = example.split_once("\n\n").map(|(_, page)| page);
    let shown: String = page
        .into_iter()
        .flat_map(str::lines)
        .map(|line| match line {
            "" => "\n".to_owned(),
            line => format!("    {line}\n"),
        })
        .collect();
    assert!(shown.contains("async fn main"), "{shown}");
    assert!(
        include_str!("../README.md").contains(&shown),
        "examples/first.rs is not what README.md shows; it should be:\n\n{shown}"
    );
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
