//! Replays one call, step by step, against what a scenario or a vector expects. The format is in `tests/vectors/README.md`.

use comeback::draw::{Purpose, bounds, uniform, word};
use comeback::*;
use serde_json::{Value, json};

use super::*;

/// Plays every step and checks every draw; the first difference, with its step.
pub(crate) fn replay(scenario: &Value) -> Result<(), String> {
    let mut player = Player::new(scenario);
    let steps = list(&scenario["steps"]);
    assert!(!steps.is_empty(), "{}: no step", scenario["name"]);
    for (number, step) in steps.iter().enumerate() {
        let got = player.play(step);
        if got != step["expect"] {
            return Err(format!(
                "step {number}: {}\n  expected {}\n  got      {got}",
                input(step),
                step["expect"]
            ));
        }
    }
    player.draws.rest(&player.policy)
}

fn input(step: &Value) -> Value {
    let mut input = object(step).clone();
    input.remove("expect");
    Value::Object(input)
}

/// Where the call is.
enum CallState {
    InFlight(Call),
    Waiting(Waiting),
    Over,
}

struct Player {
    policy: RetryPolicy,
    request: RequestFacts,
    hub: Hub,
    state: CallState,
    noted: Snapshot,
    limit: Limit,
    draws: Draws,
}

impl Player {
    fn new(scenario: &Value) -> Player {
        let policy = policy(scenario);
        let request = request(&scenario["request"]);
        let seed = seed(&scenario["seed"]);
        let began = instant(&scenario["began"]);
        let client_end = scenario["client_end"].as_i64().map(Instant::from_nanos);
        let call = Call::begin(request, seed, began, client_end);
        Player {
            limit: first_limit(&policy, &call),
            draws: Draws::new(seed, &scenario["draws"]),
            policy,
            request,
            hub: Hub::new(),
            state: CallState::InFlight(call),
            noted: Snapshot::UNKNOWN,
        }
    }

    fn play(&mut self, step: &Value) -> Value {
        if step["do"] == "hub" {
            return play_hub(&mut self.hub, step);
        }
        let signals = Signals {
            now: instant(&step["now"]),
            network: snapshot(&step["network"]),
            wall_ms: step["wall_ms"].as_i64(),
            allowed: allowed(step).unwrap_or(Allowed::ALL),
        };
        assert_eq!(
            signals.network,
            self.hub.snapshot(),
            "the step's network is the hub's"
        );
        let state = std::mem::replace(&mut self.state, CallState::Over);
        match (step["do"].as_str().expect("what to do"), state) {
            ("note", state @ CallState::InFlight(_)) => {
                self.state = state;
                self.noted = signals.network;
                json!({"limit": limit_json(&self.limit)})
            }
            ("outcome", CallState::InFlight(call)) => with_outcome(&step["outcome"], |outcome| {
                let class = classify(&self.policy, &self.request, outcome);
                let answer = decide(&self.policy, call, &self.noted, outcome, &signals);
                self.draws.decided(&self.policy, outcome, &answer);
                let decision = match answer.decision {
                    Decision::Deliver => json!({"kind": "deliver"}),
                    Decision::Stop(reason) => stop_json(reason),
                    Decision::Sleep(sleep) => self.sleep(sleep, step),
                };
                json!({"class": name(class), "decision": decision, "events": events_json(answer.events)})
            }),
            ("resume", CallState::Waiting(waiting)) => {
                let answer = resume(&self.policy, waiting, &signals);
                let decision = match answer.decision {
                    Resumed::Stop(reason) => stop_json(reason),
                    Resumed::Sleep(sleep) => self.sleep(sleep, step),
                    Resumed::Go(go) => {
                        self.state = CallState::InFlight(through_bytes(go.call));
                        self.limit = go.limit;
                        json!({"kind": "go", "by": name(go.by), "limit": limit_json(&go.limit)})
                    }
                };
                json!({"decision": decision, "events": events_json(answer.events)})
            }
            ("interrupt", CallState::InFlight(call)) => {
                let flag = |name: &str| step[name].as_bool().expect("a flag");
                let (sent_nothing, untouched) = (flag("sent_nothing"), flag("body_untouched"));
                let answer = interrupt(
                    &self.policy,
                    call,
                    &self.noted,
                    &signals,
                    &Evidence {
                        sent_nothing,
                        body_untouched: untouched,
                        ..Evidence::NONE
                    },
                );
                let decision = match answer.decision {
                    Interruption::Keep { call, ask_at } => {
                        self.state = CallState::InFlight(through_bytes(call));
                        json!({"kind": "keep", "ask_at": ask_at.map(Instant::as_nanos)})
                    }
                    Interruption::Restart { call, limit } => {
                        self.state = CallState::InFlight(through_bytes(call));
                        self.limit = limit;
                        json!({"kind": "restart", "limit": limit_json(&limit)})
                    }
                };
                json!({"decision": decision, "events": events_json(answer.events)})
            }
            (other, _) => panic!("`{other}` does not fit here"),
        }
    }

    fn sleep(&mut self, sleep: Sleep, step: &Value) -> Value {
        let mut told =
            json!({"kind": "sleep", "ask_at": sleep.ask_at.as_nanos(), "why": name(sleep.why)});
        if allowed(step).is_some() {
            told["costs_token"] = json!(sleep.costs_token);
        }
        self.state = CallState::Waiting(through_bytes(sleep.waiting));
        told
    }
}

/// What the aggregates let the step's call do, if it says so.
fn allowed(step: &Value) -> Option<Allowed> {
    let allowed = step.get("allowed")?;
    let flag = |name: &str| allowed[name].as_bool().expect("a flag");
    Some(Allowed {
        budget: flag("budget"),
        breaker: flag("breaker"),
    })
}

/// A state that was written down and read again: a plain value, the same as before.
fn through_bytes<T>(state: T) -> T
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let read = named(&name(&state));
    assert_eq!(state, read);
    read
}

fn stop_json(reason: Reason) -> Value {
    match reason_name(Some(reason)) {
        (why, None) => json!({"kind": "stop", "why": why}),
        (why, Some(ms)) => json!({"kind": "stop", "why": why, "ms": ms}),
    }
}

/// One event of the platform; `edge` says whether the epoch grew.
pub(crate) fn play_hub(hub: &mut Hub, step: &Value) -> Value {
    let now = instant(&step["now"]);
    let before = hub.snapshot();
    let handle = || number(&step["handle"]);
    let flag = |name: &str| step[name].as_bool().expect("a flag");
    let after = match step["event"].as_str().expect("an event") {
        "none_at_start" => hub.none_at_start(now),
        "available" => hub.available(
            now,
            Network {
                handle: handle(),
                blocked: flag("blocked"),
                suspended: flag("suspended"),
                validated: flag("validated"),
            },
        ),
        "capabilities" => hub.capabilities(now, handle(), flag("suspended"), flag("validated")),
        "blocked" => hub.blocked(now, handle(), flag("blocked")),
        "lost" => hub.lost(now, handle()),
        "failed" => hub.failed(now),
        "restored" => hub.restored(now),
        "deliberate" => hub.deliberate(now, flag("on")),
        other => panic!("no hub event {other}"),
    };
    assert_eq!(after, hub.snapshot(), "what an event answers is what is");
    json!({"edge": after.epoch != before.epoch, "network": snapshot_json(&after)})
}

/// The draws a scenario lists, checked one by one: word, bounds and value.
struct Draws {
    seed: u64,
    listed: Vec<Value>,
    failures: u32,
    n: u32,
    previous: Option<Duration>,
    differences: Vec<String>,
}

impl Draws {
    fn new(seed: u64, listed: &Value) -> Draws {
        Draws {
            seed,
            listed: list(listed).to_vec(),
            failures: 0,
            n: 0,
            previous: None,
            differences: Vec::new(),
        }
    }

    /// Follows a failure's draw from the public functions alone, and takes its entry off the list.
    fn decided(&mut self, policy: &RetryPolicy, outcome: &Outcome<'_>, answer: &Step<Decision>) {
        let mut counted = false;
        let mut told = None;
        for event in answer.events.iter() {
            match event {
                Event::AttemptFailed { counted: yes, .. } => counted = *yes,
                Event::WaitPlanned(wait) => told = Some(wait.window),
                _ => {}
            }
        }
        let entry = self.take("wait", self.failures);
        if told.is_none() && entry.is_none() && !self.lists("spread", self.failures) {
            return; // stopped before any draw
        }
        let window = match policy.overload() {
            Some(overload) if matches!(outcome.what, What::Status(429 | 503)) => overload,
            _ => policy.window(),
        };
        let bounds = bounds(policy.jitter(), &window, self.n, self.previous);
        let word = word(self.seed, self.failures, Purpose::Wait);
        let value = uniform(word, nanos(bounds.low), nanos(bounds.high));
        let got = (bounds.low != bounds.high).then(|| {
            json!({"purpose": "wait", "failure": self.failures, "low": nanos(bounds.low), "high": nanos(bounds.high),
                   "word": format!("{word:016x}"), "value": value})
        });
        if got != entry {
            self.differ(entry, got);
        }
        if told.is_some_and(|told| told != bounds.window) {
            self.differences
                .push(format!("the event's window is {told:?}, not {bounds:?}"));
        }
        self.previous = Some(Duration::from_nanos(value.try_into().expect("a length")));
        self.failures += 1;
        self.n += u32::from(counted);
    }

    fn lists(&self, purpose: &str, failure: u32) -> bool {
        self.listed
            .iter()
            .any(|draw| draw["purpose"] == purpose && draw["failure"] == failure)
    }

    fn take(&mut self, purpose: &str, failure: u32) -> Option<Value> {
        let place = self
            .listed
            .iter()
            .position(|draw| draw["purpose"] == purpose && draw["failure"] == failure)?;
        Some(self.listed.remove(place))
    }

    fn differ(&mut self, expected: Option<Value>, got: Option<Value>) {
        self.differences.push(format!(
            "draw\n  expected {}\n  got      {}",
            expected.unwrap_or_default(),
            got.unwrap_or_default()
        ));
    }

    /// What is left are spreads of failures there were.
    fn rest(&mut self, policy: &RetryPolicy) -> Result<(), String> {
        for failure in 0..self.failures {
            let Some(entry) = self.take("spread", failure) else {
                continue;
            };
            let word = word(self.seed, failure, Purpose::Spread);
            let high = nanos(policy.wake_spread());
            let got = json!({"purpose": "spread", "failure": failure, "low": 0, "high": high,
                             "word": format!("{word:016x}"), "value": uniform(word, 0, high)});
            if got != entry {
                self.differ(Some(entry), Some(got));
            }
        }
        for left in std::mem::take(&mut self.listed) {
            self.differ(Some(left), None);
        }
        match self.differences.first() {
            None => Ok(()),
            Some(first) => Err(first.clone()),
        }
    }
}
