//! Where seeds come from, if none is given.

use std::hash::{BuildHasher, RandomState};

/// 64 bits from the operating system or, if it gives none, from the standard library's random keys, which differ per process and call.
pub(super) fn seed_from_system() -> u64 {
    getrandom::u64().unwrap_or_else(|_| RandomState::new().hash_one(()))
}
