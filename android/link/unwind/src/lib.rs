//! The unwinder alone; see `Cargo.toml`.
#![no_std]

extern crate unwinding;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
