//! Java and Maven: found, new enough, or a word about what to install.

use crate::project;
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const JAVA: u32 = 17;
const MAVEN: (u32, u32) = (3, 8);

/// Maven in the reactor, after a look whether it and its Java are what the build needs.
pub fn maven() -> Result<Command> {
    let name = if cfg!(windows) { "mvn.cmd" } else { "mvn" };
    let asked = Command::new(name)
        .arg("--version")
        .current_dir(project::kotlin())
        .stdin(Stdio::null())
        .output();
    let answer = match &asked {
        Ok(output) => String::from_utf8_lossy(&output.stdout),
        Err(_) => bail!(
            "Maven is not installed (`mvn` is not in PATH). {}",
            advice()
        ),
    };
    // Maven is a script: without Java it starts, and fails.
    let Some((java, _)) = version_after(&answer, "Java version: ") else {
        bail!("Maven finds no Java. {}", advice());
    };
    if java < JAVA {
        bail!(
            "Maven runs on Java {java}; Java {JAVA} or newer is needed. {}",
            advice()
        );
    }
    match version_after(&answer, "Apache Maven ") {
        Some(version) if version >= MAVEN => {}
        _ => bail!(
            "this Maven is too old or says no version; {}.{} or newer is needed. {}",
            MAVEN.0,
            MAVEN.1,
            advice()
        ),
    }
    let mut maven = Command::new(name);
    maven.arg("--batch-mode").current_dir(project::kotlin());
    Ok(maven)
}

/// The Java that Maven takes, too.
pub fn java() -> Command {
    tool("java")
}

/// A program of that Java's.
pub fn tool(name: &str) -> Command {
    match std::env::var_os("JAVA_HOME") {
        Some(home) => Command::new(PathBuf::from(home).join("bin").join(name)),
        None => Command::new(name),
    }
}

/// Where that Java lies, as it says itself.
pub fn home() -> Result<PathBuf> {
    let mut java = java();
    java.args(["-XshowSettings:properties", "-version"]);
    let output = java.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let home = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("java.home = "));
    match home {
        Some(home) => Ok(PathBuf::from(home)),
        None => bail!("Java does not say where it lies. {}", advice()),
    }
}

/// What to install, as a sentence.
pub fn advice() -> String {
    let how = if cfg!(target_os = "macos") {
        "brew install openjdk@17 maven"
    } else {
        "apt-get install openjdk-17-jdk-headless maven"
    };
    format!(
        "Install both, for instance with `{how}`; if several Javas are there, JAVA_HOME chooses."
    )
}

/// Major and minor number behind a label, for instance of `Apache Maven 3.8.7`.
fn version_after(text: &str, label: &str) -> Option<(u32, u32)> {
    let (_, version) = text.split_once(label)?;
    let mut numbers = version.split(|letter: char| !letter.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    Some((
        major,
        numbers
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or(0),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_maven_prints() {
        let said = "\u{1b}[1mApache Maven 3.8.7\u{1b}[m\nMaven home: /m\nJava version: 17.0.15, vendor: Debian, runtime: /j";
        assert_eq!(version_after(said, "Apache Maven "), Some((3, 8)));
        assert_eq!(version_after(said, "Java version: "), Some((17, 0)));
    }

    #[test]
    fn a_missing_java_is_no_version() {
        assert_eq!(
            version_after(
                "The JAVA_HOME environment variable is not defined correctly",
                "Java version: "
            ),
            None
        );
        assert_eq!(
            version_after("Java version: unknown", "Java version: "),
            None
        );
    }

    #[test]
    fn a_version_may_be_one_number() {
        assert_eq!(
            version_after("Java version: 25, vendor", "Java version: "),
            Some((25, 0))
        );
    }
}
