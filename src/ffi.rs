//! The boundary to Kotlin: exports only, thin. Every rule is the core's.
//!
//! Policy and call state cross as opaque bytes, the rest as flat records: only `i32`, `i64`, `bool`, `String`, bytes, options of
//! them, lists of strings, and enums. Lengths and instants are nanoseconds. There is no callback from here into Kotlin.

#![allow(missing_docs)] // the fields of records say what the core's types say

mod problem;

mod answer;
mod call;
mod hub;
mod policy;

pub use answer::{Answer, AnswerKind, EndEvent, EndReason, FailedEvent, ResumedEvent, WaitEvent};
pub use call::{
    BeginInput, DecideInput, InterruptInput, RequestHead, ResumeInput, ToldRequest, begin, decide,
    interrupt, resume,
};
pub use hub::{ConnectivityHub, NetworkSnapshot};
pub use policy::{
    CompiledPolicy, ForgivenPolicy, PolicyProblem, compile_policy, policy_from_json_or,
};
pub use problem::BoundaryProblem;

/// Panics on purpose: shows that on this platform a panic of the library arrives as an exception and does no harm.
#[uniffi::export]
#[allow(clippy::panic)] // its purpose
pub fn provoke_panic() {
    panic!("a panic was asked for, to show that it is contained");
}
