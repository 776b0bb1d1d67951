//! What a result of reqwest's means, for operations that use a client of the app's own.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::Response;
use reqwest::header::{DATE, RETRY_AFTER};

use super::super::verdict::Verdict;
use super::kind::kind_of_client;
use crate::retry_after::retry_after;

impl Verdict {
    /// What a result of a `reqwest::Client` of your own means: its status with the wait that the server asked for, or the kind of its error. For
    /// [`classify`](crate::Retry::classify), with [`request`](crate::Retry::request) for anything but a GET.
    ///
    /// It proves nothing about what was sent. Such a client follows redirects and sends again by itself unseen, begins later attempts on connections
    /// that may be dead, and tells no layer of its requests; an [`Executor`](crate::Executor) does better in all of this.
    ///
    /// ```no_run
    /// use comeback::{Method, RequestFacts, RetryPolicy, Retryable, Verdict};
    ///
    /// # async fn run(client: reqwest::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = RetryPolicy::default();
    /// let order = || client.post("https://example.org/orders").body("{}").send();
    /// let call = order.retry(&policy).classify(Verdict::of_reqwest);
    /// let response = call.request(RequestFacts::new(Method::Post)).await?;
    /// # drop(response);
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_reqwest(result: &reqwest::Result<Response>) -> Verdict {
        match result {
            Ok(response) => Verdict::of_response(response),
            Err(error) => Verdict::of_client_error(error),
        }
    }

    pub(super) fn of_response(response: &Response) -> Verdict {
        Verdict::Status {
            status: response.status().as_u16(),
            retry_after: asked_wait(response),
        }
    }

    pub(super) fn of_client_error(error: &reqwest::Error) -> Verdict {
        match error.status() {
            Some(status) => Verdict::Status {
                status: status.as_u16(),
                retry_after: None,
            },
            None => Verdict::Unproven(kind_of_client(error)),
        }
    }
}

fn asked_wait(response: &Response) -> Option<Duration> {
    let headers = response.headers();
    let lines: Vec<&str> = headers
        .get_all(RETRY_AFTER)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .collect();
    let date = headers.get(DATE).and_then(|date| date.to_str().ok());
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let wall_ms = wall.and_then(|wall| i64::try_from(wall.as_millis()).ok());
    retry_after(&lines, date, wall_ms)
}
