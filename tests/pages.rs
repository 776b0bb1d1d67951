//! What README.md and docs/ say of the code is true. Their Rust blocks compile as doctests (`src/lib.rs`), their Kotlin blocks in
//! `bindings/kotlin/comeback-checks`.

#![allow(clippy::expect_used)] // a test says no by panicking

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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

/// The crate's front page includes the file.
#[test]
fn the_glossary_stands_on_the_front_page_of_kotlin_s_documentation_too() {
    let front = include_str!("../bindings/kotlin/comeback-docs/packages.md");
    assert!(front.contains(include_str!("../docs/glossary.md")));
}

/// The pages: README, CONTRIBUTING and everything in docs/.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/adr"] {
        let files = std::fs::read_dir(root.join(folder)).expect(folder);
        pages.extend(files.map(|file| file.expect("a file").path()));
    }
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut dead = Vec::new();
    let mut links = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            if file.contains("://") {
                continue;
            }
            links += 1;
            let target = if file.is_empty() {
                page.clone()
            } else {
                page.with_file_name(file)
            };
            let is_there = target.exists()
                && (heading.is_empty() || headings(&target).iter().any(|name| name == heading));
            if !is_there {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(links > 30, "only {links} links were found");
    assert!(dead.is_empty(), "{dead:#?}");
}

/// A page's headings, as a link names them.
fn headings(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).expect("a page");
    let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim().to_lowercase())
        .map(|name| {
            name.chars()
                .filter(kept)
                .collect::<String>()
                .replace(' ', "-")
        })
        .collect()
}
