//! `cargo xtask docs`: the Kotlin modules' public API as a site. Dokka's warnings are failures, and so is a page about what is internal.

use crate::{java, process, project};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Marks what no app may use. Dokka prints it wherever what it marks is shown.
const INTERNAL: &str = "InternalComebackApi";

pub fn run() -> Result<()> {
    let mut maven = java::maven()?;
    process::run(process::xtask().args(["bindings", "tests"]))?;
    let site = project::kotlin().join("comeback-docs/target/site");
    // Pages of what is gone would stay.
    if site.exists() {
        fs::remove_dir_all(&site)
            .with_context(|| format!("{} cannot be removed", site.display()))?;
    }
    maven.args([
        "--quiet",
        "--no-transfer-progress",
        "process-classes",
        "--activate-profiles",
        "docs",
        "--projects",
        "comeback-docs",
        "--also-make",
    ]);
    process::run(&mut maven)?;
    let pages = pages(&site)?;
    for page in &pages {
        let text = fs::read_to_string(page)
            .with_context(|| format!("{} cannot be read", page.display()))?;
        if text.contains(INTERNAL) {
            bail!(
                "{} shows what is @{INTERNAL}: give its KDoc a line `@suppress`",
                page.display()
            );
        }
    }
    println!(
        "Written: {} pages, without a warning. Begin at {}.",
        pages.len(),
        site.join("index.html").display()
    );
    Ok(())
}

fn pages(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    let entries = fs::read_dir(directory)
        .with_context(|| format!("{} cannot be read", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            pages.extend(self::pages(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "html") {
            pages.push(path);
        }
    }
    Ok(pages)
}
