//! What an attempt may have sent decides, not what its failure is called: `vectors/evidence.json`.

mod support;

use comeback::*;
use support::*;

#[test]
fn an_attempt_goes_again_only_if_all_that_it_may_have_sent_may() {
    each("evidence.json", "cases", |case| {
        let call = Call::begin(request(&case["request"]), 1, Instant::from_nanos(0), None);
        let signals = Signals {
            now: Instant::from_nanos(0),
            network: Snapshot::UNKNOWN,
            wall_ms: None,
            allowed: Allowed::ALL,
        };
        let step = with_outcome(&case["outcome"], |outcome| {
            decide(&policy(case), call, &Snapshot::UNKNOWN, outcome, &signals)
        });
        let (stop, arrived) = match &step.decision {
            Decision::Sleep(sleep) => (None, sleep.waiting.call().may_have_arrived()),
            Decision::Stop(reason) => {
                let ends = step.events.iter().filter_map(|event| match event {
                    Event::Final(end) => Some(end.may_have_arrived),
                    _ => None,
                });
                (Some(reason_name(Some(*reason)).0), ends.last().unwrap())
            }
            Decision::Deliver => return Err("delivered".to_owned()),
        };
        same(case["stop"].as_str(), stop.as_deref())?;
        same(case["may_have_arrived"].as_bool(), Some(arrived))
    });
}
