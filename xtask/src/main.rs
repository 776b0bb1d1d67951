//! The project's own commands; `cargo xtask` alone lists them.

fn main() {
    println!("Usage: cargo xtask <command>");
}
