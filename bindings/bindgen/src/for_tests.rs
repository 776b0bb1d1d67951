//! The core's native library as the Kotlin tests and the demo load it: all that `comeback` exports, in the dev profile. A jar never gets it.

#[allow(unused_extern_crates, reason = "it is linked for what it exports")]
extern crate comeback;
