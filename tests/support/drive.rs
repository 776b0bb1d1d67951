//! A driver and a network made of bytes: whatever they say, what the core promises must hold. The property tests and the fuzz target
//! `call` share it, so it uses nothing but the crate.
//!
//! Where it can, it computes what it checks with wider integers and from what it saw itself, not from the call's state.

use std::time::Duration;

use comeback::*;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;
const ASK_WITHIN: i64 = 30 * SECOND;
const BEFORE_DEADLINE: i128 = 100 * MS as i128;

/// Reads choices off a byte string; an exhausted one chooses the first of everything.
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.byte()) % of.len()]
    }
}

pub(crate) fn policy(choices: &mut Choices<'_>) -> RetryPolicy {
    let ms = Duration::from_millis;
    let base = choices.one(&[1_000, 1, 20, 8_000, 86_400_000, 300]);
    let cap = choices.one(&[8_000, 500, 60_000, 86_400_000, 1]).max(base);
    let mut builder = RetryPolicy::builder()
        .max_attempts(choices.one(&[4, 1, 2, 3, 100]))
        .max_elapsed(ms(
            choices.one(&[20_000, 100, 101, 1_000, 600_000, 86_400_000])
        ))
        .cut_at_deadline(choices.flag())
        .attempt_timeout(
            choices
                .one(&[None, Some(100), Some(5_000), Some(86_400_000)])
                .map(ms),
        )
        .base(ms(base))
        .cap(ms(cap))
        .factor(choices.one(&[2.0, 1.0, 1.001, 3.333, 10.0]))
        .jitter(choices.one(&[
            Jitter::Full,
            Jitter::Equal,
            Jitter::Decorrelated,
            Jitter::None,
        ]))
        .repeat(choices.one(&[Repeat::Auto, Repeat::Always, Repeat::Never]))
        .wake(choices.one(&[Wake::Any, Wake::Transport, Wake::None]))
        .wake_spread(ms(choices.one(&[0, 1, 700, 3_000, 86_400_000]).min(cap)))
        .offline(choices.one(&[Offline::Auto, Offline::Park, Offline::FailFast]))
        .offline_probe(
            choices
                .one(&[Some(10_000), None, Some(1_000), Some(86_400_000)])
                .map(ms),
        );
    if choices.flag() {
        builder = builder.overload(ms(2_000), 3.0, ms(30_000));
    }
    if choices.flag() {
        builder = builder.should_retry_header("x-should-retry");
    }
    builder.build().expect("every choice is valid")
}

pub(crate) fn request(choices: &mut Choices<'_>) -> RequestFacts {
    let methods = [
        Method::Get,
        Method::Post,
        Method::Put,
        Method::Delete,
        Method::Patch,
        Method::Other,
    ];
    RequestFacts {
        method: choices.one(&methods),
        has_key: choices.flag(),
        conditional: choices.flag(),
        has_body: choices.flag(),
        body_replayable: !choices.flag(),
        only_if_cached: choices.flag(),
    }
}

const LINES: [&[&str]; 9] = [
    &[],
    &["2"],
    &["0"],
    &["1.2345", "soon"],
    &["86400"],
    &["99999999999999999999"],
    &["Sun, 06 Nov 1994 08:49:40 GMT"],
    &["9223372036"],
    &["0.001"],
];

pub(crate) fn outcome(choices: &mut Choices<'_>) -> Outcome<'static> {
    let mut outcome = match choices.byte() % 3 {
        0 => {
            Outcome::failure(FailureKind::ALL[usize::from(choices.byte()) % FailureKind::ALL.len()])
        }
        1 => Outcome::response(choices.one(&[503, 429, 500, 408, 409, 504, 200, 404])),
        _ => Outcome::failure(choices.one(&[
            FailureKind::Dns,
            FailureKind::Reset,
            FailureKind::ConnectRefused,
        ])),
    };
    outcome.retry_after = choices.one(&LINES);
    outcome.date = choices.one(&[None, Some("Sun Nov  6 08:49:37 1994"), Some("junk")]);
    outcome.should_retry = choices.one(&[None, Some("true"), Some("false")]);
    let look_ups = [
        Duration::ZERO,
        Duration::from_secs(2),
        Duration::from_secs(10),
        Duration::MAX,
    ];
    outcome.look_up = choices.one(&look_ups);
    outcome.evidence.body_untouched = choices.flag();
    outcome.evidence.body_spent = choices.one(&[false, false, false, true]);
    outcome.overrule = choices.one(&[
        None,
        None,
        None,
        Some(OutcomeClass::Success),
        Some(OutcomeClass::TransientStatus),
        Some(OutcomeClass::PermanentStatus),
        Some(OutcomeClass::NeverSent),
        Some(OutcomeClass::InDoubt),
        Some(OutcomeClass::PermanentFailure),
    ]);
    outcome
}

/// One event of the platform.
fn network(choices: &mut Choices<'_>, hub: &mut Hub, now: Instant) {
    let before = hub.snapshot();
    let handle = i64::from(choices.byte() % 3);
    let after = match choices.byte() % 8 {
        0 | 1 => hub.available(
            now,
            Network {
                handle,
                blocked: choices.byte() % 4 == 1,
                suspended: choices.byte() % 4 == 1,
                validated: choices.flag(),
            },
        ),
        2 => hub.lost(now, handle),
        3 => hub.capabilities(now, handle, choices.flag(), choices.flag()),
        4 => hub.blocked(now, handle, choices.flag()),
        5 => hub.none_at_start(now),
        6 => hub.failed(now),
        _ => hub.restored(now),
    };
    assert_eq!(after, hub.snapshot());
    assert!(after.epoch - before.epoch <= 1, "one event, one edge");
    assert!(
        after.path - before.path <= after.epoch - before.epoch,
        "path grows with an edge only"
    );
    if after.epoch > before.epoch {
        assert!(
            !after.is_absent(),
            "an edge never leaves the state offline or blocked"
        );
    }
    if after.state == before.state || before.is_absent() && after.is_absent() {
        assert_eq!(after.since, before.since, "one loss is as old as it is");
    }
}

/// What the driver knows of its call.
struct Driver {
    policy: RetryPolicy,
    request: RequestFacts,
    began: i64,
    client_end: Option<i64>,
    /// The latest time the core was asked at.
    seen: i64,
    noted: Snapshot,
    /// Attempts whose headers went out.
    sent: u32,
    /// Attempts that were told as counted.
    counted: u32,
    failed_at: i64,
    floor: i64,
    last_woken: Option<i64>,
    /// The epoch at which the latest wait was planned.
    planned_epoch: u64,
    report: Report,
}

enum CallState {
    InFlight(Call),
    Waiting(Sleep),
}

/// Plays a whole call. Panics if the core breaks a promise.
pub(crate) fn drive(bytes: &[u8]) {
    let choices = &mut Choices(bytes);
    let policy = policy(choices);
    let request = request(choices);
    let seed = choices.word();
    let began = match choices.byte() % 5 {
        0 | 1 => 0,
        2 => choices.word() as i64,
        3 => i64::MAX - 30 * SECOND,
        _ => i64::MIN,
    };
    let client_end = match choices.byte() % 6 {
        0..=3 => None,
        4 => Some(began.saturating_add(10 * SECOND)),
        _ => Some(choices.word() as i64),
    };
    let mut hub = Hub::new();
    let mut now = began;
    let call = Call::begin(
        request,
        seed,
        Instant::from_nanos(began),
        client_end.map(Instant::from_nanos),
    );
    let mut driver = Driver {
        policy,
        request,
        began,
        client_end,
        seen: began,
        noted: hub.snapshot(),
        sent: 0,
        counted: 0,
        failed_at: began,
        floor: 0,
        last_woken: None,
        planned_epoch: 0,
        report: Report::default(),
    };
    assert_eq!(first_limit(&driver.policy, &call).inactivity, None);
    let mut state = CallState::InFlight(call);
    while !choices.0.is_empty() {
        match choices.byte() % 4 {
            0 => network(choices, &mut hub, Instant::from_nanos(now)),
            1 => now = later(choices, now, &state),
            _ => {
                let signals = Signals {
                    now: Instant::from_nanos(now),
                    network: hub.snapshot(),
                    wall_ms: choices.one(&[
                        None,
                        Some(784_111_777_000),
                        Some(i64::MIN),
                        Some(i64::MAX),
                    ]),
                    allowed: Allowed::ALL,
                };
                let next = match state {
                    CallState::InFlight(call) if choices.flag() => {
                        driver.interrupted(choices, call, &signals)
                    }
                    CallState::InFlight(call) => driver.came_back(choices, call, &signals),
                    CallState::Waiting(sleep) => driver.asked(sleep, &signals),
                };
                match next {
                    Some(next) => state = next,
                    None => return,
                }
            }
        }
    }
}

fn later(choices: &mut Choices<'_>, now: i64, state: &CallState) -> i64 {
    let ask_at = match state {
        CallState::Waiting(sleep) => sleep.ask_at.as_nanos(),
        CallState::InFlight(_) => now,
    };
    let steps = [
        1,
        MS,
        99 * MS,
        700 * MS,
        SECOND,
        2 * SECOND,
        12 * SECOND,
        121 * SECOND,
        7_200 * SECOND,
    ];
    match choices.byte() % 6 {
        0 | 1 => ask_at,
        2 => ask_at.saturating_sub(1),
        3 => now.saturating_add(choices.one(&steps)),
        4 => now.saturating_sub(choices.one(&steps)),
        _ => ask_at.saturating_add(choices.one(&steps)),
    }
}

impl Driver {
    fn deadline(&self) -> i128 {
        let own = i128::from(self.began)
            + i128::try_from(self.policy.max_elapsed().as_nanos()).expect("fits");
        let own = own.min(i64::MAX.into());
        self.client_end.map_or(own, |end| own.min(end.into()))
    }

    fn last_start(&self) -> i128 {
        (self.deadline() - BEFORE_DEADLINE).max(i64::MIN.into())
    }

    fn see(&mut self, signals: &Signals) {
        self.seen = self.seen.max(signals.now.as_nanos());
    }

    /// The same question at the latest instant seen: inside a call time never runs backwards.
    fn forward(&self, signals: &Signals) -> Signals {
        Signals {
            now: Instant::from_nanos(self.seen),
            ..*signals
        }
    }

    fn came_back(
        &mut self,
        choices: &mut Choices<'_>,
        call: Call,
        signals: &Signals,
    ) -> Option<CallState> {
        let outcome = outcome(choices);
        self.see(signals);
        let noted = self.noted;
        let ask = |signals: &Signals| decide(&self.policy, call.clone(), &noted, &outcome, signals);
        let step = ask(signals);
        assert_eq!(step, ask(signals), "same arguments, same decision");
        assert_eq!(
            step,
            ask(&self.forward(signals)),
            "time never runs backwards"
        );

        let class = classify(&self.policy, &self.request, &outcome);
        if class != OutcomeClass::NeverSent {
            self.sent += 1;
        }
        self.failed_at = self.seen;
        self.counted += u32::from(step.decision == Decision::Deliver);
        let events = step.events;
        self.hear(events);
        match step.decision {
            Decision::Deliver => {
                assert!(matches!(
                    class,
                    OutcomeClass::Success | OutcomeClass::PermanentStatus
                ));
                self.ended(None)
            }
            Decision::Stop(reason) => self.ended(Some(reason)),
            Decision::Sleep(sleep) => {
                let may =
                    class == OutcomeClass::NeverSent || may_repeat(&self.policy, &self.request);
                assert!(may, "what must not be repeated never is");
                assert!(self.request.body_replayable || outcome.evidence.body_untouched);
                assert!(!outcome.evidence.body_spent);
                self.slept(&sleep, events, signals);
                Some(CallState::Waiting(sleep))
            }
        }
    }

    fn asked(&mut self, before: Sleep, signals: &Signals) -> Option<CallState> {
        self.see(signals);
        let ask =
            |waiting: &Waiting, signals: &Signals| resume(&self.policy, waiting.clone(), signals);
        let step = ask(&before.waiting, signals);
        assert_eq!(
            step,
            ask(&before.waiting, signals),
            "same arguments, same decision"
        );
        let forward = self.forward(signals);
        assert_eq!(
            step,
            ask(&before.waiting, &forward),
            "time never runs backwards"
        );
        self.without_the_edge(&before, &forward, &step);
        if let Resumed::Sleep(after) = &step.decision {
            self.again(&before, after, &forward, &step);
        }

        let planned = self
            .report
            .attempts
            .last()
            .and_then(|attempt| attempt.waits.last().copied());
        let events = step.events;
        self.hear(events);
        match step.decision {
            Resumed::Stop(reason) => self.ended(Some(reason)),
            Resumed::Sleep(sleep) => {
                self.slept(&sleep, events, signals);
                assert!(
                    sleep.ask_at.as_nanos() > self.seen,
                    "what has come is not slept for"
                );
                Some(CallState::Waiting(sleep))
            }
            Resumed::Go(go) => {
                assert!(
                    self.seen >= self.failed_at.saturating_add(self.floor),
                    "a start before its floor"
                );
                let resumed = self
                    .report
                    .attempts
                    .last()
                    .and_then(|attempt| attempt.resumed)
                    .expect("told");
                assert_eq!(resumed.by, go.by);
                assert_eq!(
                    Some(resumed.planned),
                    planned.map(|planned| planned.planned)
                );
                assert_eq!(resumed.effective.as_nanos(), self.since_failure());
                if go.by == WokenBy::Edge {
                    if let Some(last) = self.last_woken {
                        let distance = i128::from(self.seen) - i128::from(last);
                        assert!(
                            distance >= SECOND.into() || self.seen == i64::MAX,
                            "two woken starts within a second"
                        );
                    }
                    self.last_woken = Some(self.seen);
                }
                // A park that an edge ended goes on to the floor, and says so.
                let was_parked = planned.is_some_and(|wait| wait.why == WaitReason::Offline);
                if before.why == WaitReason::Server && !was_parked {
                    assert_eq!(
                        go.by,
                        WokenBy::Timer,
                        "a server's floor is not touched by an edge"
                    );
                }
                self.started(go.limit, signals);
                self.in_flight(go.call)
            }
        }
    }

    fn interrupted(
        &mut self,
        choices: &mut Choices<'_>,
        call: Call,
        signals: &Signals,
    ) -> Option<CallState> {
        self.see(signals);
        let (sent_nothing, untouched) = (choices.flag(), choices.flag());
        let noted = self.noted;
        let ask = |signals: &Signals| {
            interrupt(
                &self.policy,
                call.clone(),
                &noted,
                signals,
                &Evidence {
                    sent_nothing,
                    body_untouched: untouched,
                    ..Evidence::NONE
                },
            )
        };
        let step = ask(signals);
        assert_eq!(step, ask(signals), "same arguments, same decision");
        assert_eq!(
            step,
            ask(&self.forward(signals)),
            "time never runs backwards"
        );
        self.hear(step.events);
        match step.decision {
            Interruption::Keep { call, ask_at } => {
                if let Some(ask_at) = ask_at {
                    assert!(
                        ask_at.as_nanos() > self.seen
                            && i128::from(ask_at.as_nanos()) <= self.last_start()
                    );
                }
                self.in_flight(call)
            }
            Interruption::Restart { call, limit } => {
                assert!(signals.network.path > self.noted.path && !signals.network.is_absent());
                if !sent_nothing {
                    assert!(may_repeat(&self.policy, &self.request) && !self.request.has_body);
                    self.sent += 1;
                    self.counted += 1;
                }
                assert!(self.request.body_replayable || untouched || !sent_nothing);
                self.last_woken = Some(self.seen);
                self.started(limit, signals);
                self.in_flight(call)
            }
        }
    }

    /// An edge never makes a wait longer, and never touches a server's.
    fn without_the_edge(&self, before: &Sleep, signals: &Signals, step: &Step<Resumed>) {
        if before.why == WaitReason::Offline || signals.network.is_absent() {
            return;
        }
        let calm = Signals {
            network: Snapshot {
                epoch: self.noted.epoch,
                ..signals.network
            },
            ..*signals
        };
        let without = resume(&self.policy, before.waiting.clone(), &calm);
        match (&step.decision, &without.decision) {
            (Resumed::Sleep(with), Resumed::Sleep(without)) => {
                assert!(with.ask_at <= without.ask_at)
            }
            (Resumed::Sleep(_), Resumed::Go(_)) => panic!("an edge made a wait longer"),
            (Resumed::Stop(_), without) => assert!(matches!(without, Resumed::Stop(_))),
            _ => {}
        }
        if before.why == WaitReason::Server {
            assert_eq!(step, &without, "an edge touched a server's wait");
        }
    }

    /// Having asked before makes no difference to what is answered later, unless it saw an edge or began a park.
    fn again(&self, before: &Sleep, after: &Sleep, signals: &Signals, step: &Step<Resumed>) {
        let saw_nothing = step.events.iter().next().is_none()
            && if before.why == WaitReason::Offline {
                signals.network.is_absent()
            } else {
                signals.network.epoch == self.noted.epoch
            };
        if !saw_nothing {
            return;
        }
        for later in [0, 1, SECOND, ASK_WITHIN] {
            let later = Signals {
                now: Instant::from_nanos(after.ask_at.as_nanos().saturating_add(later)),
                ..*signals
            };
            assert_eq!(
                resume(&self.policy, before.waiting.clone(), &later),
                resume(&self.policy, after.waiting.clone(), &later),
                "asking early or twice is harmless"
            );
        }
    }

    fn since_failure(&self) -> u128 {
        let length = i128::from(self.seen) - i128::from(self.failed_at);
        length.clamp(0, i64::MAX.into()).unsigned_abs()
    }

    fn hear(&mut self, events: Events) {
        for event in events {
            assert!(self.report.end.is_none(), "an event after the final one");
            if let Event::WaitPlanned(PlannedWait {
                planned,
                window,
                floor,
                why,
                ..
            }) = event
            {
                let cap = self
                    .policy
                    .overload()
                    .map_or(Duration::ZERO, |overload| overload.cap());
                assert!(
                    window <= self.policy.window().cap().max(cap),
                    "a window above the cap"
                );
                self.floor = i64::try_from(floor.as_nanos()).expect("fits");
                if why != WaitReason::Offline {
                    assert!(
                        floor <= planned
                            && planned
                                <= floor
                                    + window
                                        .max(self.policy.wake_spread() + Duration::from_secs(1))
                    );
                    if matches!(why, WaitReason::Backoff | WaitReason::Server) {
                        assert!(planned <= floor + window, "a wait above its window");
                    }
                }
            }
            if let Event::AttemptFailed { counted, .. } = event {
                self.counted += u32::from(counted);
            }
            self.report.hear(&event);
        }
    }

    fn slept(&mut self, sleep: &Sleep, events: Events, signals: &Signals) {
        assert!(self.report.end.is_none(), "a call that ended sleeps");
        let ask_at = sleep.ask_at.as_nanos();
        assert!(ask_at >= self.seen);
        assert!(
            ask_at <= self.seen.saturating_add(ASK_WITHIN),
            "asked later than in 30 s"
        );
        if events
            .iter()
            .any(|event| matches!(event, Event::WaitPlanned { .. }))
        {
            self.planned_epoch = signals.network.epoch;
        } else if self.planned_epoch == signals.network.epoch {
            let attempt = self.report.attempts.last().expect("it failed");
            let planned = attempt.waits.last().expect("it was told").planned;
            let planned = i64::try_from(planned.as_nanos()).expect("fits");
            assert!(
                ask_at <= self.failed_at.saturating_add(planned),
                "asking again made the wait longer"
            );
        }
    }

    fn started(&mut self, limit: Limit, signals: &Signals) {
        assert!(
            i128::from(self.seen) <= self.last_start(),
            "a start after the last start"
        );
        let left = self.deadline() - i128::from(self.seen);
        let left =
            Duration::from_nanos(u64::try_from(left.clamp(0, i64::MAX.into())).expect("clamped"));
        assert_eq!(limit.inactivity, Some(left.max(Duration::from_secs(2))));
        let cut = self.policy.cut_at_deadline().then_some(left);
        assert_eq!(
            limit.hard,
            self.policy.attempt_timeout().into_iter().chain(cut).min()
        );
        assert!(
            self.sent < self.policy.max_attempts(),
            "another attempt although all have gone out"
        );
        self.noted = signals.network;
    }

    fn in_flight(&self, call: Call) -> Option<CallState> {
        assert_eq!(call.counted(), self.counted);
        assert_eq!(call.began().as_nanos(), self.began);
        Some(CallState::InFlight(call))
    }

    fn ended(&self, reason: Option<Reason>) -> Option<CallState> {
        let end = self.report.end.expect("a final event");
        assert_eq!(end.reason, reason);
        let elapsed = i128::from(self.seen) - i128::from(self.began);
        assert_eq!(
            end.elapsed.as_nanos(),
            elapsed.clamp(0, i64::MAX.into()).unsigned_abs()
        );
        assert!(
            self.sent <= self.policy.max_attempts(),
            "more sends than attempts"
        );
        assert_eq!(end.counted, self.counted);
        assert!(self.counted <= self.policy.max_attempts());
        assert!(self.sent <= self.counted, "a send that was not counted");
        None
    }
}
