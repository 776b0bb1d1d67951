//! Responses: reading one as part of its attempt, and reading one of a later attempt within its limit.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Body, Response, ResponseBuilderExt, StatusCode};
use tokio::time::{Instant, Sleep, sleep};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Whether the body ends by itself: not that of an event stream, nor what comes after an upgrade.
pub(super) fn may_be_read(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    let is_stream = kind.is_some_and(|kind| {
        let kind = kind.as_bytes().trim_ascii_start();
        let name = kind.split(|byte| *byte == b';').next().unwrap_or(kind);
        name.trim_ascii_end()
            .eq_ignore_ascii_case(b"text/event-stream")
    });
    !is_stream && response.status() != StatusCode::SWITCHING_PROTOCOLS
}

/// Reads the body to its end, or as far as `limit` bytes and the piece that crosses it; what comes after stays to be read.
pub(super) async fn read(response: Response, limit: u64) -> Result<Response, reqwest::Error> {
    let (rebuild, mut body) = taken_apart(response);
    let mut frames = VecDeque::new();
    let mut length = 0_u64;
    let mut ended = false;
    while length <= limit {
        let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await else {
            ended = true;
            break;
        };
        let frame = frame?;
        length = length.saturating_add(length_of(&frame));
        frames.push_back(frame); // trailers too
    }
    Ok(rebuild(Body::wrap(Read {
        frames,
        length,
        rest: (!ended).then_some(body),
    })))
}

/// The response, whose body fails once nothing came for `inactivity`. The client's own read timeout stays, and ends it where it is shorter.
pub(super) fn within(response: Response, inactivity: Duration) -> Response {
    let (rebuild, body) = taken_apart(response);
    rebuild(Body::wrap(Within {
        body,
        inactivity,
        timer: None,
    }))
}

/// A response's body, and what makes the same response with another: status, headers, address and extensions stay.
fn taken_apart(response: Response) -> (impl FnOnce(Body) -> Response, Body) {
    let url = response.url().clone();
    let (mut head, body) = http::Response::<Body>::from(response).into_parts();
    // reqwest takes a response's address from an extension that only this builder can make.
    if let Ok(address) = http::Response::builder().url(url).body(()) {
        head.extensions.extend(address.into_parts().0.extensions);
    }
    let rebuild = |body| http::Response::from_parts(head, body).into();
    (rebuild, body)
}

fn length_of(frame: &Frame<Bytes>) -> u64 {
    frame.data_ref().map_or(0, |piece| piece.len() as u64)
}

/// What was read, and the rest.
struct Read {
    frames: VecDeque<Frame<Bytes>>,
    /// Of the frames, in bytes.
    length: u64,
    /// Gone with its end.
    rest: Option<Body>,
}

impl HttpBody for Read {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        if let Some(frame) = self.frames.pop_front() {
            self.length = self.length.saturating_sub(length_of(&frame));
            return Poll::Ready(Some(Ok(frame)));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty() && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let nothing = SizeHint::with_exact(0);
        let rest = self.rest.as_ref().map_or(nothing, HttpBody::size_hint);
        let mut whole = SizeHint::new();
        whole.set_lower(self.length.saturating_add(rest.lower()));
        if let Some(upper) = rest.upper() {
            whole.set_upper(self.length.saturating_add(upper));
        }
        whole
    }
}

/// A body that may not stand still.
struct Within {
    body: Body,
    inactivity: Duration,
    /// Runs while a piece is waited for.
    timer: Option<Pin<Box<Sleep>>>,
}

impl HttpBody for Within {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.timer = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let timer = this
            .timer
            .get_or_insert_with(|| Box::pin(sleep(this.inactivity)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::TimedOut).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A future that may stand still for `inactivity` at most; `None` if it did for longer.
pub(super) async fn while_moving<F: Future>(
    future: F,
    inactivity: Duration,
    still_since: impl Fn() -> Instant,
) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    loop {
        let until = still_since() + inactivity;
        match tokio::time::timeout_at(until, future.as_mut()).await {
            Ok(output) => return Some(output),
            Err(_) if still_since() + inactivity <= Instant::now() => return None,
            Err(_) => {}
        }
    }
}
