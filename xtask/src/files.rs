//! `cargo xtask check files`: files that other tools read, and that nothing here runs. Every TOML, XML and YAML file in the repository parses; Gradle's
//! scripts name only what their version catalogue has; and its versions are those of the Maven build.

use crate::steps::Step;
use crate::{process, project};
use anyhow::{Context, Result, bail};
use saphyr_parser::Parser as Yaml;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

const CATALOGUE: &str = "android/gradle/libs.versions.toml";
const POM: &str = "bindings/kotlin/pom.xml";

pub fn check(step: &mut Step<'_>) -> Result<()> {
    let (mut read, mut wrong) = (0, Vec::new());
    for name in names()? {
        let ending = name.rsplit('.').next().unwrap_or_default();
        let parse: fn(&str) -> Result<(), Place> = match ending {
            "toml" | "lock" => toml,
            "xml" | "svg" => xml,
            "yml" | "yaml" => yaml,
            _ => continue,
        };
        read += 1;
        if let Err(place) = parse(&text(&name)?) {
            wrong.push(format!("{name}:{}: {}", place.line, place.what));
        }
    }
    step.say(&format!("{read} files were read"));
    if wrong.is_empty() {
        let catalogue = Catalogue::read(&text(CATALOGUE)?)?;
        wrong.extend(catalogue.unknown_versions());
        for script in names()?.iter().filter(|name| name.ends_with(".gradle.kts")) {
            wrong.extend(catalogue.unknown_names(script, &text(script)?));
        }
        wrong.extend(catalogue.other_versions_than(&text(POM)?)?);
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

/// What git has, and what it would take.
fn names() -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let listed = process::output(git.current_dir(project::root()))?;
    let there = |name: &&str| project::root().join(name).is_file();
    Ok(listed.lines().filter(there).map(String::from).collect())
}

fn text(name: &str) -> Result<String> {
    fs::read_to_string(project::root().join(name)).with_context(|| format!("{name} cannot be read"))
}

/// What is wrong, and in which line.
#[derive(Debug)]
struct Place {
    line: usize,
    what: String,
}

/// TOML 1.0, like Gradle: an inline table is on one line, which TOML 1.1 no longer asks for.
fn toml(text: &str) -> Result<(), Place> {
    let parsed: Result<Table, _> = basic_toml::from_str(text);
    parsed.map(drop).map_err(|error| {
        let what = error.to_string();
        let (what, line) = match what.rsplit_once(" at line ") {
            Some((what, line)) => (what.to_owned(), line.to_owned()),
            None => (what, "1".to_owned()),
        };
        let line = line.split(' ').next().unwrap_or_default();
        Place {
            line: line.parse().unwrap_or(1),
            what: format!("no TOML 1.0: {what}"),
        }
    })
}

fn xml(text: &str) -> Result<(), Place> {
    // SVG names its document type; nothing is fetched for it.
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    let parsed = roxmltree::Document::parse_with_options(text, options);
    parsed.map(drop).map_err(|error| Place {
        line: error.pos().row as usize,
        what: format!("no XML: {error}"),
    })
}

fn yaml(text: &str) -> Result<(), Place> {
    for event in Yaml::new_from_str(text) {
        event.map_err(|error| Place {
            line: error.marker().line(),
            what: format!("no YAML: {}", error.info()),
        })?;
    }
    Ok(())
}

type Table = BTreeMap<String, serde_json::Value>;

/// What a version catalogue of Gradle's offers.
struct Catalogue {
    text: String,
    versions: Table,
    libraries: Table,
    plugins: Table,
}

impl Catalogue {
    fn read(text: &str) -> Result<Catalogue> {
        let mut all: BTreeMap<String, Table> =
            basic_toml::from_str(text).with_context(|| format!("{CATALOGUE} is no catalogue"))?;
        let mut part = |name| all.remove(name).unwrap_or_default();
        Ok(Catalogue {
            text: text.to_owned(),
            versions: part("versions"),
            libraries: part("libraries"),
            plugins: part("plugins"),
        })
    }

    /// `version.ref` must name a version.
    fn unknown_versions(&self) -> Vec<String> {
        let aliases = self.libraries.iter().chain(&self.plugins);
        let unknown = aliases.filter_map(|(alias, entry)| {
            let version = entry.pointer("/version/ref")?.as_str()?;
            (!self.versions.contains_key(version)).then(|| {
                format!(
                    "{CATALOGUE}:{}: `{alias}` has the version `{version}`, which [versions] lacks: add it there",
                    line_of(&self.text, alias)
                )
            })
        });
        unknown.collect()
    }

    /// Every `libs.…` in a script must be there. In a script `-` and `_` of an alias are dots.
    fn unknown_names(&self, script: &str, text: &str) -> Vec<String> {
        let dotted = |table: &Table| -> BTreeSet<String> {
            table
                .keys()
                .map(|alias| alias.replace(['-', '_'], "."))
                .collect()
        };
        let (versions, libraries, plugins) = (
            dotted(&self.versions),
            dotted(&self.libraries),
            dotted(&self.plugins),
        );
        let mut unknown = Vec::new();
        for (number, name) in accessors(text) {
            let (table, known, alias) = match name.split_once('.') {
                Some(("versions", alias)) => ("versions", &versions, alias),
                Some(("plugins", alias)) => ("plugins", &plugins, alias),
                _ => ("libraries", &libraries, name.as_str()),
            };
            if !known.contains(alias) {
                unknown.push(format!(
                    "{script}:{number}: `libs.{name}` is not in {CATALOGUE}: add `{}` to [{table}] there, or name one of {}",
                    alias.replace('.', "-"),
                    known.iter().cloned().collect::<Vec<_>>().join(", ")
                ));
            }
        }
        unknown
    }

    /// Where the Maven build has a property `NAME.version`, a version NAME here must be the same.
    fn other_versions_than(&self, pom: &str) -> Result<Vec<String>> {
        let pom = roxmltree::Document::parse(pom).with_context(|| format!("{POM} is no XML"))?;
        let property = |name: &str| {
            let named = |node: &roxmltree::Node<'_, '_>| node.tag_name().name() == name;
            let found = pom.descendants().find(named)?;
            found.text().map(str::to_owned)
        };
        let mut other = Vec::new();
        for (name, version) in &self.versions {
            // Comeback's own is the version of the project itself, which is the first one in the file.
            let theirs = match name.as_str() {
                "comeback" => property("version"),
                _ => property(&format!("{name}.version")),
            };
            if let (Some(ours), Some(theirs)) = (version.as_str(), theirs)
                && ours != theirs
            {
                other.push(format!(
                    "{CATALOGUE}:{}: `{name}` is {ours}, but {theirs} in {POM}: make them the same",
                    line_of(&self.text, name)
                ));
            }
        }
        Ok(other)
    }
}

/// What a script takes from the catalogue, with its line: `libs.versions.comeback.get()` → `versions.comeback`.
fn accessors(script: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in script.lines().enumerate() {
        let code = line.split("//").next().unwrap_or(line);
        for (at, _) in code.match_indices("libs.") {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|letter| letter.is_alphanumeric() || "._\"".contains(letter)) {
                continue;
            }
            let rest = &code[at + "libs.".len()..];
            let end = rest
                .find(|letter: char| !letter.is_alphanumeric() && letter != '.')
                .unwrap_or(rest.len());
            let mut name = &rest[..end];
            if rest[end..].starts_with('(') {
                // A call: the last word is a method's.
                name = name.rsplit_once('.').map_or(name, |(name, _)| name);
            }
            found.push((index + 1, name.to_owned()));
        }
    }
    found
}

/// The line that defines an alias.
fn line_of(catalogue: &str, alias: &str) -> usize {
    let defines = |line: &str| {
        let rest = line.trim_start().strip_prefix(alias);
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    catalogue.lines().position(defines).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "[versions]\nokhttp = \"5.5.1\"\n[libraries]\nokhttp = { module = \"a:b\", version.ref = \"okhttp\" }\nserialization-json = \"c:d:1\"\n[plugins]\nandroid-library = { id = \"x\", version = \"1\" }\n";

    #[test]
    fn a_table_over_two_lines_is_no_toml_for_gradle() {
        let place =
            toml("[libraries]\na = { module = \"b:c\",\n  version = \"1\" }\n").unwrap_err();
        assert_eq!(place.line, 2, "{}", place.what);
        toml(SOUND).unwrap();
    }

    #[test]
    fn broken_xml_and_yaml_are_found_with_their_line() {
        assert_eq!(xml("<a>\n  <b>\n</a>").unwrap_err().line, 3);
        assert_eq!(yaml("a: 1\nb: [1, 2\nc: 3\n").unwrap_err().line, 3);
        xml("<a><b/></a>").unwrap();
        yaml("a: 1\nb: [1, 2]\n").unwrap();
    }

    #[test]
    fn an_alias_that_the_catalogue_lacks_is_named_with_its_line() {
        let catalogue = Catalogue::read(SOUND).unwrap();
        let script = "plugins { alias(libs.plugins.android.library) }\n// libs.old\nval v = libs.versions.okhttp.get()\nimplementation(libs.serialization.json)\nimplementation(libs.retrofit)\n";
        let unknown = catalogue.unknown_names("build.gradle.kts", script);
        assert_eq!(unknown.len(), 1, "{unknown:?}");
        assert!(unknown[0].starts_with("build.gradle.kts:5: `libs.retrofit` is not in"));
    }

    #[test]
    fn a_version_that_is_not_there_or_is_another_one_than_mavens_is_named() {
        let missing = SOUND.replace("okhttp = \"5.5.1\"", "ktor = \"3\"");
        let unknown = Catalogue::read(&missing).unwrap().unknown_versions();
        assert!(
            unknown[0].contains(":4: `okhttp` has the version `okhttp`"),
            "{unknown:?}"
        );

        let catalogue = Catalogue::read(SOUND).unwrap();
        let pom =
            |version| format!("<project><okhttp.version>{version}</okhttp.version></project>");
        assert!(
            catalogue
                .other_versions_than(&pom("5.5.1"))
                .unwrap()
                .is_empty()
        );
        assert_eq!(
            catalogue.other_versions_than(&pom("5.4.0")).unwrap().len(),
            1
        );
    }
}
