//! The project's own commands; `cargo xtask` alone lists them. Each command has a file, named as it is.

mod android;
mod api;
mod arena;
mod bench_kotlin;
mod bindings;
mod check;
mod ci;
mod demo;
mod docs;
mod files;
mod fresh;
mod herd;
mod java;
mod metadata;
mod natives;
mod oracle;
mod package;
mod peers_rust;
mod process;
mod program;
mod project;
mod size;
mod steps;
mod tally;
mod test;
mod toolchain;

use anyhow::{Result, bail};
use lexopt::{Arg, Parser};
use std::ffi::OsString;
use std::process::ExitCode;

const HELP: &str = "\
Comeback's own commands.

Usage: cargo xtask <command>

  demo [options]         ride the subway: the usual interceptor and Comeback side by side (`demo --help` lists options)
  test [rust|kotlin]     the tests
  test android           those in Robolectric, for which 465 MB of Android are fetched the first time
  check [PART …]         what must hold beside the tests: formats, lints, documentation, sizes, Android … (`check --help`)
  ci                     all of these, as `.ci/run` does
  bindings [core|client] generate the Kotlin bindings and the native libraries for this machine; then plain `mvn test` works.
                         `core` is enough for every module but comeback-client, whose HTTP client takes minutes to build.
                         `tests` is what `cargo xtask test` takes: libraries that are quick to build and no good for a jar
  natives [core|client]  the native libraries of a jar for Linux, macOS and Windows, built here; `--only linux-aarch64` builds one
  android <command>      check, build, link and pack the Android artefact (`cargo xtask android` lists them)
  size                   what the native libraries weigh in an app; the core's weight is checked
  api                    record the Kotlin modules' public API, after a change that is meant
  docs                   the documentation of the Kotlin modules' public API, as a site; fails if Dokka warns
  oracle [options]       replay scenarios of the independent model through Rust and Kotlin
      --count N          how many through Rust (10000)
      --kotlin-count N   how many of them through Kotlin too (1000)
      --seed S           the first scenario's seed (one never used before)
      --model DIR        where the model lies (../shared/oracle)
  arena [options]        Comeback and its peers over the same modelled link, in virtual time (`arena --help`)
  herd [options]         many clients at one server, simulated: what each way of waiting does to it (`herd --help`)
  peers-rust             retry HTTP beside reqwest-retry, backon and tower on one failing server, and write docs/peers-rust.md
  bench-kotlin [NAME …]  measure what a decision, a start, a wake and a first attempt cost in Kotlin (`bench-kotlin --help`)
";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let mut arguments = Parser::from_env();
    let Some(argument) = arguments.next()? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let command = match argument {
        Arg::Short('h') | Arg::Long("help") => "help".into(),
        Arg::Value(command) => command,
        other => return Err(other.unexpected().into()),
    };
    match command.to_str() {
        Some("help") => print!("{HELP}"),
        Some("demo") => return demo::run(rest(&mut arguments)?),
        Some("arena") => return arena::run(rest(&mut arguments)?),
        Some("herd") => return herd::run(rest(&mut arguments)?),
        Some("bench-kotlin") => return bench_kotlin::run(rest(&mut arguments)?),
        Some("test") => test::run(arguments)?,
        Some("check") => check::run(arguments)?,
        Some("ci") => {
            nothing_more(&mut arguments)?;
            ci::run()?;
        }
        Some("android") => android::run(arguments)?,
        Some("docs") => {
            nothing_more(&mut arguments)?;
            docs::run()?;
        }
        Some("oracle") => oracle::run(arguments)?,
        Some("peers-rust") => {
            nothing_more(&mut arguments)?;
            peers_rust::run()?;
        }
        Some("bindings") => bindings::run(arguments)?,
        Some("natives") => natives::run(arguments)?,
        Some("size") => {
            nothing_more(&mut arguments)?;
            size::run()?;
        }
        Some("api") => {
            nothing_more(&mut arguments)?;
            api::run()?;
        }
        _ => bail!(
            "there is no command `{}`; `cargo xtask` lists what there is",
            command.to_string_lossy()
        ),
    }
    Ok(ExitCode::SUCCESS)
}

fn nothing_more(arguments: &mut Parser) -> Result<()> {
    match arguments.next()? {
        Some(more) => Err(more.unexpected().into()),
        None => Ok(()),
    }
}

/// What follows the command, untouched: the program behind it reads its own options.
fn rest(arguments: &mut Parser) -> Result<Vec<OsString>> {
    Ok(arguments.raw_args()?.collect())
}
