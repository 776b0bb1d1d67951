//! The HTTP executor against a server on a real socket that goes wrong.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)] // a test says no by panicking

mod authority;
mod common;
#[allow(dead_code)] // what `peers-rust` needs of it is here too
mod server;

mod adapters;
mod aggregates;
mod answers;
mod arrival;
mod bodies;
mod classification;
mod hooks;
mod keys;
mod layers;
mod limits;
mod network;
mod proxy;
mod repetition;
mod retry_after;
mod suspects;
