//! One HTTP attempt: from the request to its response head and, where that is asked for, to the end of its body.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Request, Response, StatusCode};

use super::super::listener::contained;
use super::answer;
use super::client::Lease;
use super::failure::Failure;
use super::hook;
use super::observer::AttemptObserver;
use super::shared::{Shared, origin_of};
use super::spec::CallSpec;
use crate::outcome::OutcomeClass;

/// What one attempt came back with.
pub(super) enum AttemptEnd {
    /// A response, its body still to be read.
    Answered {
        response: Response,
        /// The app's opinion of it, if it was asked for already.
        opinion: Option<Option<OutcomeClass>>,
    },
    /// A response that was closed before a wait.
    Closed {
        status: StatusCode,
        headers: HeaderMap,
    },
    /// None, or one that broke off while it was read.
    Failed(Failure),
}

impl AttemptEnd {
    fn answered(response: Response) -> AttemptEnd {
        AttemptEnd::Answered {
            response,
            opinion: None,
        }
    }
}

/// Makes an attempt. It fails when nothing of it moves for the length of `inactivity`; what ends it otherwise is the loop's.
pub(super) async fn make(
    shared: Arc<Shared>,
    spec: Arc<CallSpec>,
    lease: Arc<Lease>,
    observer: Arc<AttemptObserver>,
    mut request: Request,
    inactivity: Option<Duration>,
    number: u32,
) -> AttemptEnd {
    if let Some(hook) = &shared.before_attempt {
        let key = &spec.policy.key().header;
        let prepared = hook::prepare(&**hook, &mut request, key, number, inactivity).await;
        if let Err(failure) = prepared {
            return AttemptEnd::Failed(failure);
        }
    }
    let head = observer.clone().watch(lease.client.execute(request));
    let head = match inactivity {
        None => head.await.map_err(Some),
        Some(inactivity) => answer::while_moving(head, inactivity, || observer.still_since())
            .await
            .map_or(Err(None), |head| head.map_err(Some)),
    };
    let response = match head {
        Ok(response) => response,
        Err(error) => {
            let failure = Failure::without_head(error, &lease, &observer);
            if failure.ended_by_time() {
                shared.suspect(&spec, &lease, &observer);
            }
            return AttemptEnd::Failed(failure);
        }
    };
    if shared.aggregates.is_some() {
        observer.answered_by(origin_of(response.url()));
    }
    let response = match inactivity {
        None => response,
        Some(inactivity) => answer::within(response, inactivity),
    };
    let Some(limit) = spec.read_up_to.filter(|_| answer::may_be_read(&response)) else {
        return AttemptEnd::answered(response);
    };
    // A hook that panics is asked once more where its panic stops the call.
    let Ok(opinion) = contained(|| shared.opinion(&spec, Ok(&response))) else {
        return AttemptEnd::answered(response);
    };
    if !spec.delivers(&response, opinion) {
        return AttemptEnd::Answered {
            response,
            opinion: Some(opinion),
        };
    }
    match answer::read(response, limit).await {
        Ok(response) => AttemptEnd::Answered {
            response,
            opinion: Some(opinion),
        },
        Err(error) => {
            let failure = Failure::of_reading(error);
            if failure.ended_by_time() {
                shared.suspect(&spec, &lease, &observer);
            }
            AttemptEnd::Failed(failure)
        }
    }
}
