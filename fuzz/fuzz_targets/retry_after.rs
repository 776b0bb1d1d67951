//! Any lines as `Retry-After`, with any `Date` and wall clock: no panic, and the longest line alone says the same as all of them.

#![no_main]

use comeback::retry_after;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (i64, &str)| {
    let (clock, text) = input;
    let mut lines = text.split('\n');
    let date = lines.next();
    let lines: Vec<&str> = lines.collect();
    for wall_ms in [None, Some(clock)] {
        let all = retry_after(&lines, date, wall_ms);
        let each = lines.iter().map(|line| retry_after(&[line], date, wall_ms));
        assert_eq!(all, each.flatten().max());
        assert!(all.is_none_or(|hint| hint.as_nanos() <= i64::MAX as u128));
    }
});
