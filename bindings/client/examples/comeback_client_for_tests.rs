//! The Rust HTTP client's native library as the Kotlin tests load it: all that `comeback-client` exports, in the dev profile. A jar never gets it.

#[allow(unused_extern_crates, reason = "it is linked for what it exports")]
extern crate comeback_client;
