//! Comeback composed with itself and with what apps do around it: whatever the composition, what must not be repeated arrives once.
//!
//! `matrix.rs` runs every combination and compares what the server counted with a model of the rules; `storm.rs` draws combinations, faults and
//! cancellations at random; `halves.rs` cuts an answer at every byte. All are on real sockets, and no wait is longer than a few milliseconds.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)] // a test says no by panicking

#[allow(dead_code)] // the tests in `http` need more of it
#[path = "../http/server.rs"]
mod server;

mod halves;
mod matrix;
mod storm;
