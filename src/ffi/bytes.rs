//! Policies and call states as opaque bytes: a version, what it is, and the value in postcard's stable format.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::{Call, Waiting};
use crate::policy::RetryPolicy;

/// Raised with every change of a stored form.
const VERSION: u8 = 1;

/// A value with a stored form of its own, so that a call in flight is not taken for one that waits.
pub(super) trait Stored: Serialize + DeserializeOwned {
    const TAG: u8;
    const NAME: &'static str;
}

impl Stored for RetryPolicy {
    const TAG: u8 = b'p';
    const NAME: &'static str = "a policy";
}

impl Stored for Call {
    const TAG: u8 = b'c';
    const NAME: &'static str = "a call in flight";
}

impl Stored for Waiting {
    const TAG: u8 = b'w';
    const NAME: &'static str = "a waiting call";
}

/// What can go wrong at the boundary and nowhere else.
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

fn unreadable<T: Stored>(problem: impl fmt::Display) -> BoundaryProblem {
    BoundaryProblem::Unreadable {
        expected: T::NAME.to_owned(),
        problem: problem.to_string(),
    }
}

pub(super) fn store<T: Stored>(value: &T) -> Result<Vec<u8>, BoundaryProblem> {
    postcard::to_extend(value, vec![VERSION, T::TAG]).map_err(unreadable::<T>)
}

pub(super) fn load<T: Stored>(bytes: &[u8]) -> Result<T, BoundaryProblem> {
    let [version, tag, value @ ..] = bytes else {
        return Err(unreadable::<T>("there are fewer than two"));
    };
    if *version != VERSION {
        let problem = format!("their version is {version}, this library reads {VERSION}");
        return Err(unreadable::<T>(problem));
    }
    if *tag != T::TAG {
        return Err(unreadable::<T>("they are something else"));
    }
    match postcard::take_from_bytes(value) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(unreadable::<T>("there are too many")),
        Err(error) => Err(unreadable::<T>(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instant::Instant;
    use crate::request::{Method, RequestFacts};

    fn call() -> Call {
        let request = RequestFacts::new(Method::Get);
        Call::begin(request, u64::MAX, Instant::LONG_AGO, None)
    }

    #[test]
    fn every_preset_comes_back_as_it_was() {
        for policy in [
            RetryPolicy::default(),
            RetryPolicy::payment(),
            RetryPolicy::read(),
            RetryPolicy::batch(),
        ] {
            let bytes = store(&policy).unwrap();
            assert_eq!(load::<RetryPolicy>(&bytes), Ok(policy));
        }
    }

    #[test]
    fn a_call_comes_back_as_it_was() {
        assert_eq!(load::<Call>(&store(&call()).unwrap()), Ok(call()));
    }

    #[test]
    fn a_call_in_flight_is_not_taken_for_a_waiting_one() {
        let bytes = store(&call()).unwrap();
        assert_eq!(
            load::<Waiting>(&bytes).unwrap_err().to_string(),
            "these bytes are not a waiting call: they are something else"
        );
    }

    #[test]
    fn other_versions_and_broken_bytes_are_refused_with_what_is_wrong() {
        let bytes = store(&call()).unwrap();
        let mut newer = bytes.clone();
        newer[0] = 2;
        let told = load::<Call>(&newer).unwrap_err().to_string();
        assert!(told.contains("version is 2"), "{told}");
        for end in 0..bytes.len() {
            load::<Call>(&bytes[..end]).unwrap_err();
        }
        load::<Call>(&[&bytes[..], &[0]].concat()).unwrap_err();
    }

    #[test]
    fn an_invalid_policy_does_not_come_in_through_bytes() {
        let policy = RetryPolicy {
            max_attempts: 0,
            ..RetryPolicy::default()
        };
        let told = load::<RetryPolicy>(&store(&policy).unwrap()).unwrap_err();
        assert!(matches!(told, BoundaryProblem::Unreadable { .. }));
    }
}
