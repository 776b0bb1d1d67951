//! A program in evidence/ that is a Maven module (the demo, the arena, the benchmarks): built if something changed, then run on this terminal.

use crate::bindings::CORE;
use crate::{fresh, java, process, project};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Runs the main class of evidence/`folder` with these arguments; its exit code is ours.
pub fn run(folder: &str, arguments: Vec<OsString>) -> Result<ExitCode> {
    let module = &format!("comeback-{folder}");
    let target = project::evidence().join(folder).join("target");
    let jar = target.join(format!("{module}.jar"));
    let stamp = target.join("built");
    let stands = || jar.exists() && fresh::is_fresh(&stamp, &kotlin_inputs());
    if !stands() || !fresh::is_fresh(&stamp, &rust_inputs()) {
        let maven = java::maven()?;
        eprintln!(
            "Building {module}. The first time, compilers and libraries are fetched: a few minutes. Later runs start at once."
        );
        CORE.make()?;
        // What changed in Rust may have left the library as it was.
        if !stands() {
            package(module, maven)?;
        }
        File::create(&stamp).with_context(|| format!("{} cannot be written", stamp.display()))?;
    }
    let mut java = java::java();
    java.arg("-jar").arg(&jar).args(arguments);
    let status = java.status().with_context(|| {
        let name = java.get_program().to_string_lossy();
        format!("`{name}` could not be started. {}", java::advice())
    })?;
    // Ended by a signal (Ctrl-C): the shell's way to say that is not ours to imitate.
    Ok(ExitCode::from(
        status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(1),
    ))
}

fn package(module: &str, mut maven: Command) -> Result<()> {
    maven.args([
        "package",
        "--projects",
        &format!(":{module}"),
        "--also-make",
        "-Dmaven.test.skip=true",
    ]);
    watch(&mut maven)
}

/// Runs Maven with one line about where it is; all it said is shown only if it fails.
fn watch(maven: &mut Command) -> Result<()> {
    let mut terminal = std::io::stderr();
    let (live, mut said, mut fetched) = (terminal.is_terminal(), String::new(), 0);
    let mut doing = "starting".to_owned();
    let result = process::lines(maven, |line| {
        let mut news = false;
        if line.contains("Downloaded from ") {
            fetched += 1;
            news = live;
        } else if !line.contains("Downloading from ") {
            said.push_str(line);
            said.push('\n');
            if let Some(name) = building(line) {
                doing = format!("building {name}");
                news = true;
            }
        }
        if news {
            let (start, end) = if live { ("\r\x1b[2K", "") } else { ("", "\n") };
            let files = if fetched > 0 {
                format!(", {fetched} files fetched")
            } else {
                String::new()
            };
            // A terminal that went away is no reason to end the build.
            let _ = write!(terminal, "{start}   Maven: {doing}{files}{end}")
                .and_then(|()| terminal.flush());
        }
    });
    if live {
        eprint!("\r\x1b[2K");
    }
    if result.is_err() {
        eprint!("{said}");
    }
    result
}

/// `[INFO] Building comeback-core 0.1.0-SNAPSHOT    [3/7]` → `comeback-core`; jars are "built" too, and not meant.
fn building(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("Building ")?;
    rest.split_whitespace()
        .next()
        .filter(|name| *name != "jar:")
}

/// What the library and the generated code are made from.
fn rust_inputs() -> Vec<PathBuf> {
    [
        "Cargo.toml",
        "Cargo.lock",
        "uniffi.toml",
        "src",
        "bindings/bindgen",
    ]
    .iter()
    .map(|name| project::root().join(name))
    .collect()
}

/// What Maven makes programs from, the generated code among it.
fn kotlin_inputs() -> Vec<PathBuf> {
    let reactor = project::kotlin();
    let mut inputs = vec![reactor.join("pom.xml")];
    for folder in [reactor, project::evidence()] {
        for module in folder.read_dir().into_iter().flatten().flatten() {
            inputs
                .extend(["pom.xml", "src/main", "generated"].map(|name| module.path().join(name)));
        }
    }
    inputs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_named_while_it_is_built_and_a_jar_is_not() {
        assert_eq!(
            building("[INFO] Building comeback-core 0.1.0-SNAPSHOT       [3/7]"),
            Some("comeback-core")
        );
        assert_eq!(building("[INFO] Building jar: /x/comeback-core.jar"), None);
        assert_eq!(building("[INFO] Copying 1 resource"), None);
    }
}
