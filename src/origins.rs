//! What is kept per origin, in bounded memory.

use std::collections::HashMap;
use std::hash::Hash;

/// As many origins are kept that are not at rest.
const MOST: usize = 256;

/// Something that need not be kept while a new one would be the same.
pub(crate) trait AtRest {
    fn is_at_rest(&self) -> bool;
}

/// A state for each origin. Only those at rest are forgotten. While 256 are not, a new origin is not tracked.
#[derive(Clone, Debug)]
pub(crate) struct Origins<K, T> {
    of: HashMap<K, T>,
}

impl<K: Eq + Hash, T: AtRest> Origins<K, T> {
    pub(crate) fn new() -> Origins<K, T> {
        Origins { of: HashMap::new() }
    }

    /// The state of an origin that is tracked.
    pub(crate) fn get(&mut self, origin: &K) -> Option<&mut T> {
        self.of.get_mut(origin)
    }

    /// The same; a new origin gets what `make` makes. `None` if it is not tracked.
    pub(crate) fn get_or_track(&mut self, origin: K, make: impl FnOnce() -> T) -> Option<&mut T> {
        if self.of.len() >= MOST && !self.of.contains_key(&origin) {
            self.of.retain(|_, state| !state.is_at_rest());
            if self.of.len() >= MOST {
                return None;
            }
        }
        Some(self.of.entry(origin).or_insert_with(make))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl AtRest for bool {
        fn is_at_rest(&self) -> bool {
            *self
        }
    }

    #[test]
    fn ten_thousand_origins_at_rest_take_the_memory_of_few() {
        let mut origins = Origins::new();
        for origin in 0..10_000 {
            assert!(origins.get_or_track(origin, || true).is_some());
            assert!(origins.of.len() <= MOST);
        }
    }

    #[test]
    fn an_origin_that_is_not_at_rest_is_never_forgotten_and_a_new_one_is_not_tracked() {
        let mut origins = Origins::new();
        for origin in 0..MOST {
            assert!(origins.get_or_track(origin, || false).is_some());
        }
        assert!(origins.get_or_track(MOST, || false).is_none());
        assert!(origins.get(&MOST).is_none());
        *origins.get(&7).unwrap() = true;
        assert!(origins.get_or_track(MOST, || false).is_some());
        assert!(origins.get(&7).is_none());
        assert_eq!(origins.of.len(), MOST);
    }
}
