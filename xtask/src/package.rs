//! What is published of the crate: its files, its lowest dependencies, its promises to those who build on it.

use crate::steps::{Step, Steps};
use crate::{process, project};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The first part of each path in the package. Cargo adds those that begin with a dot or with `Cargo`.
const PUBLISHED: [&str; 11] = [
    ".cargo_vcs_info.json",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "Cargo.toml.orig",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "build.rs",
    "docs",
    "examples",
];

pub fn check(steps: &mut Steps) -> Result<()> {
    steps.step("What the package holds", |step| {
        let list = process::output(cargo("package").args(["--list", "--allow-dirty", "--quiet"]))?;
        let first = |path: &str| path.split('/').next().unwrap_or(path).to_owned();
        let found: BTreeSet<String> = list.lines().map(first).collect();
        let mut expected: BTreeSet<String> = PUBLISHED.map(String::from).into();
        expected.insert("src".to_owned());
        // Cargo writes it in a repository without changes only.
        expected.retain(|name| name != ".cargo_vcs_info.json" || found.contains(name));
        step.say(&list);
        if found != expected {
            let differing: Vec<_> = found.symmetric_difference(&expected).collect();
            bail!("the package has, or lacks, what `include` in Cargo.toml does not mean: {differing:?}");
        }
        Ok(())
    })?;
    steps.step("The lowest versions of all dependencies", lowest)
}

/// The published crate by itself, with the lowest versions that its manifest allows: they must fit together, and it must compile with them.
fn lowest(step: &mut Step<'_>) -> Result<()> {
    let folder = project::target().join("xtask/package");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    step.run(cargo("package").args(["--no-verify", "--allow-dirty"]))?;
    let packages = project::target().join("package");
    let archive = newest(&packages)?;
    let mut unpack = Command::new("tar");
    unpack
        .arg("-xf")
        .arg(archive)
        .arg("-C")
        .arg(&folder)
        .arg("--strip-components=1");
    step.run(&mut unpack)?;
    // A workspace of its own, although it lies within the project's.
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    fs::write(&manifest, text + "\n[workspace]\n")?;
    let mut update = Command::new("cargo");
    update.args(["update", "-Z", "direct-minimal-versions"]);
    // The flag is nightly's; it changes how versions are chosen and nothing else.
    step.run(update.env("RUSTC_BOOTSTRAP", "1").current_dir(&folder))?;
    let mut check = Command::new("cargo");
    check.args(["check", "--lib", "--features", "reqwest,tracing"]);
    check
        .arg("--target-dir")
        .arg(project::target().join("lowest"));
    step.run(check.current_dir(&folder))
}

fn newest(packages: &Path) -> Result<std::path::PathBuf> {
    let files = fs::read_dir(packages).context("cargo left no package")?;
    files
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "crate"))
        .max_by_key(|path| fs::metadata(path).and_then(|known| known.modified()).ok())
        .context("cargo left no package")
}

fn cargo(subcommand: &str) -> Command {
    let mut cargo = process::cargo(subcommand);
    cargo.args(["--package", "comeback"]);
    cargo
}

/// Licences, origins and banned crates, by `deny.toml`.
pub fn deny(step: &mut Step<'_>) -> Result<()> {
    if !has("deny") {
        step.skip("`cargo install cargo-deny --locked`");
        return Ok(());
    }
    // Its advisories come from a repository that not every machine reaches.
    let mut deny = Command::new("cargo");
    deny.args([
        "deny",
        "--all-features",
        "check",
        "bans",
        "licenses",
        "sources",
    ]);
    step.run(deny.current_dir(project::root()))
}

/// Whether the public API broke since the last release, if there was one.
pub fn semver(step: &mut Step<'_>) -> Result<()> {
    let mut tags = Command::new("git");
    tags.args(["tag", "--list", "v*", "--sort=-version:refname"]);
    let tags = process::output(tags.current_dir(project::root()))?;
    let Some(last) = tags.lines().next() else {
        step.skip("nothing is released that the API could be compared with");
        return Ok(());
    };
    if !has("semver-checks") {
        step.skip("`cargo install cargo-semver-checks --locked`");
        return Ok(());
    }
    let mut compare = Command::new("cargo");
    compare.args([
        "semver-checks",
        "--package",
        "comeback",
        "--baseline-rev",
        last,
    ]);
    compare.args(["--only-explicit-features", "--features", "reqwest,tracing"]);
    step.run(compare.current_dir(project::root()))
}

fn has(subcommand: &str) -> bool {
    let mut cargo = Command::new("cargo");
    let answer = cargo.args([subcommand, "--version"]).output();
    answer.is_ok_and(|output| output.status.success())
}
