//! Spans and events for `tracing` (feature `tracing`), with OpenTelemetry's names where there are any. Without the feature this compiles to nothing.

#[cfg(feature = "tracing")]
pub(super) use heard::{AttemptSpan, tell, tell_breaker};
#[cfg(not(feature = "tracing"))]
pub(super) use unheard::{AttemptSpan, tell, tell_breaker};

#[cfg(feature = "tracing")]
mod heard {
    use std::time::Duration;

    use tracing::{Span, debug, field, info, info_span};

    use crate::breaker::Transition;
    use crate::event::{End, Event};
    use crate::outcome::What;

    /// One attempt, while it is in flight.
    #[derive(Clone)]
    pub(crate) struct AttemptSpan(Span);

    impl AttemptSpan {
        /// `http.request.resend_count` is told from the second attempt on, as the conventions ask.
        pub(crate) fn new(resends: u32) -> AttemptSpan {
            let span = info_span!(
                target: "comeback",
                "attempt",
                "http.request.resend_count" = field::Empty,
                "error.type" = field::Empty,
            );
            if resends > 0 {
                span.record("http.request.resend_count", resends);
            }
            AttemptSpan(span)
        }

        /// One with more in it. It has a field `error.type`.
        #[cfg(feature = "reqwest")]
        pub(crate) fn of(span: Span) -> AttemptSpan {
            AttemptSpan(span)
        }

        #[cfg(feature = "reqwest")]
        pub(crate) fn span(&self) -> &Span {
            &self.0
        }

        pub(crate) fn within<T>(&self, poll: impl FnOnce() -> T) -> T {
            self.0.in_scope(poll)
        }

        /// Notes what an event of this attempt says of it.
        pub(crate) fn note(&self, event: &Event) {
            if let Event::AttemptFailed { what, .. } = event {
                with_error_type(what, |name| {
                    self.0.record("error.type", name);
                });
            }
        }
    }

    /// The status as text, or the kind of the failure.
    fn with_error_type(what: &What, hear: impl FnOnce(&str)) {
        match what {
            What::Status(status) => hear(&status.to_string()),
            What::Failure(kind) => hear(kind.name()),
        }
    }

    fn ms(length: Duration) -> u64 {
        u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
    }

    /// A circuit breaker's transition, within the span of the attempt that made it.
    pub(crate) fn tell_breaker(origin: u64, transition: Transition) {
        match transition {
            Transition::Opened { .. } => info!(target: "comeback", origin, "breaker opened"),
            Transition::HalfOpen => info!(target: "comeback", origin, "breaker half-open"),
            Transition::Closed => info!(target: "comeback", origin, "breaker closed"),
        }
    }

    /// One event of a call, within whatever span the caller is in.
    pub(crate) fn tell(call_id: u64, event: &Event) {
        match event {
            Event::AttemptFailed {
                class,
                what,
                counted,
            } => with_error_type(what, |name| {
                debug!(target: "comeback", call_id, "error.type" = name, ?class, counted, "attempt failed");
            }),
            Event::AttemptAbandoned => debug!(target: "comeback", call_id, "attempt abandoned"),
            Event::WaitPlanned(wait) => debug!(
                target: "comeback",
                call_id,
                planned_ms = ms(wait.planned),
                window_ms = ms(wait.window),
                floor_ms = ms(wait.floor),
                why = ?wait.why,
                "wait planned"
            ),
            Event::Resumed(wait) => debug!(
                target: "comeback",
                call_id,
                waited_ms = ms(wait.effective),
                by = ?wait.by,
                "resumed"
            ),
            Event::Final(End {
                reason: None,
                counted,
                elapsed,
                ..
            }) => {
                debug!(target: "comeback", call_id, attempts = counted, elapsed_ms = ms(*elapsed), "done")
            }
            Event::Final(End {
                reason: Some(reason),
                counted,
                elapsed,
                ..
            }) => info!(
                target: "comeback",
                call_id,
                attempts = counted,
                elapsed_ms = ms(*elapsed),
                ?reason,
                "stopped"
            ),
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod unheard {
    use crate::breaker::Transition;
    use crate::event::Event;

    #[derive(Clone)]
    pub(crate) struct AttemptSpan;

    impl AttemptSpan {
        pub(crate) fn new(_resends: u32) -> AttemptSpan {
            AttemptSpan
        }

        pub(crate) fn within<T>(&self, poll: impl FnOnce() -> T) -> T {
            poll()
        }

        pub(crate) fn note(&self, _event: &Event) {}
    }

    pub(crate) fn tell(_call_id: u64, _event: &Event) {}

    pub(crate) fn tell_breaker(_origin: u64, _transition: Transition) {}
}
