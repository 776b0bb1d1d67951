//! What `tracing` hears (feature `tracing`), by OpenTelemetry's names for HTTP clients; without the feature, nothing is left of it.

#[cfg(feature = "tracing")]
pub(super) use heard::of_attempt;
#[cfg(not(feature = "tracing"))]
pub(super) use unheard::of_attempt;

#[cfg(feature = "tracing")]
mod heard {
    use std::future::Future;

    use reqwest::Method;
    use tracing::{Instrument, Span, field};

    use super::super::call::Attempted;

    /// An attempt's span.
    pub(crate) struct AttemptSpan(Span);

    /// A client span for one attempt. No URL, header or body is in it.
    pub(crate) fn of_attempt(method: &Method, resends: u32) -> AttemptSpan {
        let span = tracing::info_span!(
            target: "comeback",
            "http.request",
            otel.kind = "client",
            otel.name = method.as_str(),
            http.request.method = method.as_str(),
            http.request.resend_count = field::Empty,
            http.response.status_code = field::Empty,
            "error.type" = field::Empty,
        );
        if resends > 0 {
            span.record("http.request.resend_count", resends);
        }
        AttemptSpan(span)
    }

    impl AttemptSpan {
        /// Runs an attempt within it, and notes what came of it.
        pub(crate) fn around(
            self,
            attempt: impl Future<Output = Attempted>,
        ) -> impl Future<Output = Attempted> {
            let span = self.0.clone();
            async move {
                let attempted = attempt.await;
                match &attempted {
                    Attempted::Answered(response) => {
                        let status = response.status();
                        span.record("http.response.status_code", status.as_u16());
                        if status.is_client_error() || status.is_server_error() {
                            span.record("error.type", status.as_str());
                        }
                    }
                    Attempted::Failed(failure) => {
                        span.record("error.type", failure.kind.name());
                    }
                    Attempted::Closed { .. } => {} // no attempt comes back so
                }
                attempted
            }
            .instrument(self.0)
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod unheard {
    use std::future::Future;

    use super::super::call::Attempted;

    pub(crate) struct AttemptSpan;

    pub(crate) fn of_attempt(_method: &reqwest::Method, _resends: u32) -> AttemptSpan {
        AttemptSpan
    }

    impl AttemptSpan {
        pub(crate) fn around<F: Future<Output = Attempted>>(self, attempt: F) -> F {
            attempt
        }
    }
}
