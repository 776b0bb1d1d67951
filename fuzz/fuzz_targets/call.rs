//! Bytes drive a whole call and the hub: begin, decide, resume, interrupt. What is checked at each step stands in `drive.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/support/drive.rs"]
mod drive;

fuzz_target!(|bytes: &[u8]| drive::drive(bytes));
