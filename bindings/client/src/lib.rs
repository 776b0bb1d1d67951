//! The executor over reqwest for Kotlin: exports only, thin. Every rule is the core's, every attempt the executor's.
//!
//! Nothing here calls into Kotlin. A started call has a number; its events, in order, and then exactly one end are put into a mailbox, which one Kotlin
//! thread empties by [`Client::receive`]. Callbacks would run on the runtime's worker threads, which would have to be attached to the virtual
//! machine, and a callback that blocks would stop every other call.
//!
//! The boundary's types are those of the core's: `i32`, `i64`, `bool`, `String`, bytes, options and lists of them, flat records, enums.
//! Lengths are nanoseconds.

#![allow(missing_docs)] // the fields of records say what the core's types say

// A module knows those above it, not those below.
mod told;

mod mailbox;

mod request;

mod client;

pub use client::{Authority, Client, ClientProblem, Link, Setting};
pub use request::Request;
pub use told::{End, EndKind, EventKind, Told, ToldEvent};

uniffi::setup_scaffolding!();
