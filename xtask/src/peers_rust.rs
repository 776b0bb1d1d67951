//! `cargo xtask peers-rust`: the comparison of `evidence/peers-rust`, as a page.

use crate::{process, project};
use anyhow::{Context, Result};

pub fn run() -> Result<()> {
    let page = process::output(process::cargo("run").args([
        "--quiet",
        "--release",
        "--manifest-path",
        "evidence/peers-rust/Cargo.toml",
    ]))?;
    print!("{page}");
    let path = project::root().join("docs/peers-rust.md");
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}
