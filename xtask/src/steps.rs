//! The steps of a command: one line each, with its time. What their programs print goes to a log file. When a step fails, what it printed is shown
//! too, without the lines that only tell of progress.

use crate::tally::{Tally, maven_module};
use crate::{process, project};
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

pub struct Steps {
    log: File,
    path: PathBuf,
    began: Instant,
    tally: Tally,
    failed: Vec<String>,
    count: usize,
}

impl Steps {
    /// Begins a command's log, `target/xtask/COMMAND.log`.
    pub fn begin(command: &str) -> Result<Steps> {
        let folder = project::target().join("xtask");
        let path = folder.join(command).with_extension("log");
        fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        let log =
            File::create(&path).with_context(|| format!("{} cannot be written", path.display()))?;
        println!("All output: {}", path.display());
        Ok(Steps {
            log,
            path,
            began: Instant::now(),
            tally: Tally::default(),
            failed: Vec::new(),
            count: 0,
        })
    }

    /// A step that is one program. An error says that it failed, for steps that need this one; it was shown already.
    pub fn run(&mut self, name: &str, command: &mut Command) -> Result<()> {
        self.step(name, |step| step.run(command))
    }

    /// A step of any kind.
    pub fn step(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Step<'_>) -> Result<()>,
    ) -> Result<()> {
        self.count += 1;
        let mut step = Step {
            steps: self,
            name: name.to_owned(),
            began: Instant::now(),
            said: Vec::new(),
            skipped: None,
        };
        step.show_under_way();
        let result = work(&mut step);
        let Step {
            name,
            began,
            said,
            skipped,
            ..
        } = step;
        match (&result, skipped) {
            (Ok(()), Some(reason)) => line(&name, &format!("not here: {reason}")),
            (Ok(()), None) => line(&name, &time(began.elapsed())),
            (Err(error), _) => {
                line(&name, &format!("{}  FAILED", time(began.elapsed())));
                for text in without_progress(&said) {
                    println!("    {text}");
                }
                println!("    {error:#}");
                self.failed.push(name);
            }
        }
        result
    }

    /// Says how many steps and tests there were; an error if a step failed.
    pub fn end(mut self) -> Result<()> {
        let _ = write!(self.log, "\n{}", self.tally);
        println!(
            "\n{} steps in {}. All they printed: {}",
            self.count,
            time(self.began.elapsed()),
            self.path.display()
        );
        if !self.failed.is_empty() {
            println!("Failed: {}", self.failed.join(", "));
        }
        if self.tally.tests_in("") > 0 {
            println!("{}", self.tally.closing_line());
        }
        if !self.failed.is_empty() {
            bail!("{} of {} steps failed", self.failed.len(), self.count);
        }
        Ok(())
    }
}

/// A step under way.
pub struct Step<'a> {
    steps: &'a mut Steps,
    name: String,
    began: Instant,
    said: Vec<String>,
    skipped: Option<String>,
}

impl Step<'_> {
    /// Runs a program; its output goes to the log, and the tests in it are counted. Each module of Maven's that has ended has a line of its own.
    pub fn run(&mut self, command: &mut Command) -> Result<()> {
        self.say(&format!("== {}", process::said(command)));
        // No colours: some programs take a log for a terminal. No stacks of panics that tests provoke.
        command.env("TERM", "dumb").env("RUST_BACKTRACE", "0");
        let mut module = None;
        let result = process::lines(command, |line| {
            if let Some(name) = maven_module(line) {
                let next = Module::begin(name, &self.steps.tally);
                self.module_ended(module.replace(next));
            }
            self.steps.tally.hear(line);
            self.say(line);
        });
        if result.is_ok() {
            self.module_ended(module);
        }
        result
    }

    /// Into the log; shown if the step fails.
    pub fn say(&mut self, text: &str) {
        // A log that cannot be written is no reason to fail what is tested.
        let _ = writeln!(self.steps.log, "{text}");
        self.said.push(text.to_owned());
    }

    /// The step cannot be made on this machine.
    pub fn skip(&mut self, reason: impl Into<String>) {
        let reason = reason.into();
        self.say(&reason);
        self.skipped = Some(reason);
    }

    fn module_ended(&self, module: Option<Module>) {
        let Some(module) = module else { return };
        let tests = module.tests_since(&self.steps.tally);
        if tests > 0 {
            let took = time(module.began.elapsed());
            line(&format!("  {}, {tests} tests", module.name), &took);
            self.show_under_way();
        }
    }

    fn show_under_way(&self) {
        if std::io::stdout().is_terminal() {
            print!("{} …", self.name);
            let _ = std::io::stdout().flush();
        }
    }
}

/// A module of Maven's under way.
struct Module {
    name: String,
    began: Instant,
    /// The module's tests that earlier steps ran.
    tests_before: u64,
}

impl Module {
    fn begin(name: &str, tally: &Tally) -> Module {
        Module {
            name: name.to_owned(),
            began: Instant::now(),
            tests_before: tally.tests_of_module(name),
        }
    }

    fn tests_since(&self, tally: &Tally) -> u64 {
        tally.tests_of_module(&self.name) - self.tests_before
    }
}

fn line(name: &str, result: &str) {
    let start = if std::io::stdout().is_terminal() {
        "\r\x1b[2K"
    } else {
        ""
    };
    println!("{start}{name:<60} {result}");
}

fn time(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// What a reader of a failure needs: of cargo's output all but what only tells of progress and of tests that passed; of Maven's the errors, each with
/// the lines that belong to it.
fn without_progress(said: &[String]) -> impl Iterator<Item = &str> {
    let (mut is_maven, mut is_error) = (false, false);
    said.iter().map(String::as_str).filter(move |line| {
        if let Some(program) = line.strip_prefix("== ") {
            is_maven = program.starts_with("mvn");
            return true;
        }
        if is_maven {
            let begins = line.starts_with('[') || line.starts_with("thread '");
            is_error = line.starts_with("[ERROR] ") || is_error && !begins;
            return is_error && !MAVENS_ADVICE.iter().any(|advice| line.starts_with(advice));
        }
        !is_cargos_progress(line)
    })
}

/// What Maven says after every failure.
const MAVENS_ADVICE: [&str; 7] = [
    "[ERROR] -> [Help",
    "[ERROR] [Help",
    "[ERROR] To see the full stack trace",
    "[ERROR] Re-run Maven",
    "[ERROR] For more information about the errors",
    "[ERROR] After correcting the problems",
    "[ERROR]   mvn <args>",
];

fn is_cargos_progress(line: &str) -> bool {
    const VERBS: [&str; 14] = [
        "Adding",
        "Blocking",
        "Checking",
        "Compiling",
        "Doc-tests",
        "Documenting",
        "Downloaded",
        "Downloading",
        "Finished",
        "Fresh",
        "Generated",
        "Locking",
        "Running",
        "Updating",
    ];
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [] | ["test", .., "ok"] | ["test", "result:", "ok.", ..] => true,
        ["running", _, "test" | "tests"] => true,
        // Cargo puts its verbs at the end of a column of twelve.
        [verb, ..] => VERBS.contains(verb) && line.starts_with(' '),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_shown_without_what_passed() {
        let said = [
            "== cargo test",
            "   Compiling comeback v0.1.0",
            "     Running unittests src/lib.rs (target/debug/deps/comeback-0123)",
            "running 2 tests",
            "test a ... ok",
            "test b ... FAILED",
            "",
            "---- b stdout ----",
            "assertion failed",
            "test result: FAILED. 1 passed; 1 failed",
            "== mvn test",
            "Downloading from central: x",
            "[INFO] Running dev.comeback.A",
            "what a test prints",
            "[ERROR] dev.comeback.A.b -- Time elapsed: 0.1 s <<< FAILURE!",
            "java.lang.AssertionError: expected",
            "[INFO] Tests run: 4",
        ]
        .map(String::from);
        let shown: Vec<&str> = without_progress(&said).collect();
        assert_eq!(
            shown,
            [
                "== cargo test",
                "test b ... FAILED",
                "---- b stdout ----",
                "assertion failed",
                "test result: FAILED. 1 passed; 1 failed",
                "== mvn test",
                "[ERROR] dev.comeback.A.b -- Time elapsed: 0.1 s <<< FAILURE!",
                "java.lang.AssertionError: expected",
            ]
        );
    }

    #[test]
    fn a_module_that_runs_again_counts_only_the_tests_of_this_time() {
        let begins =
            "[INFO] ---------------------< dev.comeback:comeback-core >---------------------";
        let ran = "[INFO] Tests run: 4, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in dev.comeback.A";
        let mut tally = Tally::default();
        for (tests, expected) in [(vec![ran, ran], 8), (vec![], 0), (vec![ran], 4)] {
            let module = Module::begin("comeback-core", &tally);
            tally.hear(begins);
            tests.iter().for_each(|test| tally.hear(test));
            assert_eq!(module.tests_since(&tally), expected);
        }
    }

    #[test]
    fn a_minute_and_more_is_said_in_minutes() {
        assert_eq!(time(Duration::from_millis(59_900)), "59 s");
        assert_eq!(time(Duration::from_secs(61)), "1 min 1 s");
    }
}
