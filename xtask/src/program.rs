//! A program in evidence/ that is a Maven module (the demo, the arena, the benchmarks): built if something changed, then run on this terminal.

use crate::bindings::CORE;
use crate::{bindings, fresh, java, process, project};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Which native library a program loads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Native {
    /// As apps have it: a minute more to build, and what figures are measured with.
    AsInJar,
    /// As the tests have it, in the dev profile.
    ForTests,
}

/// Runs the main class of evidence/`folder` with these arguments; its exit code is ours.
pub fn run(folder: &str, native: Native, arguments: Vec<OsString>) -> Result<ExitCode> {
    let module = &format!("comeback-{folder}");
    let target = project::evidence().join(folder).join("target");
    let jar = target.join(format!("{module}.jar"));
    let stamp = target.join("built");
    let stands = || jar.exists() && fresh::is_fresh(&stamp, &kotlin_inputs());
    if !stands() || !fresh::is_fresh(&stamp, &rust_inputs()) {
        let maven = java::maven()?;
        eprintln!(
            "Building the {folder}. The first time libraries are fetched too: two or three minutes in all. Later runs start at once."
        );
        core(native)?;
        // What changed in Rust may have left the library as it was.
        if !stands() {
            package(module, maven)?;
        }
        File::create(&stamp).with_context(|| format!("{} cannot be written", stamp.display()))?;
    }
    let mut java = java::java();
    if native == Native::ForTests {
        java.arg(format!(
            "-Djna.library.path={}",
            bindings::for_tests().display()
        ));
    }
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

/// The core's library, and the Kotlin that is generated from it.
fn core(native: Native) -> Result<()> {
    match native {
        Native::AsInJar => watch(
            process::xtask().args(["bindings", "core"]),
            "1 of 2: the core, in Rust",
            crate_compiled,
        ),
        Native::ForTests => {
            watch(
                &mut bindings::build_for_demo(),
                "1 of 2: the core, in Rust",
                crate_compiled,
            )?;
            CORE.make_for_tests()
        }
    }
}

fn package(module: &str, mut maven: Command) -> Result<()> {
    maven.args([
        "package",
        "--projects",
        &format!(":{module}"),
        "--also-make",
        "--threads",
        "2",
        "-Dmaven.test.skip=true",
        "-Denforcer.skip",
        "-Dapi-level.skip=true",
        "-Dwithout-android",
    ]);
    watch(&mut maven, "2 of 2: the modules in Kotlin", building)
}

/// Runs a builder with one line about where it is; all it said is shown only if it fails.
fn watch(builder: &mut Command, step: &str, part: fn(&str) -> Option<&str>) -> Result<()> {
    let mut terminal = std::io::stderr();
    let (live, began) = (terminal.is_terminal(), Instant::now());
    let (mut said, mut fetched, mut parts) = (String::new(), 0, 0);
    let mut doing = String::new();
    if !live {
        eprintln!("  {step}");
    }
    let result = process::lines(builder, |line| {
        let mut news = false;
        if line.contains("Downloaded from ") {
            fetched += 1;
            news = true;
        } else if !line.contains("Downloading from ") {
            said.push_str(line);
            said.push('\n');
            if let Some(name) = part(line) {
                doing = format!(" · {name}");
                parts += 1;
                news = true;
            }
        }
        if news && live {
            let files = match fetched {
                0 => String::new(),
                _ => format!(" · {fetched} files fetched"),
            };
            let seconds = began.elapsed().as_secs();
            // A terminal that went away is no reason to end the build.
            let _ = write!(
                terminal,
                "\r\x1b[2K  {step} · {seconds} s · {parts} built{files}{doing}"
            )
            .and_then(|()| terminal.flush());
        }
    });
    let (start, seconds) = (
        if live { "\r\x1b[2K" } else { "" },
        began.elapsed().as_secs(),
    );
    match &result {
        Ok(()) => eprintln!("{start}  {step}: {seconds} s"),
        Err(_) => eprint!("{start}{said}"),
    }
    result
}

/// `   Compiling serde v1.0.0` → `serde`
fn crate_compiled(line: &str) -> Option<&str> {
    line.trim_start()
        .strip_prefix("Compiling ")?
        .split_whitespace()
        .next()
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
        assert_eq!(crate_compiled("   Compiling serde v1.0.0"), Some("serde"));
        assert_eq!(building("[INFO] Building jar: /x/comeback-core.jar"), None);
        assert_eq!(building("[INFO] Copying 1 resource"), None);
    }
}
