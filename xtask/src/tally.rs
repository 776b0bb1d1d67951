//! How many tests ran, by area, read from what cargo and Surefire print.

use std::fmt;

/// Tests by area: a test binary of cargo's, a module of Maven's.
#[derive(Default)]
pub struct Tally {
    area: String,
    counts: Vec<(String, Count)>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Count {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Tally {
    /// Reads one line; most say nothing of tests.
    pub fn hear(&mut self, line: &str) {
        if let Some(module) = maven_module(line) {
            self.area = maven_area(module);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Running", .., binary] if binary.ends_with(')') => {
                self.area = format!("rust {}", binary_name(binary));
            }
            ["Doc-tests", name, ..] => self.area = format!("rust documentation of {name}"),
            ["test", "result:", ..] => self.add(Count {
                passed: before(&words, "passed;"),
                failed: before(&words, "failed;"),
                skipped: before(&words, "ignored;"),
            }),
            // One line for each class; the sum that Surefire prints at the end of a module has no class.
            [.., "in", _] if line.contains("Tests run: ") => {
                let (run, failures) = (
                    after(line, "Tests run: "),
                    after(line, "Failures: ") + after(line, "Errors: "),
                );
                let skipped = after(line, "Skipped: ");
                self.add(Count {
                    passed: run.saturating_sub(failures + skipped),
                    failed: failures,
                    skipped,
                });
            }
            _ => {}
        }
    }

    /// How many tests there were in an area, or in several whose names begin alike.
    pub fn tests_in(&self, area: &str) -> u64 {
        self.counts
            .iter()
            .filter(|(name, _)| name.starts_with(area))
            .map(|(_, count)| count.passed + count.failed + count.skipped)
            .sum()
    }

    /// How many tests there were in a module of Maven's.
    pub fn tests_of_module(&self, module: &str) -> u64 {
        self.tests_in(&maven_area(module))
    }

    /// The closing line, as test runners print it.
    pub fn closing_line(&self) -> String {
        let mut sum = Count::default();
        for (_, count) in &self.counts {
            sum += *count;
        }
        sum.to_string()
    }

    fn add(&mut self, count: Count) {
        match self.counts.iter_mut().find(|(area, _)| *area == self.area) {
            Some((_, sum)) => *sum += count,
            None => self.counts.push((self.area.clone(), count)),
        }
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// The areas that have tests, one a line.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (area, count) in self
            .counts
            .iter()
            .filter(|(_, count)| *count != Count::default())
        {
            writeln!(f, "{area:<44} {count}")?;
        }
        Ok(())
    }
}

fn maven_area(module: &str) -> String {
    format!("kotlin {module}")
}

/// `[INFO] ----< dev.comeback:comeback-core >----` → `comeback-core`: Maven begins with a module.
pub fn maven_module(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [_, rule, name, other] if rule.starts_with("--") && other.ends_with("--") => {
            name.split_once(':').map(|(_, module)| module)
        }
        _ => None,
    }
}

/// `(target/debug/deps/vectors-0123)` → `vectors`
fn binary_name(path: &str) -> &str {
    let file = path.rsplit(['/', '\\', '(']).next().unwrap_or(path);
    file.rsplit_once('-').map_or(file, |(name, _)| name)
}

fn before(words: &[&str], label: &str) -> u64 {
    let at = words.iter().position(|word| *word == label);
    at.and_then(|at| words.get(at.checked_sub(1)?)?.parse().ok())
        .unwrap_or(0)
}

fn after(line: &str, label: &str) -> u64 {
    let number = line.split_once(label).map_or("", |(_, rest)| rest);
    let digits = number.split(|letter: char| !letter.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_and_surefire_are_counted_by_area() {
        let mut tally = Tally::default();
        for line in [
            "     Running unittests src/lib.rs (target/debug/deps/comeback-0123)",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "     Running tests/vectors.rs (target/debug/deps/vectors-0123)",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "   Doc-tests comeback",
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "[INFO] ---------------------< dev.comeback:comeback-core >---------------------",
            "[INFO] Tests run: 4, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.1 s -- in dev.comeback.PolicyTest",
            "[ERROR] Tests run: 5, Failures: 1, Errors: 1, Skipped: 0, Time elapsed: 0.1 s <<< FAILURE! -- in dev.comeback.A",
            "[ERROR] Tests run: 9, Failures: 1, Errors: 1, Skipped: 1",
        ] {
            tally.hear(line);
        }
        assert_eq!(tally.closing_line(), "21 passed, 4 failed, 2 skipped");
        let areas: Vec<String> = tally
            .to_string()
            .lines()
            .map(|line| line.split("  ").next().unwrap_or("").into())
            .collect();
        assert_eq!(
            areas,
            ["rust comeback", "rust vectors", "kotlin comeback-core"]
        );
        assert_eq!(tally.tests_in("rust "), 18);
    }
}
