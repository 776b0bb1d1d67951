//! What is asked of one HTTP call, and what an answer means for it.

use std::sync::Arc;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};

use super::body::Template;
use crate::instant::Instant;
use crate::outcome::{Outcome, OutcomeClass, classify};
use crate::policy::RetryPolicy;
use crate::request::RequestFacts;

/// What is asked of a call.
pub(super) struct CallSpec {
    pub(super) template: Template,
    pub(super) facts: RequestFacts,
    /// Whether the request's key is ours.
    pub(super) has_made_key: bool,
    pub(super) policy: Arc<RetryPolicy>,
    pub(super) label: Option<String>,
    /// Reading the body, up to this many bytes, is part of the attempt.
    pub(super) read_up_to: Option<u64>,
    /// When the request's own timeout ends the call.
    pub(super) client_end: Option<Instant>,
}

impl CallSpec {
    /// Whether this answer is the call's, as far as its head and the app tell.
    pub(super) fn delivers(&self, response: &Response, overrule: Option<OutcomeClass>) -> bool {
        self.with_answer(response.status(), response.headers(), |outcome| {
            let outcome = Outcome {
                overrule,
                ..*outcome
            };
            let class = classify(&self.policy, &self.facts, &outcome);
            matches!(class, OutcomeClass::Success | OutcomeClass::PermanentStatus)
        })
    }

    /// Hands an answer on as the core's outcome.
    pub(super) fn with_answer<T>(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        use_it: impl FnOnce(&Outcome<'_>) -> T,
    ) -> T {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let waits: Vec<&str> = headers
            .get_all(RETRY_AFTER)
            .iter()
            .filter_map(|line| line.to_str().ok())
            .collect();
        use_it(&Outcome {
            retry_after: &waits,
            date: text(DATE.as_str()),
            should_retry: self.policy.should_retry_header().and_then(text),
            ..Outcome::response(status.as_u16())
        })
    }
}
