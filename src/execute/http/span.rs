//! An attempt's span (feature `tracing`), by OpenTelemetry's names for HTTP clients; without the feature, nothing is left of it.

use reqwest::{Method, StatusCode};

use super::super::telemetry::AttemptSpan;

/// A client span for one attempt. It contains no URL, header or body. The loop notes how the attempt failed.
#[cfg(feature = "tracing")]
pub(super) fn of_attempt(method: &Method, resends: u32) -> AttemptSpan {
    use tracing::field;
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
    AttemptSpan::of(span)
}

/// The answer's status, an error's too where it is the call's answer.
#[cfg(feature = "tracing")]
pub(super) fn note_status(span: &AttemptSpan, status: StatusCode) {
    span.span()
        .record("http.response.status_code", status.as_u16());
    if status.is_client_error() || status.is_server_error() {
        span.span().record("error.type", status.as_str());
    }
}

#[cfg(not(feature = "tracing"))]
pub(super) fn of_attempt(_method: &Method, resends: u32) -> AttemptSpan {
    AttemptSpan::new(resends)
}

#[cfg(not(feature = "tracing"))]
pub(super) fn note_status(_span: &AttemptSpan, _status: StatusCode) {}
