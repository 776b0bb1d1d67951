//! Policies and call states as opaque bytes: a version, what it is, and the value in postcard's stable format. In this form they cross to
//! Kotlin, and a policy goes on from there to another library of ours.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::{Call, Waiting};
use crate::policy::RetryPolicy;

/// Raised with every change of a stored form.
const VERSION: u8 = 3;

/// A value with a stored form of its own, so that a call in flight is not taken for one that waits.
pub(crate) trait Stored: Serialize + DeserializeOwned {
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

/// The bytes cannot be read: what was expected, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// What was expected.
    pub expected: &'static str,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "these bytes are not {}: {}",
            self.expected, self.problem
        )
    }
}

impl std::error::Error for Unreadable {}

/// Reads a policy that another library of this project compiled to bytes.
///
/// # Errors
/// If they are no policy, one of another version, or an invalid one.
pub fn policy(bytes: &[u8]) -> Result<RetryPolicy, Unreadable> {
    load(bytes)
}

fn unreadable<T: Stored>(problem: impl fmt::Display) -> Unreadable {
    Unreadable {
        expected: T::NAME,
        problem: problem.to_string(),
    }
}

/// Only the binding stores.
#[cfg(any(feature = "uniffi", test))]
pub(crate) fn store<T: Stored>(value: &T) -> Result<Vec<u8>, Unreadable> {
    postcard::to_extend(value, vec![VERSION, T::TAG]).map_err(unreadable::<T>)
}

pub(crate) fn load<T: Stored>(bytes: &[u8]) -> Result<T, Unreadable> {
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
    use crate::call::{Allowed, Signals};
    use crate::connectivity::{NetworkState, Snapshot};
    use crate::decide::{Decision, decide};
    use crate::instant::Instant;
    use crate::outcome::{FailureKind, Outcome};
    use crate::policy::Offline;
    use crate::request::{Method, RequestFacts};
    use crate::resume::resume;
    use std::time::Duration;

    fn call() -> Call {
        let request = RequestFacts::new(Method::Get);
        Call::begin(request, u64::MAX, Instant::LONG_AGO, None)
    }

    fn signals(now: i64, state: NetworkState) -> Signals {
        let network = Snapshot {
            state,
            epoch: 1,
            ..Snapshot::UNKNOWN
        };
        Signals {
            now: Instant::from_nanos(now),
            network,
            wall_ms: None,
            allowed: Allowed::ALL,
        }
    }

    /// A state with something in every field: parked after a look-up that failed.
    fn waiting() -> Waiting {
        let policy = RetryPolicy::builder()
            .offline(Offline::Park)
            .build()
            .unwrap();
        let end = Some(Instant::from_nanos(i64::MAX));
        let request = RequestFacts::new(Method::Put);
        let call = Call::begin(request, 7, Instant::from_nanos(1_000), end);
        let outcome = Outcome {
            look_up: Duration::from_secs(2),
            ..Outcome::failure(FailureKind::Dns)
        };
        let signals = signals(3_000, NetworkState::Offline);
        match decide(&policy, call, &Snapshot::UNKNOWN, &outcome, &signals).decision {
            Decision::Sleep(sleep) => sleep.waiting,
            other => panic!("{other:?}"),
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
        newer[0] = VERSION + 1;
        let told = load::<Call>(&newer).unwrap_err().to_string();
        assert!(told.contains("version is 4"), "{told}");
        for end in 0..bytes.len() {
            load::<Call>(&bytes[..end]).unwrap_err();
        }
        load::<Call>(&[&bytes[..], &[0]].concat()).unwrap_err();
    }

    /// If this fails, the form has changed: raise the version.
    #[test]
    fn the_stored_forms_are_these() {
        assert_eq!(
            hex(&store(&RetryPolicy::payment()).unwrap()),
            "0370039875000000e8070000000000000040c03e00000f98039903a903ad03f403f603f703f803880489048a048b048c0491049204000f4964656d706f74656e63792d4b65790000010000000001904e00"
        );
        assert_eq!(
            hex(&store(&call()).unwrap()),
            "0363000000000100ffffffffffffffffff01ffffffffffffffffff01ffffffffffffffffff0100000000000000"
        );
        assert_eq!(
            hex(&store(&waiting()).unwrap()),
            "037704000000010007d00ff02e01feffffffffffffffff0101010101e8d1e2f302000000f02ef0feacf30e020180a8d6b907f0bedfc04a0001f02e8090dfc04a"
        );
    }

    #[test]
    fn a_length_that_is_a_lie_is_not_believed() {
        const LONGEST: [u8; 10] = [255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        let bytes = store(&RetryPolicy::payment()).unwrap();
        for at in 2..bytes.len() {
            let (before, after) = bytes.split_at(at);
            for after in [after, &after[1..]] {
                load::<RetryPolicy>(&[before, &LONGEST, after].concat()).unwrap_err();
            }
        }
    }

    #[test]
    fn whatever_a_state_says_it_is_refused_or_answered() {
        let bytes = store(&waiting()).unwrap();
        let mut answered = 0;
        for at in 0..bytes.len() {
            for byte in 0..=u8::MAX {
                let mut changed = bytes.clone();
                changed[at] = byte;
                let Ok(waiting) = load::<Waiting>(&changed) else {
                    continue;
                };
                answered += 1;
                for now in [i64::MIN, 0, 5_000_000_000, i64::MAX] {
                    for state in [NetworkState::Online, NetworkState::Blocked] {
                        resume(&RetryPolicy::read(), waiting.clone(), &signals(now, state));
                    }
                }
            }
        }
        assert!(answered > bytes.len());
    }

    #[test]
    fn an_invalid_policy_does_not_come_in_through_bytes() {
        let policy = RetryPolicy {
            max_attempts: 0,
            ..RetryPolicy::default()
        };
        let told = load::<RetryPolicy>(&store(&policy).unwrap()).unwrap_err();
        assert_eq!(told.expected, "a policy");
    }
}
