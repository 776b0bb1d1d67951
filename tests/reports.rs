//! A call's events folded into its report, against `vectors/reports.json`.

mod support;

use comeback::{Event, Report};
use serde_json::{Value, json};
use support::*;

/// A report in the words of the vectors. Waits and resumes are told like the events they came from, without their name.
fn report_json(report: &Report) -> Value {
    let unnamed = |event: Event| {
        let mut fields = object(&event_json(&event)).clone();
        fields.remove("event");
        Value::Object(fields)
    };
    let attempts: Vec<Value> = report
        .attempts
        .iter()
        .map(|attempt| {
            let waits = attempt.waits.iter().copied();
            let waits = waits.map(|wait| unnamed(Event::WaitPlanned(wait)));
            let resumed = attempt.resumed.map(Event::Resumed).map(unnamed);
            json!({
                "class": name(attempt.class),
                "what": what_text(attempt.what),
                "counted": attempt.counted,
                "waits": waits.collect::<Vec<_>>(),
                "resumed": resumed,
            })
        })
        .collect();
    let end = report.end.map(Event::Final).map(unnamed);
    json!({"attempts": attempts, "abandoned": report.abandoned, "final": end})
}

fn folded(events: &Value) -> Report {
    let mut report = Report::default();
    for told in list(events) {
        report.hear(&event(told));
    }
    report
}

#[test]
fn a_report_is_the_fold_of_a_calls_events() {
    each("reports.json", "cases", |case| {
        same(&case["report"], &report_json(&folded(&case["events"])))
    });
}

#[test]
fn a_report_is_one_line_for_a_log_as_kotlin_s() {
    each("reports.json", "cases", |case| {
        same(&case["text"], &json!(folded(&case["events"]).to_string()))
    });
}

#[test]
fn nothing_is_heard_after_the_final_event() {
    each("reports.json", "cases", |case| {
        let mut report = folded(&case["events"]);
        if report.end.is_none() {
            return Ok(());
        }
        let before = report.clone();
        for late in list(&case["events"]) {
            report.hear(&event(late));
        }
        same(before, report)
    });
}
