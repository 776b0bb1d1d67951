//! Android 15 loads libraries whose segments are aligned to pages of 16 KB, and on some devices no others. Said here, so that it holds
//! whoever builds and with whatever environment.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "android") {
        println!("cargo::rustc-link-arg=-Wl,-z,max-page-size=16384");
    }
}
