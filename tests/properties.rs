//! What holds for every input: no panic, and the promises of the design, checked with wider integers and by counterfactual questions.

mod support;

use std::time::Duration;

use comeback::draw::{Purpose, uniform, window_at, word};
use comeback::*;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use support::drive;

/// SplitMix64 as it was published: stepped, not indexed.
fn stepped(seed: u64, index: u32) -> u64 {
    let mut state = u128::from(seed);
    let low = (1_u128 << 64) - 1;
    for _ in 0..=index {
        state = (state + 0x9E37_79B9_7F4A_7C15) & low;
    }
    let mut word = state;
    word = ((word ^ (word >> 30)) * 0xBF58_476D_1CE4_E5B9) & low;
    word = ((word ^ (word >> 27)) * 0x94D0_49BB_1331_11EB) & low;
    (word ^ (word >> 31)) as u64
}

/// The window by 128-bit integers, without a shortcut.
fn wide_window(base: u64, thousandths: u32, cap: u64, n: u32) -> i128 {
    let (mut width, cap) = (i128::from(base) * 1_000_000, i128::from(cap) * 1_000_000);
    for _ in 0..n {
        width = (width * i128::from(thousandths) / 1_000).min(cap);
    }
    width
}

/// U[low, high] by long division of word·(high − low + 1) by 2⁶⁴, bit by bit.
fn wide_uniform(word: u64, low: i128, high: i128) -> i128 {
    let mut scaled = 0_i128;
    let steps = high - low + 1;
    for bit in 0..64 {
        if word >> bit & 1 == 1 {
            scaled += steps << bit;
        }
    }
    low + scaled.div_euclid(1 << 64)
}

fn window() -> impl Strategy<Value = (u64, u32, u64)> {
    let length = prop_oneof![1..=100_u64, 1..=86_400_000_u64, Just(86_400_000)];
    (
        length.clone(),
        prop_oneof![1_000..=10_000_u32, Just(1_000)],
        length,
    )
        .prop_map(|(one, factor, other)| (one.min(other), factor, one.max(other)))
}

fn jitter() -> impl Strategy<Value = Jitter> {
    select(vec![
        Jitter::Full,
        Jitter::Equal,
        Jitter::Decorrelated,
        Jitter::None,
    ])
}

fn built(base: u64, thousandths: u32, cap: u64) -> PolicyBuilder {
    RetryPolicy::builder()
        .base(Duration::from_millis(base))
        .factor(f64::from(thousandths) / 1_000.0)
        .cap(Duration::from_millis(cap))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn windows_equal_those_of_wide_integers((base, factor, cap) in window(), n in 0..300_u32) {
        let window = built(base, factor, cap).build().unwrap().window();
        let expected = wide_window(base, factor, cap, n);
        prop_assert_eq!(window_at(&window, n).as_nanos(), expected.unsigned_abs());
        prop_assert!(window_at(&window, u32::MAX) <= window.cap());
    }

    #[test]
    fn words_equal_the_published_generators(seed: u64, failure in 0..2_000_u32) {
        prop_assert_eq!(word(seed, failure, Purpose::Wait), stepped(seed, 2 * failure));
        prop_assert_eq!(word(seed, failure, Purpose::Spread), stepped(seed, 2 * failure + 1));
    }

    #[test]
    fn a_draw_equals_that_of_wide_integers_and_stays_between_its_ends(word: u64, one: i64, other: i64) {
        let (low, high) = (one.min(other), one.max(other));
        let drawn = uniform(word, low, high);
        prop_assert!((low..=high).contains(&drawn));
        if high.checked_sub(low).is_some() {
            prop_assert_eq!(i128::from(drawn), wide_uniform(word, low.into(), high.into()));
        }
    }

    #[test]
    fn a_calls_waits_equal_those_of_wide_integers(
        (base, factor, cap) in window(),
        jitter in jitter(),
        seed: u64,
        attempts in 1..=100_u32,
    ) {
        let policy = built(base, factor, cap).jitter(jitter).max_attempts(attempts).build().unwrap();
        let waits: Vec<i128> = policy.waits(seed).map(|wait| wait.as_nanos().try_into().unwrap()).collect();
        prop_assert_eq!(waits.len(), (attempts - 1) as usize);
        let (base_ns, cap_ns) = (i128::from(base) * 1_000_000, i128::from(cap) * 1_000_000);
        let mut previous = base_ns;
        for (failure, wait) in (0_u32..).zip(waits) {
            let width = wide_window(base, factor, cap, failure);
            let (low, high) = match jitter {
                Jitter::Full => (0, width),
                Jitter::Equal => (width / 2, width),
                Jitter::Decorrelated => (base_ns, (3 * previous).min(cap_ns).max(base_ns)),
                Jitter::None => (width, width),
            };
            prop_assert_eq!(wait, wide_uniform(stepped(seed, 2 * failure), low, high));
            prop_assert!(wait <= cap_ns);
            previous = wait;
        }
    }

    #[test]
    fn a_call_waits_as_its_policys_iterator_says(jitter in jitter(), seed: u64, status in select(vec![408, 500, 502, 503])) {
        let policy = RetryPolicy::builder()
            .jitter(jitter)
            .max_attempts(8)
            .max_elapsed(Duration::from_secs(3_600))
            .build()
            .unwrap();
        let mut call = Call::begin(RequestFacts::new(Method::Get), seed, Instant::from_nanos(0), None);
        let mut now = Instant::from_nanos(0);
        let mut signals = Signals { now, network: Snapshot::UNKNOWN, wall_ms: None, allowed: Allowed::ALL };
        for wait in policy.waits(seed) {
            let step = decide(&policy, call, &Snapshot::UNKNOWN, &Outcome::response(status), &signals);
            let Decision::Sleep(mut sleep) = step.decision else { panic!("{step:?}") };
            now = now.saturating_add(wait);
            call = loop {
                signals.now = sleep.ask_at;
                prop_assert!(signals.now <= now);
                match resume(&policy, sleep.waiting, &signals).decision {
                    Resumed::Go(go) => break go.call,
                    Resumed::Sleep(on) => sleep = on,
                    Resumed::Stop(reason) => panic!("{reason:?}"),
                }
            };
            prop_assert_eq!(signals.now, now);
        }
        let last = decide(&policy, call, &Snapshot::UNKNOWN, &Outcome::response(status), &signals);
        prop_assert_eq!(last.decision, Decision::Stop(Reason::Attempts));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// See `support/drive.rs` for what is checked at every step.
    #[test]
    fn a_driver_that_does_anything_finds_every_promise_kept(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        drive::drive(&bytes);
    }
}

fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    let states = [
        NetworkState::Unknown,
        NetworkState::Offline,
        NetworkState::Blocked,
        NetworkState::Online,
    ];
    (
        select(states.to_vec()),
        any_instant(),
        any::<u64>(),
        any::<u64>(),
    )
        .prop_map(|(state, since, epoch, path)| Snapshot {
            state,
            since,
            epoch,
            path,
        })
}

fn any_instant() -> impl Strategy<Value = Instant> {
    let ends = select(vec![
        i64::MIN,
        i64::MIN + 1,
        -1,
        0,
        1,
        i64::MAX - 1,
        i64::MAX,
    ]);
    prop_oneof![any::<i64>(), ends, 0..1_000_000_000_000_i64].prop_map(Instant::from_nanos)
}

fn any_signals() -> impl Strategy<Value = Signals> {
    (any_instant(), any_snapshot(), any::<Option<i64>>()).prop_map(|(now, network, wall_ms)| {
        Signals {
            now,
            network,
            wall_ms,
            allowed: Allowed::ALL,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_signals_make_a_question_panic(
        choices in prop::collection::vec(any::<u8>(), 60),
        began in any_instant(),
        client_end in prop::option::of(any_instant()),
        seed: u64,
        noted in any_snapshot(),
        signals in prop::collection::vec(any_signals(), 6),
        status: u16,
        line in ".*",
    ) {
        let choices = &mut drive::Choices(&choices);
        let policy = drive::policy(choices);
        let call = Call::begin(drive::request(choices), seed, began, client_end);
        let mut outcome = drive::outcome(choices);
        let lines = [line.as_str()];
        if let What::Status(given) = &mut outcome.what {
            *given = status;
            outcome.retry_after = &lines;
            outcome.date = Some(&line);
        }
        for flags in 0..4 {
            let evidence = Evidence { sent_nothing: flags & 1 == 1, body_untouched: flags & 2 == 2, ..Evidence::NONE };
            interrupt(&policy, call.clone(), &noted, &signals[0], &evidence);
        }
        if let Decision::Sleep(mut sleep) = decide(&policy, call, &noted, &outcome, &signals[0]).decision {
            for signals in &signals[1..] {
                match resume(&policy, sleep.waiting, signals).decision {
                    Resumed::Sleep(on) => sleep = on,
                    Resumed::Go(_) | Resumed::Stop(_) => break,
                }
            }
        }
    }

    #[test]
    fn no_line_makes_retry_after_panic_or_come_out_negative(
        lines in prop::collection::vec(any_line(), 0..4),
        date in prop::option::of(any_line()),
        wall_ms: Option<i64>,
    ) {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let all = retry_after(&lines, date.as_deref(), wall_ms);
        let longest = lines.iter().filter_map(|line| retry_after(&[line], date.as_deref(), wall_ms)).max();
        prop_assert_eq!(all, longest, "the longest valid line");
        prop_assert!(all.is_none_or(|hint| hint.as_nanos() <= i64::MAX as u128));
    }

    #[test]
    fn digits_are_seconds_and_a_fraction_is_rounded_up(whole in 0..9_000_000_000_u64, decimals in "[0-9]{0,30}") {
        let text = if decimals.is_empty() { whole.to_string() } else { format!("{whole}.{decimals}") };
        let padded = format!("{decimals:0<30}");
        let up = padded[3..].bytes().any(|digit| digit != b'0');
        let milliseconds = u128::from(whole) * 1_000 + padded[..3].parse::<u128>().unwrap() + u128::from(up);
        prop_assert_eq!(retry_after(&[&text], None, None).map(|hint| hint.as_nanos()), Some(milliseconds * 1_000_000));
    }

    #[test]
    fn a_date_is_as_far_ahead_as_it_says(ahead in 0..3_000_000_000_i64, from in 0..4_000_000_000_i64) {
        let (said, asked) = (imf_fixdate(from), imf_fixdate(from + ahead));
        let hint = retry_after(&[&asked], Some(&said), Some(0));
        prop_assert_eq!(hint, Some(Duration::from_secs(ahead.unsigned_abs())));
        prop_assert_eq!(retry_after(&[&said], Some(&asked), None), Some(Duration::ZERO));
        prop_assert_eq!(retry_after(&[&asked], None, Some(from * 1_000)), hint);
    }

    #[test]
    fn a_year_of_two_digits_is_the_latest_not_more_than_fifty_years_ahead(
        year in 1970..2200_i64,
        second in prop_oneof![0..3_i64, -3..0_i64, 0..365 * DAY],
        years_ahead in -49..=50_i64,
        days in 0..365_i64,
    ) {
        let now = (new_year(year) + second).max(0);
        let (this_year, ..) = civil(now);
        let asked = (this_year + years_ahead).max(1970);
        let (_, month, day, second) = civil(new_year(asked) + days * DAY + 1);
        let short = format!("Monday, {day:02}-{month}-{:02} {}", asked % 100, clock(second));
        let full = format!("Mon, {day:02} {month} {asked:04} {}", clock(second));
        let hint = |text: &str| retry_after(&[text], None, Some(now * 1_000));
        prop_assert!(hint(&full).is_some());
        prop_assert_eq!(hint(&short), hint(&full));
        // The response's own Date says the same as a clock that is right.
        let said = imf_fixdate(now);
        prop_assert_eq!(retry_after(&[&short], Some(&said), Some(0)), hint(&full));
    }

    #[test]
    fn no_text_makes_policy_json_panic(text in any_policy_text()) {
        let fallback = RetryPolicy::payment();
        let strict = RetryPolicy::from_json(&text);
        let forgiving = RetryPolicy::from_json_or(&text, &fallback);
        match strict {
            Ok(policy) => {
                prop_assert_eq!(&policy, &forgiving.policy);
                prop_assert!(forgiving.problem.is_none() && forgiving.ignored.is_empty());
                let again = RetryPolicy::from_json(&serde_json::to_string(&policy).unwrap());
                prop_assert_eq!(Ok(policy), again);
            }
            Err(error) => {
                prop_assert!(!error.field().is_empty() || text.contains("\"\""));
                prop_assert!(!error.rule().is_empty());
                prop_assert!(forgiving.problem.is_some() || !forgiving.ignored.is_empty());
            }
        }
        if forgiving.problem.is_some() {
            prop_assert_eq!(forgiving.policy, fallback);
        }
    }

    #[test]
    fn a_policy_that_was_accepted_is_within_its_table(text in any_policy_text()) {
        if let Ok(policy) = RetryPolicy::from_json(&text) {
            let day = Duration::from_secs(86_400);
            prop_assert!((1..=100).contains(&policy.max_attempts()));
            prop_assert!((Duration::from_millis(100)..=day).contains(&policy.max_elapsed()));
            for window in [Some(policy.window()), policy.overload()].into_iter().flatten() {
                prop_assert!(Duration::from_millis(1) <= window.base() && window.base() <= window.cap() && window.cap() <= day);
                prop_assert!((1.0..=10.0).contains(&window.factor()));
            }
            prop_assert!(policy.wake_spread() <= policy.window().cap());
            prop_assert!(policy.retry_statuses().all(|status| (400..=599).contains(&status)));
            policy.schedule().to_string();
            policy.waits(0).for_each(drop);
        }
    }
}

fn any_line() -> impl Strategy<Value = String> {
    let date = (
        any::<u8>(),
        0..40_u8,
        0..10_000_u16,
        0..30_u8,
        0..70_u8,
        0..70_u8,
    )
        .prop_map(|(form, day, year, hour, minute, second)| match form % 3 {
            0 => format!("Sun, {day:02} Nov {year:04} {hour:02}:{minute:02}:{second:02} GMT"),
            1 => format!(
                "Sunday, {day:02}-Nov-{:02} {hour:02}:{minute:02}:{second:02} GMT",
                year % 100
            ),
            _ => format!("Sun Nov {day:2} {hour:02}:{minute:02}:{second:02} {year:04}"),
        });
    prop_oneof![
        ".*",
        "[0-9]{0,40}",
        "[0-9]{0,25}\\.[0-9]{0,25}",
        "[ \t]*[0-9.:,+\\-eGMT ]{0,30}",
        date
    ]
}

/// The civil calendar counted out day by day: year, month, day and the second of that day.
fn civil(unix: i64) -> (i64, &'static str, i64, i64) {
    const MONTHS: [(&str, i64); 12] = [
        ("Jan", 31),
        ("Feb", 28),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    let (mut day, second) = (unix / DAY, unix % DAY);
    let mut year = 1970;
    while day >= days_of(year) {
        day -= days_of(year);
        year += 1;
    }
    for (month, days) in MONTHS {
        let days = days + i64::from(month == "Feb" && days_of(year) == 366);
        if day < days {
            return (year, month, day + 1, second);
        }
        day -= days;
    }
    unreachable!("a year has twelve months");
}

const DAY: i64 = 86_400;

fn days_of(year: i64) -> i64 {
    365 + i64::from(year % 4 == 0 && year % 100 != 0 || year % 400 == 0)
}

fn clock(second: i64) -> String {
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{hour:02}:{minute:02}:{second:02} GMT")
}

fn imf_fixdate(unix: i64) -> String {
    let (year, month, day, second) = civil(unix);
    format!("Thu, {day:02} {month} {year:04} {}", clock(second))
}

/// The first second of a year.
fn new_year(year: i64) -> i64 {
    (1970..year).map(|year| days_of(year) * DAY).sum()
}

/// Policies that are nearly right: known names with values of every kind, and plain noise.
fn any_policy_text() -> impl Strategy<Value = String> {
    let names = [
        "max_attempts",
        "max_elapsed",
        "cut_at_deadline",
        "attempt_timeout",
        "connect_timeout",
        "base",
        "factor",
        "cap",
        "overload",
        "jitter",
        "retry_statuses",
        "repeat",
        "key",
        "client_resends",
        "should_retry_header",
        "wake",
        "wake_spread",
        "offline",
        "offline_probe",
        "header",
        "form",
        "make",
        "unknown",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        (1..20_000_i64).prop_map(Value::from),
        (1..10_000_i64).prop_map(|number| json!(number as f64 / 1_000.0)),
        select(vec![
            "full",
            "equal",
            "auto",
            "never",
            "off",
            "none",
            "any",
            "park",
            "fail_fast",
            "quoted",
            "X-Key",
            ""
        ])
        .prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 24, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(select(names.to_vec()), inner, 0..4)
                .prop_map(|fields| json!(fields)),
        ]
    });
    let object = prop::collection::btree_map(select(names.to_vec()), value.clone(), 0..4)
        .prop_map(|fields| json!(fields));
    prop_oneof![
        4 => object.prop_map(|object| object.to_string()),
        1 => value.prop_map(|value| value.to_string()),
        1 => any::<String>(),
        1 => "[\\[\\]{}\":,0-9a-z_]{0,60}",
    ]
}

proptest! {
    #[test]
    fn no_script_makes_the_hub_panic_or_go_back(events in prop::collection::vec((0..7_u8, any::<i64>(), any_instant(), any::<[bool; 3]>()), 0..60)) {
        let mut hub = Hub::new();
        for (event, handle, now, [blocked, suspended, validated]) in events {
            let handle = handle % 3;
            let before = hub.snapshot();
            let after = match event {
                0 => hub.none_at_start(now),
                1 => hub.available(now, Network { handle, blocked, suspended, validated }),
                2 => hub.capabilities(now, handle, suspended, validated),
                3 => hub.blocked(now, handle, blocked),
                4 => hub.lost(now, handle),
                5 => hub.failed(now),
                _ => hub.restored(now),
            };
            prop_assert!(after.epoch >= before.epoch && after.path >= before.path, "both only grow");
            prop_assert!(after.path - before.path <= after.epoch - before.epoch && after.epoch - before.epoch <= 1);
            prop_assert!(after.epoch == before.epoch || !after.is_absent(), "an edge never leaves the state offline or blocked");
        }
    }
}
