//! `android link`: real libraries without an NDK, against stubs of what API 24 has. What they need, export and weigh is checked; they are for these
//! checks and never to be shipped.
//!
//! The list of permitted symbols is written by hand and reviewed against API 24. One taken from the library itself would prove nothing.

use super::{TARGETS, Target, place, put_stripped};
use crate::toolchain::Toolchain;
use crate::{fresh, process, project};
use anyhow::{Context, Result, bail, ensure};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PAGE: u64 = 0x4000;
const TOOLS: [&str; 5] = [
    "clang-19",
    "ld.lld-19",
    "llvm-strip-19",
    "llvm-readelf-19",
    "llvm-nm-19",
];

/// Those that have an unwinder without an NDK: all but 32-bit ARM.
fn linked() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().filter(|target| target.abi != "armeabi-v7a")
}

/// Why it cannot be done here, if so.
pub fn missing() -> Option<String> {
    if let Err(error) = super::toolchain() {
        return Some(error.to_string());
    }
    let absent: Vec<&str> = TOOLS.into_iter().filter(|tool| !is_there(tool)).collect();
    (!absent.is_empty()).then(|| {
        format!(
            "{} not installed: `apt-get install clang-19 lld-19 llvm-19`",
            absent.join(", ")
        )
    })
}

/// Whether it can be started.
pub fn is_there(tool: &str) -> bool {
    Command::new(tool)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

pub fn run() -> Result<()> {
    if let Some(missing) = missing() {
        bail!("{missing}");
    }
    for target in linked() {
        let stripped = library(target)?;
        inspect(&stripped)?;
        println!(
            "{}: {} KiB stripped; needs only what API 24 has, aligned to 16 KB, exports the binding alone",
            target.abi,
            fs::metadata(&stripped)?.len().div_ceil(1024)
        );
    }
    Ok(())
}

/// The one for arm64, for its weight.
pub fn for_arm64() -> Result<PathBuf> {
    library(&TARGETS[0])
}

const ARM64_COMPILER: &str = "aarch64-linux-gnu-gcc";
const ARM64_RUNNER: &str = "qemu-aarch64-static";

/// Why the libraries cannot be run here, if so.
pub fn missing_to_run() -> Option<String> {
    missing().or_else(|| {
        let absent = [ARM64_COMPILER, ARM64_RUNNER, "gcc"]
            .into_iter()
            .find(|tool| !is_there(tool))?;
        Some(format!(
            "{absent} is not installed: `apt-get install gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static`"
        ))
    })
}

/// The libraries on Linux: a shim stands for what glibc lacks of bionic. arm64 runs under qemu.
pub fn run_on_linux() -> Result<()> {
    if let Some(missing) = missing_to_run() {
        bail!("{missing}");
    }
    for (target, compiler, runner) in [
        (
            &TARGETS[0],
            ARM64_COMPILER,
            Some([ARM64_RUNNER, "-L", "/usr/aarch64-linux-gnu"]),
        ),
        (&TARGETS[2], "gcc", None),
    ] {
        let library = library(target)?;
        let shims = place().join("shims").join(target.abi);
        fs::create_dir_all(&shims)
            .with_context(|| format!("{} cannot be made", shims.display()))?;
        let source = project::root().join("android/link/run");
        for name in ["libc.so", "libm.so", "libdl.so", "liblog.so"] {
            process::run(
                Command::new(compiler)
                    .args(["-shared", "-fPIC", "-o"])
                    .arg(shims.join(name))
                    .arg(source.join("shim.c"))
                    .arg(format!("-Wl,-soname,{name}")),
            )?;
        }
        let smoke = shims.join("smoke");
        process::run(
            Command::new(compiler)
                .arg("-o")
                .arg(&smoke)
                .arg(source.join("smoke.c"))
                .arg("-ldl"),
        )?;
        let mut program = match runner {
            Some([qemu, option, root]) => {
                let mut program = Command::new(qemu);
                program.args([option, root, "-E"]);
                program
                    .arg(format!("LD_LIBRARY_PATH={}", shims.display()))
                    .arg(&smoke);
                program
            }
            None => {
                let mut program = Command::new(&smoke);
                program.env("LD_LIBRARY_PATH", &shims);
                program
            }
        };
        print!(
            "{}: {}",
            target.abi,
            process::output(program.arg(&library))?
        );
    }
    kotlin_tests()
}

/// The x86-64 library under the tests of comeback-core, in the place of the one in the jar. Those that want no library at all are left out.
fn kotlin_tests() -> Result<()> {
    crate::bindings::CORE.make()?;
    let library = super::libraries().join("x86_64/libcomeback.so");
    let mut maven = crate::java::maven()?;
    maven
        .args([
            "--no-transfer-progress",
            "test-compile",
            "surefire:test@default-test",
            "--projects",
            "comeback-core",
            "--also-make",
        ])
        .arg(format!(
            "-Duniffi.component.comeback.libraryOverride={}",
            library.display()
        ))
        .env("LD_LIBRARY_PATH", place().join("shims/x86_64"));
    process::run(&mut maven)
}

/// Built, linked and stripped.
fn library(target: &Target) -> Result<PathBuf> {
    let toolchain = super::toolchain()?;
    let stubs = place().join("stubs").join(target.abi);
    fs::create_dir_all(&stubs).with_context(|| format!("{} cannot be made", stubs.display()))?;
    begin_and_end(target, &stubs)?;
    stub_libraries(target, &stubs)?;
    unwinder(&toolchain, target, &stubs)?;
    let linker = linker(target, &stubs)?;
    // Cargo knows nothing of the stubs: what was linked against an older list is linked anew.
    let outputs = toolchain.output().join(target.triple).join("library");
    for output in ["libcomeback.so", "deps/libcomeback.so"].map(|name| outputs.join(name)) {
        if output.exists() && !fresh::is_fresh(&output, &[list()]) {
            fs::remove_file(output)?;
        }
    }
    let built = super::library(&toolchain, target, &linker)?;
    put_stripped(Path::new("llvm-strip-19"), &built, target)
}

fn clang(target: &Target) -> Command {
    let mut clang = Command::new("clang-19");
    clang.arg(format!("--target={}", target.clang));
    clang
}

/// What the NDK's crtbegin_so.o does.
fn begin_and_end(target: &Target, stubs: &Path) -> Result<()> {
    let source = stubs.join("crt_so.c");
    let code = "extern void __cxa_finalize(void *);\n\
        __attribute__((visibility(\"hidden\"))) void *__dso_handle = &__dso_handle;\n\
        __attribute__((destructor)) static void finish(void) { __cxa_finalize(&__dso_handle); }\n";
    fs::write(&source, code)?;
    process::run(
        clang(target)
            .args(["-fPIC", "-c"])
            .arg(&source)
            .arg("-o")
            .arg(stubs.join("crt_so.o")),
    )
}

/// Libraries with the permitted symbols and nothing else. rustc names all four.
fn stub_libraries(target: &Target, stubs: &Path) -> Result<()> {
    let permitted = permitted()?;
    for name in ["libc", "libm", "libdl", "liblog"] {
        let assembly: String = permitted
            .iter()
            .filter(|(_, library)| library.as_str() == name)
            .map(|(symbol, _)| format!(".globl {symbol}\n.type {symbol},%function\n{symbol}:\n"))
            .collect();
        let source = stubs.join(format!("{name}.s"));
        fs::write(&source, assembly)?;
        process::run(
            clang(target)
                .args(["-nostdlib", "--ld-path=/usr/bin/ld.lld-19", "-shared"])
                .arg(format!("-Wl,-soname,{name}.so"))
                .arg("-o")
                .arg(stubs.join(format!("{name}.so")))
                .arg(&source),
        )?;
    }
    Ok(())
}

fn list() -> PathBuf {
    project::root().join("android/link/permitted-symbols.txt")
}

/// Each symbol with the library that has it.
fn permitted() -> Result<HashMap<String, String>> {
    let path = list();
    let text =
        fs::read_to_string(&path).with_context(|| format!("{} is missing", path.display()))?;
    let mut library = "";
    let mut symbols = HashMap::new();
    for line in text.lines() {
        let (line, since) = line.split_once('#').unwrap_or((line, ""));
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
        {
            library = name;
        } else if !line.is_empty() {
            let since = since.trim();
            ensure!(
                since.is_empty() || since.parse::<u32>().is_ok_and(|api| api <= 24),
                "{line} is listed as permitted, but API 24 has it not: it came with {since}"
            );
            symbols.insert(line.to_owned(), library.to_owned());
        }
    }
    Ok(symbols)
}

/// The NDK's libunwind has a stand-in in Rust.
fn unwinder(toolchain: &Toolchain, target: &Target, stubs: &Path) -> Result<()> {
    let mut cargo = toolchain.cargo_with("build", target.triple, "core,compiler_builtins");
    cargo.args([
        "--release",
        "--locked",
        "--manifest-path",
        "android/link/unwind/Cargo.toml",
    ]);
    process::run(&mut cargo)?;
    fs::copy(
        toolchain
            .output()
            .join(target.triple)
            .join("release/libunwind.a"),
        stubs.join("libunwind.a"),
    )?;
    Ok(())
}

/// A program that cargo takes for the linker. What is not found is left open: `inspect` then names all of it at once.
fn linker(target: &Target, stubs: &Path) -> Result<PathBuf> {
    let path = stubs.join("linker");
    let here = stubs.display();
    let clang = target.clang;
    let script = format!(
        "#!/bin/sh\nexec clang-19 --target={clang} --ld-path=/usr/bin/ld.lld-19 -nostdlib -L {here} {here}/crt_so.o \"$@\" \
         -Wl,--no-dependent-libraries\n"
    );
    fs::write(&path, script)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(path)
}

/// Alignment, needed libraries, needed and exported symbols, as the library itself says.
fn inspect(library: &Path) -> Result<()> {
    let headers = process::output(
        Command::new("llvm-readelf-19")
            .args(["-lW", "-d"])
            .arg(library),
    )?;
    let loads: Vec<&str> = headers
        .lines()
        .filter(|line| line.trim_start().starts_with("LOAD"))
        .collect();
    ensure!(
        !loads.is_empty(),
        "{} has no segments to load",
        library.display()
    );
    for load in loads {
        let alignment = load.split_whitespace().last().unwrap_or("");
        ensure!(
            u64::from_str_radix(alignment.trim_start_matches("0x"), 16) == Ok(PAGE),
            "a segment is aligned to {alignment}, not to 16 KB: {load}"
        );
    }
    // What the loader of API 24 does not know, or refuses: thread-local storage (29), packed relocations (28), relocations in code.
    for unknown in [" TLS ", "(RELR)", "(TEXTREL)"] {
        ensure!(
            !headers.contains(unknown),
            "the library asks the loader for{unknown}, which API 24 has not"
        );
    }
    ensure!(
        headers.contains("(GNU_HASH)") || headers.contains("(HASH)"),
        "the loader finds no symbol: there is no table of hashes"
    );
    let needed: Vec<&str> = headers
        .lines()
        .filter(|line| line.contains("(NEEDED)"))
        .collect();
    for line in &needed {
        let known = ["[libc.so]", "[libm.so]", "[libdl.so]", "[liblog.so]"];
        ensure!(
            known.iter().any(|name| line.contains(name)),
            "an unexpected library is needed: {line}"
        );
    }
    let permitted = permitted()?;
    for symbol in symbols(library, "--undefined-only")? {
        let Some(from) = permitted.get(&symbol) else {
            bail!("{symbol} is needed, and API 24 is not known to have it");
        };
        ensure!(
            needed
                .iter()
                .any(|line| line.contains(&format!("[{from}.so]"))),
            "{symbol} is in {from}, which the library does not ask for"
        );
    }
    let exported = symbols(library, "--defined-only")?;
    for prefix in ["ffi_comeback_", "uniffi_comeback_"] {
        ensure!(
            exported.iter().any(|symbol| symbol.starts_with(prefix)),
            "nothing that begins with {prefix} is exported"
        );
    }
    let foreign: Vec<&String> = exported
        .iter()
        .filter(|symbol| {
            !["ffi_", "uniffi_", "UNIFFI_"]
                .iter()
                .any(|prefix| symbol.starts_with(prefix))
        })
        .collect();
    ensure!(
        foreign.is_empty(),
        "what is not the binding's is exported: {foreign:?}"
    );
    Ok(())
}

fn symbols(library: &Path, which: &str) -> Result<Vec<String>> {
    let listed = process::output(
        Command::new("llvm-nm-19")
            .args(["-D", "--format=just-symbols", which])
            .arg(library),
    )?;
    Ok(listed
        .lines()
        .map(|symbol| symbol.split('@').next().unwrap_or(symbol).to_owned())
        .filter(|symbol| !symbol.is_empty())
        .collect())
}
