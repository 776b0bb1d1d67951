//! Other programs: run, watched, and their failure said in one sentence.

use crate::project;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Cargo, in the root of the repository, with the project's output directory.
pub fn cargo(subcommand: &str) -> Command {
    cargo_into(subcommand, &project::target())
}

/// Cargo with another output directory.
pub fn cargo_into(subcommand: &str, output: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.arg(subcommand).current_dir(project::root());
    if subcommand != "fmt" {
        cargo.arg("--target-dir").arg(output);
    }
    cargo
}

/// This program itself, for a part of its work whose output somebody else reads.
pub fn xtask() -> Command {
    let mut xtask = Command::new(std::env::current_exe().unwrap_or("xtask".into()));
    xtask.current_dir(project::root());
    xtask
}

/// Runs it with this program's own streams.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .map_err(|error| not_started(command, error))?;
    succeeded(command, status)
}

/// Runs it and returns what it printed; what it complains about is shown at once.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| not_started(command, error))?;
    succeeded(command, output.status)?;
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed what is no UTF-8", said(command)))
}

/// Runs it and hands over each line it prints, on either stream, in order.
pub fn lines(command: &mut Command, mut hear: impl FnMut(&str)) -> Result<()> {
    let (reader, writer) = std::io::pipe().context("no pipe could be made")?;
    let second = writer.try_clone().context("no pipe could be made")?;
    let started = command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(second)
        .spawn();
    let mut child = started.map_err(|error| not_started(command, error))?;
    // The command keeps its ends of the pipe; as long as they are open, the reader below would wait for more.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.context("the pipe broke")?;
        hear(String::from_utf8_lossy(&line).trim_end_matches('\r'));
    }
    let status = child
        .wait()
        .with_context(|| format!("lost track of `{}`", said(command)))?;
    succeeded(command, status)
}

/// The command as a person would type it.
pub fn said(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![
        program
            .file_stem()
            .unwrap_or(command.get_program())
            .to_string_lossy(),
    ];
    let mut arguments = command
        .get_args()
        .map(|argument| argument.to_string_lossy());
    while let Some(argument) = arguments.next() {
        if argument == "--target-dir" {
            arguments.next();
        } else {
            words.push(argument);
        }
    }
    words.join(" ")
}

fn succeeded(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{}` failed ({status})", said(command));
    }
    Ok(())
}

fn not_started(command: &Command, error: std::io::Error) -> anyhow::Error {
    let name = command.get_program().to_string_lossy();
    if error.kind() == ErrorKind::NotFound {
        anyhow::anyhow!("`{name}` is not installed, or not in PATH")
    } else {
        anyhow::anyhow!("`{name}` could not be started: {error}")
    }
}
