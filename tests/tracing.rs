//! What `tracing` hears of calls, by the names OpenTelemetry gives them.

#![allow(clippy::unwrap_used)] // a test says no by panicking

use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use comeback::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber, subscriber};

/// Writes down what it hears, one line each.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>, Arc<AtomicU64>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Heard {
    fn line(&self, what: String, record: impl FnOnce(&mut Fields)) {
        let mut fields = Fields(what);
        record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "comeback"
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.1.fetch_add(1, Ordering::Relaxed) + 1;
        let name = attributes.metadata().name();
        self.line(format!("span {id} {name}"), |fields| {
            attributes.record(fields)
        });
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.line(format!("span {} has", span.into_u64()), |fields| {
            values.record(fields)
        });
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        self.line(event.metadata().level().to_string(), |fields| {
            event.record(fields)
        });
    }

    fn enter(&self, span: &Id) {
        self.line(format!("into {}", span.into_u64()), |_| ());
    }

    fn exit(&self, _span: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn attempts_are_spans_and_what_happens_to_a_call_are_events() {
    let heard = Heard::default();
    let _guard = subscriber::set_default(heard.clone());
    let policy = RetryPolicy::builder()
        .jitter(Jitter::None)
        .max_attempts(2)
        .build()
        .unwrap();
    let call = || async { Err::<(), _>("secret") };
    let error = call
        .retry(&policy)
        .connectivity(&Connectivity::with_clock(TokioClock::new()))
        .classify(|_| Verdict::overloaded(Duration::from_secs(2)))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Reason::Attempts);

    let lines = heard.0.lock().unwrap().clone();
    let said = |part: &str| lines.iter().any(|line| line.contains(part));
    assert!(said("span 1 attempt"), "{lines:#?}");
    assert!(said("span 1 has error.type=\"503\""), "{lines:#?}");
    assert!(
        !said("span 1 has http.request.resend_count"),
        "not of the first"
    );
    assert!(said("span 2 has http.request.resend_count=1"), "{lines:#?}");
    assert!(
        said("planned_ms=3000 window_ms=1000 floor_ms=2000 why=Server"),
        "{lines:#?}"
    );
    assert!(said("INFO message=stopped"), "{lines:#?}");
    assert!(
        said("attempts=2 elapsed_ms=3000 reason=Attempts"),
        "{lines:#?}"
    );
    assert!(!said("secret"), "no error's own text");
}

#[cfg(feature = "reqwest")]
#[tokio::test]
async fn an_http_attempt_is_a_client_span_without_its_address() {
    let heard = Heard::default();
    let _guard = subscriber::set_default(heard.clone());
    let refused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = refused.local_addr().unwrap();
    drop(refused);
    let policy = RetryPolicy::builder()
        .base(Duration::from_millis(1))
        .max_attempts(2)
        .build()
        .unwrap();
    let executor = Executor::builder().policy(policy).build().unwrap();
    let request = executor.get(format!("http://{address}/private"));
    assert!(request.send().await.is_err());

    let lines = heard.0.lock().unwrap().clone();
    let said = |part: &str| lines.iter().any(|line| line.contains(part));
    assert!(
        said("span 1 http.request otel.kind=\"client\""),
        "{lines:#?}"
    );
    assert!(said("http.request.method=\"GET\""), "{lines:#?}");
    assert!(
        said("span 1 has error.type=\"connect_refused\""),
        "{lines:#?}"
    );
    assert!(said("span 2 has http.request.resend_count=1"), "{lines:#?}");
    assert!(!said("span 3"), "one span for each attempt: {lines:#?}");
    assert!(!said("private") && !said("127.0.0.1"), "{lines:#?}");
}

#[cfg(feature = "reqwest")]
#[tokio::test]
async fn an_http_attempt_that_ran_out_of_time_says_so_in_its_span() {
    let heard = Heard::default();
    let _guard = subscriber::set_default(heard.clone());
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap(); // connects, and says nothing
    let policy = RetryPolicy::builder()
        .attempt_timeout(Duration::from_millis(200))
        .max_attempts(1)
        .build()
        .unwrap();
    let executor = Executor::builder().policy(policy).build().unwrap();
    let request = executor.get(format!("http://{}/", silent.local_addr().unwrap()));
    assert!(request.send().await.is_err());
    let lines = heard.0.lock().unwrap().clone();
    let timed_out = "span 1 has error.type=\"attempt_timeout\"";
    assert!(
        lines.iter().any(|line| line.contains(timed_out)),
        "{lines:#?}"
    );
}
