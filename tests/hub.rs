//! Platform events and the snapshots they lead to, against `vectors/hub.json`.

mod support;

use comeback::Hub;
use support::replay::play_hub;
use support::*;

#[test]
fn the_hub_turns_platform_events_into_one_snapshot() {
    each("hub.json", "cases", |case| {
        let mut hub = Hub::new();
        for (number, step) in list(&case["steps"]).iter().enumerate() {
            same(&step["expect"], &play_hub(&mut hub, step))
                .map_err(|difference| format!("step {number}: {difference}"))?;
        }
        Ok(())
    });
}
