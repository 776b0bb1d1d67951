//! Whole calls, step by step, against `vectors/decisions.json`.

mod support;

use support::each;
use support::replay::replay;

#[test]
fn calls_go_as_the_design_says() {
    each("decisions.json", "cases", replay);
}
