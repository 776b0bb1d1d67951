//! Where things lie in the repository.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// The Maven reactor.
pub fn kotlin() -> PathBuf {
    root().join("bindings/kotlin")
}

/// The demo, the arena, the benchmarks and what else shows that a promise holds.
pub fn evidence() -> PathBuf {
    root().join("evidence")
}

/// Cargo's output. It is named to every cargo that xtask starts, so that results are where they are looked for.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}
