//! What may be sent again although it may have arrived, against `vectors/repeat.json`.

mod support;

use comeback::may_repeat;
use support::*;

#[test]
fn a_request_is_repeated_only_where_that_is_safe() {
    each("repeat.json", "cases", |case| {
        let got = may_repeat(&policy(case), &request(&case["request"]));
        same(case["may_repeat"].as_bool(), Some(got))
    });
}
