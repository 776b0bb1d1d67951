//! What a server's `Retry-After` asks for, against `vectors/retry_after.json`.

mod support;

use comeback::retry_after;
use support::*;

#[test]
fn retry_after_is_read_strictly_and_in_all_legal_forms() {
    each("retry_after.json", "cases", |case| {
        let lines = texts(&case["lines"]);
        let got = retry_after(&lines, case["date"].as_str(), case["wall_ms"].as_i64());
        same(case["hint"].as_i64(), got.map(nanos))
    });
}
