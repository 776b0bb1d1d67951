//! What can go wrong at the boundary and nowhere else.

use std::fmt;

use crate::stored::Unreadable;

/// An error of the boundary's own.
#[derive(Debug, PartialEq, Eq, uniffi::Error)]
pub enum BoundaryProblem {
    /// Bytes that are not what they should be: what was expected, and what is wrong.
    Unreadable { expected: String, problem: String },
    /// The operating system gives no seed.
    NoRandomness { problem: String },
}

impl fmt::Display for BoundaryProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BoundaryProblem::Unreadable { expected, problem } => {
                write!(out, "these bytes are not {expected}: {problem}")
            }
            BoundaryProblem::NoRandomness { problem } => {
                write!(out, "the operating system gives no random seed: {problem}")
            }
        }
    }
}

impl std::error::Error for BoundaryProblem {}

impl From<Unreadable> for BoundaryProblem {
    fn from(bytes: Unreadable) -> BoundaryProblem {
        BoundaryProblem::Unreadable {
            expected: bytes.expected.to_owned(),
            problem: bytes.problem,
        }
    }
}
