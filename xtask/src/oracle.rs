//! `cargo xtask oracle`: scenarios of the independent model, replayed through the Rust core and through Kotlin.
//!
//! The model stands outside the repository. What is compared, and the first differences, are the tests' to say:
//! `tests/scenarios.rs` and `ScenariosTest`, which also replay the few hundred scenarios that every clone has.

use crate::{bindings, java, process, project};
use anyhow::{Context, Result, bail};
use lexopt::{Arg, Parser};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

const GENERATOR: &str = "scenarios.py";

struct Options {
    count: usize,
    kotlin_count: usize,
    seed: u64,
    model: PathBuf,
}

pub fn run(arguments: Parser) -> Result<()> {
    let options = Options::parse(arguments)?;
    let generator = options.model.join(GENERATOR);
    if !generator.is_file() {
        bail!(
            "the model is missing: there is no {}; put it there or name its folder with --model DIR",
            generator.display()
        );
    }
    let place = project::target().join("oracle");
    fs::create_dir_all(&place).with_context(|| format!("{} cannot be made", place.display()))?;

    println!(
        "Generating {} scenarios from seed {}",
        options.count, options.seed
    );
    let mut python = Command::new("python3");
    python
        .arg("-B")
        .arg(&generator)
        .arg(options.count.to_string())
        .arg(options.seed.to_string());
    let scenarios = process::output(&mut python)?;
    let all = write(&place.join("scenarios.jsonl"), &scenarios)?;

    println!("Replaying {} through Rust", options.count);
    let mut rust = process::cargo("test");
    rust.args(["--test", "scenarios", "--", "--nocapture"])
        .env("COMEBACK_SCENARIOS", &all);
    process::run(&mut rust)?;

    let few: String = scenarios
        .split_inclusive('\n')
        .take(options.kotlin_count)
        .collect();
    let few_count = few.lines().count();
    if few_count > 0 {
        let few = write(&place.join("scenarios-kotlin.jsonl"), &few)?;
        println!("Replaying the first {few_count} through Kotlin");
        let mut maven = java::maven()?;
        process::run(process::xtask().args(["bindings", "tests"]))?;
        maven.args([
            "--quiet",
            "--no-transfer-progress",
            "test",
            "--projects",
            "comeback-core",
            "--also-make",
        ]);
        maven.args([
            "-Dtest=ScenariosTest",
            "-Dsurefire.failIfNoSpecifiedTests=false",
        ]);
        maven.arg(format!("-Dcomeback.scenarios={}", few.display()));
        maven.arg(format!(
            "-Djna.library.path={}",
            bindings::for_tests().display()
        ));
        process::run(&mut maven)?;
    }
    println!(
        "No difference in {} scenarios through Rust and {few_count} through Kotlin (seeds {} to {})",
        options.count,
        options.seed,
        options.seed + (options.count as u64).saturating_sub(1)
    );
    Ok(())
}

/// Whether there is a model to compare with.
pub fn is_here() -> bool {
    usual_place().join(GENERATOR).is_file()
}

fn usual_place() -> PathBuf {
    project::root().join("../shared/oracle")
}

impl Options {
    fn parse(mut arguments: Parser) -> Result<Self> {
        // A run that was told no seed uses one that no run before it had.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .context("the clock stands before 1970")?;
        let mut options = Self {
            count: 10_000,
            kotlin_count: 1_000,
            seed: now.as_secs(),
            model: usual_place(),
        };
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("count") => options.count = number(&mut arguments, "count")?,
                Arg::Long("kotlin-count") => {
                    options.kotlin_count = number(&mut arguments, "kotlin-count")?;
                }
                Arg::Long("seed") => options.seed = number(&mut arguments, "seed")?,
                Arg::Long("model") => options.model = arguments.value()?.into(),
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(options)
    }
}

fn number<N: FromStr>(arguments: &mut Parser, option: &str) -> Result<N> {
    let text = arguments.value()?.to_string_lossy().into_owned();
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) => bail!("--{option} takes a number from 0, not `{text}`"),
    }
}

fn write(path: &Path, text: &str) -> Result<PathBuf> {
    fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path.to_owned())
}
