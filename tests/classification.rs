//! What an outcome means, against `vectors/classification.json`.

mod support;

use comeback::{FailureKind, OutcomeClass, classify};
use support::*;

#[test]
fn an_outcome_has_the_class_the_table_gives_it() {
    each("classification.json", "cases", |case| {
        let got = with_outcome(&case["outcome"], |outcome| {
            classify(&policy(case), &request(&case["request"]), outcome)
        });
        same(named::<OutcomeClass>(&case["class"]), got)
    });
}

#[test]
fn a_failure_kind_is_stored_by_the_name_it_is_told_by() {
    for &kind in FailureKind::ALL {
        assert_eq!(name(kind), kind.name());
        assert_eq!(FailureKind::from_name(kind.name()), Some(kind));
    }
}

#[test]
fn the_table_leaves_no_failure_kind_out() {
    let text = read("classification.json");
    for &kind in FailureKind::ALL {
        let mentioned = format!("{{\"error\": \"{}\"}}", kind.name());
        assert!(text.contains(&mentioned), "{} has no case", kind.name());
    }
}
