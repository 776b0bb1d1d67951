//! Which hosts are this machine, against `vectors/loopback.json`.

mod support;

use comeback::is_loopback;
use support::*;

#[test]
fn a_host_that_is_this_machine_is_known_by_its_name() {
    each("loopback.json", "cases", |case| {
        let host = case["host"].as_str().expect("a host");
        same(case["is_loopback"].as_bool(), Some(is_loopback(host)))
    });
}
