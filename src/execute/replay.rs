//! The decision vectors and the model's scenarios through the executor's loop: the same events at the same times as the pure core, and an
//! attempt wherever one is made.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use serde_json::Value;

use super::clock::Clock;
use super::connectivity::Connectivity;
use super::drive::{AttemptStart, Attempts, CallSetting, Drive};
use super::layer::OuterAttempt;
use super::session::Proof;
use crate::connectivity::Network;
use crate::event::{End, Event, Reason};
use crate::instant::Instant;
use crate::outcome::{InnerRequest, Outcome};
use crate::request::RequestFacts;
use support::{
    each, event_json, instant, limit_json, list, number, policy, request, seed, snapshot_json,
    with_outcome,
};

#[path = "../../tests/support/mod.rs"]
#[allow(unreachable_patterns)] // in its own crate no enum is open
mod support;

/// What the test and the driver share.
#[derive(Debug, Default)]
struct Scene {
    /// What the clock says next; the last of them for ever.
    times: Vec<i64>,
    wall_ms: Option<i64>,
    /// What the attempt in flight comes back with.
    outcome: Option<Value>,
    proof: Proof,
    sends: Vec<i64>,
    limits: Vec<Value>,
    events: Vec<Value>,
}

#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<Scene>>);

impl Shared {
    fn scene(&self) -> MutexGuard<'_, Scene> {
        self.0.lock().unwrap()
    }

    fn at(&self, step: &Value) {
        let mut scene = self.scene();
        scene.times = vec![number(&step["now"])];
        scene.wall_ms = step["wall_ms"].as_i64();
    }
}

impl Clock for Shared {
    fn now(&self) -> Instant {
        let mut scene = self.scene();
        let now = scene.times[0];
        if scene.times.len() > 1 {
            scene.times.remove(0);
        }
        Instant::from_nanos(now)
    }

    fn wall_ms(&self) -> Option<i64> {
        self.scene().wall_ms
    }
}

struct InFlight(Shared);

impl Future for InFlight {
    type Output = Value;

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Value> {
        match self.0.scene().outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        }
    }
}

impl Attempts for Shared {
    type Output = Value;
    type Future = InFlight;

    fn attempt(&mut self, start: &AttemptStart) -> InFlight {
        let mut scene = self.scene();
        let now = scene.times[0];
        scene.sends.push(now);
        scene.limits.push(limit_json(&start.limit));
        InFlight(self.clone())
    }

    fn as_inner(&self, _above: &OuterAttempt) -> Option<RequestFacts> {
        None
    }

    fn outcome<T>(
        &mut self,
        output: &mut Value,
        _inner: &[InnerRequest],
        decide: impl FnOnce(&Outcome<'_>) -> T,
    ) -> T {
        with_outcome(output, decide)
    }

    fn proof(&self) -> Proof {
        self.scene().proof
    }

    fn hear(&mut self, _call_id: u64, event: Event) {
        if let Event::Final(End {
            reason: Some(Reason::Cancelled(_)),
            ..
        }) = event
        {
            return; // the scenario was over before the call
        }
        self.scene().events.push(event_json(&event));
    }
}

fn replay(scenario: &Value) -> Result<(), String> {
    let shared = Shared::default();
    let hub = Connectivity::with_clock(shared.clone());
    let policy = policy(scenario);
    let setting = CallSetting {
        client_end: scenario["client_end"].as_i64().map(Instant::from_nanos),
        seed: Some(seed(&scenario["seed"])),
        restarts: true,
        ..CallSetting::new(request(&scenario["request"]), hub.clone())
    };
    let mut call = pin!(Drive::new(shared.clone(), &policy, setting));
    let mut context = Context::from_waker(Waker::noop());

    let (mut events, mut sends, mut limits) = (Vec::new(), Vec::new(), Vec::new());
    for step in list(&scenario["steps"]) {
        shared.at(step);
        match step["do"].as_str().unwrap() {
            "hub" => {
                let network = snapshot_json(&tell(&hub, step));
                assert_eq!(network, step["expect"]["network"]);
                continue;
            }
            "note" => {
                if sends.is_empty() {
                    limits.push(step["expect"]["limit"].clone());
                    sends.push(number(&step["now"]));
                    let began = instant(&scenario["began"]).as_nanos();
                    shared.scene().times.insert(0, began);
                } else {
                    continue; // the executor noted when it was told to go
                }
            }
            "outcome" => shared.scene().outcome = Some(step["outcome"].clone()),
            "interrupt" => {
                shared.scene().proof = Proof {
                    sent_nothing: step["sent_nothing"] == true,
                    body_untouched: step["body_untouched"] == true,
                };
            }
            "resume" => {}
            other => unreachable!("{other}"),
        }
        let over = call.as_mut().poll(&mut context);
        events.extend(
            step["expect"]["events"]
                .as_array()
                .into_iter()
                .flatten()
                .cloned(),
        );
        let kind = step["expect"]["decision"]["kind"].as_str().unwrap_or("");
        if matches!(kind, "go" | "restart") {
            sends.push(number(&step["now"]));
            limits.push(step["expect"]["decision"]["limit"].clone());
        }
        assert_eq!(
            over.is_ready(),
            matches!(kind, "deliver" | "stop"),
            "{step}"
        );
    }
    let mut scene = shared.scene();
    if scene.events.len() == events.len() + 1 && scene.events[events.len()]["event"] == "resumed" {
        // The scenario ends with a wait of no length; the executor does not wait to be asked.
        scene.events.pop();
        scene.sends.pop();
        scene.limits.pop();
    }
    support::same(&events, &scene.events)?;
    support::same(&sends, &scene.sends)?;
    support::same(&limits, &scene.limits)
}

fn tell(hub: &Connectivity, step: &Value) -> crate::connectivity::Snapshot {
    let handle = || number(&step["handle"]);
    let flag = |name: &str| step[name].as_bool().unwrap();
    match step["event"].as_str().unwrap() {
        "none_at_start" => hub.none_at_start(),
        "available" => hub.available(Network {
            handle: handle(),
            blocked: flag("blocked"),
            suspended: flag("suspended"),
            validated: flag("validated"),
        }),
        "capabilities" => hub.capabilities(handle(), flag("suspended"), flag("validated")),
        "blocked" => hub.blocked(handle(), flag("blocked")),
        "lost" => hub.lost(handle()),
        "failed" => hub.failed(),
        "restored" => hub.restored(),
        "deliberate" => hub.deliberate(flag("on")),
        other => unreachable!("{other}"),
    }
}

/// Timers need a runtime; nobody lets them fire: what moves is the scene's clock.
fn on_a_runtime<T>(test: impl FnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let _entered = runtime.enter();
    test()
}

#[test]
fn calls_of_the_executor_go_as_the_design_says() {
    on_a_runtime(|| each("decisions.json", "cases", replay));
}

/// Whether the driver asks a while after it might have gone. The executor never is so late: it asks as soon as it has been told to sleep.
fn is_late(scenario: &Value) -> bool {
    let mut due = None;
    list(&scenario["steps"]).iter().any(|step| {
        let now = number(&step["now"]);
        let waited = due.take().is_some_and(|due| now > due) && step["do"] != "outcome";
        let slept = &step["expect"]["decision"]["ask_at"];
        due = slept.as_i64().filter(|ask_at| *ask_at <= now);
        waited
    })
}

#[test]
fn calls_of_the_executor_go_as_the_model_says() {
    on_a_runtime(|| {
        let text = support::read("scenarios.jsonl");
        let scenarios = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let (late, on_time): (Vec<Value>, Vec<Value>) = scenarios.partition(is_late);
        for scenario in &on_time {
            replay(scenario).unwrap_or_else(|difference| {
                unreachable!("{}: {difference}", scenario["name"]);
            });
        }
        println!(
            "{} replayed; in {} the driver is late",
            on_time.len(),
            late.len()
        );
        assert_eq!(on_time.len() + late.len(), 300);
        assert!(late.len() < 10);
    });
}
