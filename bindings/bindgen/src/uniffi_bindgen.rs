//! uniffi's generator as a program of this workspace, so that generator and library are always the same version.

fn main() {
    uniffi::uniffi_bindgen_main();
}
