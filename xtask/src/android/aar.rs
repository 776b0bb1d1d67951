//! `android aar`: the AAR packed without Gradle, and a look at what is in it.

use super::{TARGETS, libraries, place};
use crate::{java, process, project};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn run() -> Result<()> {
    let module = project::root().join("android/comeback-android");
    let classes = module.join("target/classes");
    if !classes
        .join("dev/comeback/android/AndroidConnectivity.class")
        .exists()
    {
        crate::bindings::CORE.make()?;
        let mut maven = java::maven()?;
        maven.args([
            "--quiet",
            "--no-transfer-progress",
            "compile",
            "--projects",
            ":comeback-android",
            "--also-make",
        ]);
        process::run(&mut maven)?;
    }
    let staged = stage(&classes)?;
    let aar = place().join("comeback-android.aar");
    if aar.exists() {
        fs::remove_file(&aar)?;
    }
    process::run(
        jar()
            .arg("--create")
            .arg("--no-manifest")
            .arg("--file")
            .arg(&aar)
            .arg("-C")
            .arg(&staged)
            .arg("."),
    )?;
    check(&aar)?;
    println!("{}", aar.display());
    Ok(())
}

/// The JDK's own packer of zip files.
fn jar() -> Command {
    java::tool("jar")
}

/// The files as an AAR has them.
fn stage(classes: &Path) -> Result<PathBuf> {
    let source = project::root().join("android/comeback-android");
    let staged = place().join("aar");
    if staged.exists() {
        fs::remove_dir_all(&staged)?;
    }
    fs::create_dir_all(&staged)?;
    let manifest = fs::read_to_string(source.join("src/main/AndroidManifest.xml"))?;
    // Gradle takes the package and the lowest API from its own file.
    let manifest = manifest.replace(
        "<manifest xmlns:android=\"http://schemas.android.com/apk/res/android\">\n",
        "<manifest xmlns:android=\"http://schemas.android.com/apk/res/android\"\n    package=\"dev.comeback.android\">\n\n    <uses-sdk android:minSdkVersion=\"24\" />\n",
    );
    fs::write(staged.join("AndroidManifest.xml"), manifest)?;
    fs::copy(
        source.join("consumer-rules.pro"),
        staged.join("proguard.txt"),
    )?;
    fs::write(staged.join("R.txt"), "")?;
    process::run(
        jar()
            .args(["--create", "--no-manifest", "--file"])
            .arg(staged.join("classes.jar"))
            .arg("-C")
            .arg(classes)
            .arg("."),
    )?;
    for target in &TARGETS {
        let library = libraries().join(target.abi).join("libcomeback.so");
        if library.exists() {
            let folder = staged.join("jni").join(target.abi);
            fs::create_dir_all(&folder)?;
            fs::copy(&library, folder.join("libcomeback.so"))?;
        }
    }
    Ok(staged)
}

fn check(aar: &Path) -> Result<()> {
    let listed = process::output(jar().arg("--list").arg("--file").arg(aar))?;
    let has = |name: &str| listed.lines().any(|line| line == name);
    for name in [
        "AndroidManifest.xml",
        "classes.jar",
        "R.txt",
        "proguard.txt",
    ] {
        ensure!(has(name), "the AAR has no {name}");
    }
    let staged = place().join("aar");
    let manifest = fs::read_to_string(staged.join("AndroidManifest.xml"))
        .context("the manifest is missing")?;
    for word in [
        "android.permission.ACCESS_NETWORK_STATE",
        "dev.comeback.android.ComebackInitializer",
        "minSdkVersion=\"24\"",
    ] {
        ensure!(
            manifest.contains(word),
            "the AAR's manifest says nothing of {word}"
        );
    }
    let rules = fs::read_to_string(staged.join("proguard.txt")).context("the rules are missing")?;
    ensure!(
        rules.contains("-keep class * extends com.sun.jna.Structure"),
        "the AAR's rules do not keep JNA's structures"
    );
    let classes = process::output(
        jar()
            .arg("--list")
            .arg("--file")
            .arg(staged.join("classes.jar")),
    )?;
    ensure!(
        !classes
            .lines()
            .any(|line| line.starts_with("com/sun/jna/") || line.starts_with("androidx/")),
        "the AAR carries classes that are not its own"
    );
    let (there, absent): (Vec<_>, Vec<_>) = TARGETS
        .iter()
        .map(|target| target.abi)
        .partition(|abi| has(&format!("jni/{abi}/libcomeback.so")));
    ensure!(
        !there.is_empty(),
        "the AAR has no native library: run `cargo xtask android build` or `link` first"
    );
    println!("libraries for {}", there.join(", "));
    if !absent.is_empty() {
        println!(
            "none for {}: they need the NDK (`cargo xtask android build`)",
            absent.join(", ")
        );
    }
    Ok(())
}
